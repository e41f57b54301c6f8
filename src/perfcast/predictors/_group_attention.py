"""The group-attention network of NCPP (arXiv 2407.03385), with every published layer on its path."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._embedding import CategoryEmbedding, NumberEmbedding, hide
from perfcast.training.data import Rows


class AttentionBlock(nn.Module):
    """Pre-norm multi-head self-attention within each span of tokens, then a feed-forward layer, both residual.

    Dense layers run over all tokens at once; only the attention itself is cut into spans, so no work goes into
    padding or masks. Shapes: (rows, tokens, width) to the same; `sizes` are the lengths of the spans.
    """

    def __init__(self, width: int, heads: int, sizes: list[int], dropout: float) -> None:
        super().__init__()
        self.heads, self.sizes = heads, sizes
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(2 * width, width)
        )

    def forward(self, tokens: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """Relate the tokens; the attention weights of each span, (rows, heads, span, span), are added to `weights`."""
        projected = self.project(self.norm(tokens))
        mixed = [self._attend(span, weights) for span in projected.split(self.sizes, dim=1)]
        tokens = tokens + self.merge(torch.cat(mixed, dim=1))
        related: Tensor = tokens + self.feed(self.feed_norm(tokens))
        return related

    def _attend(self, projected: Tensor, weights: list[Tensor] | None) -> Tensor:
        rows, count, triple = projected.shape
        depth = triple // 3 // self.heads
        query, key, value = projected.view(rows, count, 3, self.heads, depth).permute(2, 0, 3, 1, 4).unbind()
        shares = torch.softmax((query * depth**-0.5) @ key.transpose(-1, -2), dim=-1)
        if weights is not None:
            weights.append(shares)
        return (shares @ value).transpose(1, 2).reshape(rows, count, triple // 3)


class GroupReadout(nn.Module):
    """Each group's tokens to one vector: every token narrowed by one shared layer, then a layer of the group's own.

    A column keeps its own weights on the way, which a mean over tokens, as published, would take from it.
    Shapes: (rows, tokens, width) to (rows, groups, group_width).
    """

    def __init__(self, width: int, narrow: int, group_width: int, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = sizes
        self.norm = nn.LayerNorm(width)
        self.narrow = nn.Linear(width, narrow)
        self.join = nn.ModuleList(nn.Linear(size * narrow, group_width) for size in sizes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Read every group."""
        spans = self.narrow(self.norm(tokens)).split(self.sizes, dim=1)
        return torch.stack([join(span.flatten(1)) for join, span in zip(self.join, spans, strict=True)], dim=1)


class GroupAttentionNetwork(nn.Module):
    """Feature tokens, intra-group attention, group read-out, inter-group attention, multi-output head.

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
        narrow: int,
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
        self.number_sizes = [numbers.count(group) for group in groups]
        self.category_sizes = [categories.count(group) for group in groups]
        sizes = [n + c + 1 for n, c in zip(self.number_sizes, self.category_sizes, strict=True)]
        self.group = nn.Parameter(torch.randn(len(groups), width) * 0.5)
        # Dropout stays off the many narrow tokens: it cost a tenth of the time there, and `hide` does its work.
        self.intra = nn.ModuleList(AttentionBlock(width, heads, sizes, 0.0) for _ in range(intra_blocks))
        self.readout = GroupReadout(width, narrow, group_width, sizes)
        self.inter = nn.ModuleList(
            AttentionBlock(group_width, group_heads, [len(groups)], dropout) for _ in range(inter_blocks)
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
        groups = self.readout(tokens)
        for block in self.inter:
            groups = block(groups, weights)
        forecast: Tensor = self.head(groups.flatten(1))
        return forecast

    def _tokens(self, rows: Rows) -> Tensor:
        """Return the tokens by group: numbers, categories, and one token of the group's own."""
        numbers = self.number(rows).split(self.number_sizes, dim=1)
        categories = self.category(rows).split(self.category_sizes, dim=1)
        own = self.group.expand(len(rows), -1, -1).split(1, dim=1)
        return torch.cat([part for group in zip(numbers, categories, own, strict=True) for part in group], dim=1)
