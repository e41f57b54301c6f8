"""Networks of feature tokens by group: NCPP (arXiv 2407.03385), with every published layer on its path, and cheaper."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from perfcast.features.encoding.tokens import TokenSpec
from perfcast.nn.embedding import CategoryEmbedding, NumberEmbedding, TokenBatch, make_head


class AttentionBlock(nn.Module):
    """Pre-norm multi-head self-attention within each span of tokens, then a feed-forward layer, both residual.

    Dense layers run over all tokens at once; only the attention itself is cut into spans, so no work goes into
    padding or masks. Shapes: (rows, tokens, d_token) to the same; `sizes` are the lengths of the spans.
    """

    def __init__(self, d_token: int, n_heads: int, sizes: list[int], dropout: float) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.sizes = sizes
        self.norm = nn.LayerNorm(d_token)
        self.project = nn.Linear(d_token, 3 * d_token)
        self.merge = nn.Linear(d_token, d_token)
        self.ffn_norm = nn.LayerNorm(d_token)
        self.ffn = nn.Sequential(
            nn.Linear(d_token, 2 * d_token), nn.ReLU(), nn.Dropout(dropout), nn.Linear(2 * d_token, d_token)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Relate the tokens."""
        projected = self.project(self.norm(tokens))
        mixed = [self._attend(span) for span in projected.split(self.sizes, dim=1)]
        tokens = tokens + self.merge(torch.cat(mixed, dim=1))
        related: Tensor = tokens + self.ffn(self.ffn_norm(tokens))
        return related

    def _attend(self, projected: Tensor) -> Tensor:
        rows, count, triple = projected.shape
        depth = triple // 3 // self.n_heads
        query, key, value = projected.view(rows, count, 3, self.n_heads, depth).permute(2, 0, 3, 1, 4).unbind()
        shares = torch.softmax((query * depth**-0.5) @ key.transpose(-1, -2), dim=-1)
        return (shares @ value).transpose(1, 2).reshape(rows, count, triple // 3)


class GroupReadout(nn.Module):
    """Each group's tokens to one vector: one shared bottleneck layer for every token, then a layer of the group.

    A column keeps weights of its own on the way; a mean over tokens, as published, would remove them.
    Shapes: (rows, tokens, d_token) to (rows, groups, d_block).
    """

    def __init__(self, d_token: int, d_bottleneck: int, d_block: int, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = sizes
        self.norm = nn.LayerNorm(d_token)
        self.bottleneck = nn.Linear(d_token, d_bottleneck)
        self.join = nn.ModuleList(nn.Linear(size * d_bottleneck, d_block) for size in sizes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Read every group."""
        spans = self.bottleneck(self.norm(tokens)).split(self.sizes, dim=1)
        return torch.stack([join(span.flatten(1)) for join, span in zip(self.join, spans, strict=True)], dim=1)


class GroupNetwork(nn.Module):
    """Feature tokens by group, one vector per group, attention between the groups, multi-output head.

    The head starts at zero, so an untrained network predicts the center of its standardized targets. A subclass makes
    the layers that read the groups. Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        spec: TokenSpec,
        n_outputs: int,
        *,
        d_token: int,
        d_block: int,
        n_group_heads: int,
        n_blocks: int,
        n_frequencies: int,
        frequency_init_scale: float,
        dropout: float,
        **reading: int,
    ) -> None:
        super().__init__()
        self.number_sizes, self.category_sizes = (
            [places.count(group) for group in range(spec.n_groups)]
            for places in (spec.number_groups, spec.category_groups)
        )
        self.number = NumberEmbedding(spec.n_numbers, d_token, n_frequencies, frequency_init_scale)
        self.category = CategoryEmbedding(spec, d_token)
        self.group = nn.Parameter(torch.randn(spec.n_groups, d_token) * 0.5)
        sizes = [n + c + 1 for n, c in zip(self.number_sizes, self.category_sizes, strict=True)]
        self.make_reading(sizes, d_token=d_token, d_block=d_block, **reading)
        self.inter = nn.ModuleList(
            AttentionBlock(d_block, n_group_heads, [spec.n_groups], dropout) for _ in range(n_blocks)
        )
        self.head = make_head(spec.n_groups * d_block, 2 * d_block, n_outputs, dropout)

    @abstractmethod
    def make_reading(self, sizes: list[int], **options: int) -> None:
        """Make the layers that read groups of these numbers of tokens."""

    @abstractmethod
    def read_groups(self, batch: TokenBatch) -> Tensor:
        """Return the vectors of all groups, (rows, groups, d_block)."""

    def forward(self, batch: TokenBatch) -> Tensor:
        """Predict standardized targets."""
        return self.predict_groups(self.read_groups(batch))

    def tokens(self, batch: TokenBatch) -> list[list[Tensor]]:
        """Return the tokens of every group: numbers, categories, and the token of the group."""
        numbers = self.number(batch).split(self.number_sizes, dim=1)
        categories = self.category(batch).split(self.category_sizes, dim=1)
        groups = self.group.expand(len(batch), -1, -1).split(1, dim=1)
        return [list(span) for span in zip(numbers, categories, groups, strict=True)]

    def predict_groups(self, groups: Tensor) -> Tensor:
        """Predict from the vectors of all groups. Shapes: (rows, groups, d_block) to (rows, outputs)."""
        for block in self.inter:
            groups = block(groups)
        prediction: Tensor = self.head(groups.flatten(1))
        return prediction


class GroupAttentionNetwork(GroupNetwork):
    """Attention within groups, then a read-out of each group: `n_intra_blocks` of `n_heads`, and `d_bottleneck`."""

    def make_reading(self, sizes: list[int], **options: int) -> None:
        """Make the blocks of attention and the read-out."""
        d_token = options["d_token"]
        blocks = range(options["n_intra_blocks"])
        # Dropout on the many narrow tokens costs a tenth of the time, and masked inputs have the same effect.
        self.intra = nn.ModuleList(AttentionBlock(d_token, options["n_heads"], sizes, 0.0) for _ in blocks)
        self.readout = GroupReadout(d_token, options["d_bottleneck"], options["d_block"], sizes)

    def read_groups(self, batch: TokenBatch) -> Tensor:
        """Return the vectors of all groups, (rows, groups, d_block)."""
        tokens = self.related(torch.cat([tokens for span in self.tokens(batch) for tokens in span], dim=1))
        for block in self.intra:
            tokens = block(tokens)
        vectors: Tensor = self.readout(tokens)
        return vectors

    def related(self, tokens: Tensor) -> Tensor:
        """Return the tokens as attention reads them."""
        return tokens


class GroupPooling(nn.Module):
    """The tokens of one group to one vector: attention by one learned query, plus a bottleneck of every token.

    The attention weighs the tokens of a row; the bottleneck keeps the weights of each column, which a mean would
    remove. Shapes: (rows, tokens, d_token) to (rows, d_block).
    """

    def __init__(self, n_tokens: int, d_token: int, d_bottleneck: int, d_block: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(d_token) * d_token**-0.5)
        self.value = nn.Linear(d_token, d_block)
        self.bottleneck = nn.Linear(d_token, d_bottleneck)
        self.join = nn.Linear(n_tokens * d_bottleneck, d_block)

    def forward(self, tokens: Tensor) -> Tensor:
        """Read the group."""
        shares = torch.softmax(tokens @ self.query, dim=1)
        pooled = (shares.unsqueeze(-1) * tokens).sum(dim=1)
        vector: Tensor = self.value(pooled) + self.join(self.bottleneck(tokens).flatten(1))
        return vector


class GroupPoolingNetwork(GroupNetwork):
    """The structure of NCPP at a tenth of its cost: within a group one query in place of one per column."""

    def make_reading(self, sizes: list[int], **options: int) -> None:
        """Make the pooling of every group."""
        self.norm = nn.LayerNorm(options["d_token"])
        self.pool = nn.ModuleList(GroupPooling(size, **options) for size in sizes)

    def read_groups(self, batch: TokenBatch) -> Tensor:
        """Return the vectors of all groups, (rows, groups, d_block)."""
        spans = zip(self.pool, self.tokens(batch), strict=True)
        return torch.stack([pool(self.norm(torch.cat(tokens, dim=1))) for pool, tokens in spans], dim=1)

    def read_group(self, group: int, batch: TokenBatch) -> Tensor:
        """Return the vector of one group, as in `forward`, from its columns. Shapes: rows to (rows, d_block)."""
        numbers, categories = self.columns(group)
        token = self.group[group].expand(len(batch), 1, -1)
        tokens = torch.cat([self.number(batch, numbers), self.category(batch, categories), token], dim=1)
        vector: Tensor = self.pool[group](self.norm(tokens))
        return vector

    def columns(self, group: int) -> tuple[slice, slice]:
        """Return the numbers and the categories of a group."""
        return _span(self.number_sizes, group), _span(self.category_sizes, group)


def _span(sizes: list[int], group: int) -> slice:
    start = sum(sizes[:group])
    return slice(start, start + sizes[group])
