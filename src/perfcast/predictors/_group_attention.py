"""The group-attention network of NCPP (arXiv 2407.03385), with every published layer on its path."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._embedding import CategoryEmbedding, NumberEmbedding, hide
from perfcast.training.data import Rows


class AttentionBlock(nn.Module):
    """Pre-norm multi-head self-attention within each span of tokens, then a feed-forward layer, both residual.

    Dense layers run over all tokens at once; only the attention itself is cut into spans, so no work goes into
    padding or masks. Shapes: (rows, tokens, width) to the same.
    """

    def __init__(self, width: int, heads: int, hidden: int, spans: list[tuple[int, int]], dropout: float) -> None:
        super().__init__()
        self.heads, self.spans = heads, spans
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, width))

    def forward(self, tokens: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """Relate the tokens; the attention weights of each span, (rows, heads, span, span), are added to `weights`."""
        rows, count, width = tokens.shape
        depth = width // self.heads
        parts = self.project(self.norm(tokens)).view(rows, count, 3, self.heads, depth).permute(2, 0, 3, 1, 4)
        query, key, value = parts[0] * depth**-0.5, parts[1], parts[2]
        mixed = []
        for start, end in self.spans:
            scores = query[:, :, start:end] @ key[:, :, start:end].transpose(-1, -2)
            shares = torch.softmax(scores, dim=-1)
            if weights is not None:
                weights.append(shares)
            mixed.append((shares @ value[:, :, start:end]).transpose(1, 2).reshape(rows, end - start, width))
        tokens = tokens + self.merge(torch.cat(mixed, dim=1))
        related: Tensor = tokens + self.feed(self.feed_norm(tokens))
        return related


class GroupPool(nn.Module):
    """Each group's tokens to one vector: `slots` learned weighted means, joined by a linear layer.

    Shapes: (rows, tokens, width) to (rows, groups, group_width).
    """

    def __init__(self, width: int, slots: int, group_width: int, spans: list[tuple[int, int]]) -> None:
        super().__init__()
        self.spans = spans
        self.norm = nn.LayerNorm(width)
        self.score = nn.Linear(width, slots)
        self.join = nn.ModuleList(nn.Linear(slots * width, group_width) for _ in spans)

    def forward(self, tokens: Tensor) -> Tensor:
        """Pool every group."""
        tokens = self.norm(tokens)
        scores = self.score(tokens)
        pooled = []
        for (start, end), join in zip(self.spans, self.join, strict=True):
            shares = torch.softmax(scores[:, start:end], dim=1)
            pooled.append(join((shares.transpose(1, 2) @ tokens[:, start:end]).flatten(1)))
        return torch.stack(pooled, dim=1)


class GroupAttentionNetwork(nn.Module):
    """Feature tokens, intra-group attention, group pooling, inter-group attention, multi-output head.

    The head starts at zero, so an untrained network forecasts the centre of its standardised targets.
    Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        outputs: int,
        *,
        width: int,
        heads: int,
        intra_blocks: int,
        slots: int,
        group_width: int,
        group_heads: int,
        inter_blocks: int,
        frequencies: int,
        frequency_scale: float,
        dropout: float,
        hide_rate: float,
    ) -> None:
        super().__init__()
        self.hide_rate = hide_rate
        numbers, categories = encoder.number_groups, encoder.category_groups
        self.number = NumberEmbedding(len(numbers), width, frequencies, frequency_scale)
        self.category = CategoryEmbedding(encoder, width)
        groups = range(len(encoder.groups))
        self.group = nn.Parameter(torch.randn(len(groups), width) * 0.5)
        self._number_ends = _ends(numbers, len(groups))
        self._category_ends = _ends(categories, len(groups))
        sizes = [1 + numbers.count(group) + categories.count(group) for group in groups]
        ends = [sum(sizes[:position]) for position in range(len(sizes) + 1)]
        spans = list(pairwise(ends))
        self.intra = nn.ModuleList(AttentionBlock(width, heads, 2 * width, spans, dropout) for _ in range(intra_blocks))
        self.pool = GroupPool(width, slots, group_width, spans)
        whole = [(0, len(groups))]
        self.inter = nn.ModuleList(
            AttentionBlock(group_width, group_heads, 2 * group_width, whole, dropout) for _ in range(inter_blocks)
        )
        self.head = nn.Sequential(
            nn.LayerNorm(len(groups) * group_width),
            nn.Linear(len(groups) * group_width, 2 * group_width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * group_width, outputs),
        )
        for parameter in self.head[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, rows: Rows, weights: list[Tensor] | None = None) -> Tensor:
        """Forecast standardised targets; attention weights, intra then inter, are added to `weights` when given."""
        if self.training:
            rows = hide(rows, self.hide_rate)
        tokens = self._tokens(rows)
        for block in self.intra:
            tokens = block(tokens, weights)
        groups = self.pool(tokens)
        for block in self.inter:
            groups = block(groups, weights)
        forecast: Tensor = self.head(groups.flatten(1))
        return forecast

    def _tokens(self, rows: Rows) -> Tensor:
        """Return the tokens by group: numbers, categories, and one token of the group's own."""
        numbers, categories = self.number(rows), self.category(rows)
        own = self.group.expand(len(rows), -1, -1)
        parts = []
        for group, (n, c) in enumerate(zip(pairwise(self._number_ends), pairwise(self._category_ends), strict=True)):
            parts += [numbers[:, n[0] : n[1]], categories[:, c[0] : c[1]], own[:, group : group + 1]]
        return torch.cat(parts, dim=1)


def _ends(groups_of_tokens: list[int], groups: int) -> list[int]:
    """Return where each group's tokens end, from 0, in a list of tokens sorted by group."""
    return [sum(group < limit for group in groups_of_tokens) for limit in range(groups + 1)]
