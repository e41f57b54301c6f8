"""The group-attention network of NCPP (arXiv 2407.03385), with every published layer on its path."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from perfcast.features.encoding.token_arrays import TokenSpec
from perfcast.nn.embedding import CategoryEmbedding, NumberEmbedding, make_head
from perfcast.nn.token_batch import TokenBatch


class AttentionBlock(nn.Module):
    """Pre-norm multi-head self-attention within each span of tokens, then a feed-forward layer, both residual.

    Dense layers run over all tokens at once; only the attention itself is cut into spans, so no work goes into
    padding or masks. Shapes: (rows, tokens, d_token) to the same; `sizes` are the lengths of the spans.
    """

    def __init__(self, d_token: int, n_heads: int, sizes: list[int], dropout: float) -> None:
        super().__init__()
        self.n_heads, self.sizes = n_heads, sizes
        self.norm = nn.LayerNorm(d_token)
        self.project = nn.Linear(d_token, 3 * d_token)
        self.merge = nn.Linear(d_token, d_token)
        self.ffn_norm = nn.LayerNorm(d_token)
        self.ffn = nn.Sequential(
            nn.Linear(d_token, 2 * d_token), nn.ReLU(), nn.Dropout(dropout), nn.Linear(2 * d_token, d_token)
        )

    def forward(self, tokens: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """Relate the tokens; append the attention weights of each span, (rows, heads, span, span), to `weights`."""
        projected = self.project(self.norm(tokens))
        mixed = [self._attend(span, weights) for span in projected.split(self.sizes, dim=1)]
        tokens = tokens + self.merge(torch.cat(mixed, dim=1))
        related: Tensor = tokens + self.ffn(self.ffn_norm(tokens))
        return related

    def _attend(self, projected: Tensor, weights: list[Tensor] | None) -> Tensor:
        rows, count, triple = projected.shape
        depth = triple // 3 // self.n_heads
        query, key, value = projected.view(rows, count, 3, self.n_heads, depth).permute(2, 0, 3, 1, 4).unbind()
        shares = torch.softmax((query * depth**-0.5) @ key.transpose(-1, -2), dim=-1)
        if weights is not None:
            weights.append(shares)
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


class GroupAttentionNetwork(nn.Module):
    """Feature tokens, attention within groups, group read-out, attention between groups, multi-output head.

    The head starts at zero, so an untrained network predicts the center of its standardized targets.
    Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        spec: TokenSpec,
        n_outputs: int,
        *,
        d_token: int,
        n_heads: int,
        n_intra_blocks: int,
        d_bottleneck: int,
        d_block: int,
        n_group_heads: int,
        n_blocks: int,
        n_frequencies: int,
        frequency_init_scale: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.number = NumberEmbedding(spec.n_numbers, d_token, n_frequencies, frequency_init_scale)
        self.category = CategoryEmbedding(spec, d_token)
        self.number_sizes, self.category_sizes = spec.numbers_per_group, spec.categories_per_group
        sizes = [n + c + 1 for n, c in zip(self.number_sizes, self.category_sizes, strict=True)]
        self.group = nn.Parameter(torch.randn(spec.n_groups, d_token) * 0.5)
        # Dropout on the many narrow tokens costs a tenth of the time, and masked inputs have the same effect.
        self.intra = nn.ModuleList(AttentionBlock(d_token, n_heads, sizes, 0.0) for _ in range(n_intra_blocks))
        self.readout = GroupReadout(d_token, d_bottleneck, d_block, sizes)
        self.inter = nn.ModuleList(
            AttentionBlock(d_block, n_group_heads, [spec.n_groups], dropout) for _ in range(n_blocks)
        )
        self.head = make_head(spec.n_groups * d_block, 2 * d_block, n_outputs, dropout)

    def forward(self, batch: TokenBatch, weights: list[Tensor] | None = None) -> Tensor:
        """Predict standardized targets; append the attention weights, intra then inter, to `weights`."""
        tokens = self._tokens(batch)
        for block in self.intra:
            tokens = block(tokens, weights)
        groups = self.readout(tokens)
        for block in self.inter:
            groups = block(groups, weights)
        prediction: Tensor = self.head(groups.flatten(1))
        return prediction

    def _tokens(self, batch: TokenBatch) -> Tensor:
        """Return the tokens by group: numbers, categories, and the token of the group."""
        numbers = self.number(batch).split(self.number_sizes, dim=1)
        categories = self.category(batch).split(self.category_sizes, dim=1)
        groups = self.group.expand(len(batch), -1, -1).split(1, dim=1)
        spans = zip(numbers, categories, groups, strict=True)
        return torch.cat([tokens for span in spans for tokens in span], dim=1)
