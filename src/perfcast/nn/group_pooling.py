"""Group attention in which a group reads its columns by one learned query: a tenth of the cost."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from perfcast.features.encoding.token_arrays import TokenSpec
from perfcast.nn.embedding import CategoryEmbedding, NumberEmbedding, make_head
from perfcast.nn.group_attention import AttentionBlock
from perfcast.nn.token_batch import TokenBatch


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

    def forward(self, tokens: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """Read the group; append the weight of every token, (rows, 1, 1, tokens), to `weights`."""
        shares = torch.softmax(tokens @ self.query, dim=1)
        if weights is not None:
            weights.append(shares[:, None, None])
        pooled = (shares.unsqueeze(-1) * tokens).sum(dim=1)
        vector: Tensor = self.value(pooled) + self.join(self.bottleneck(tokens).flatten(1))
        return vector


class GroupPoolingNetwork(nn.Module):
    """Feature tokens, one vector per group by attention, attention between the groups, multi-output head.

    The structure of NCPP (arXiv 2407.03385) at a tenth of its cost: within a group one query in place of one per
    column. The head starts at zero, so an untrained network predicts the center of its standardized targets.
    Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        spec: TokenSpec,
        n_outputs: int,
        *,
        d_token: int,
        d_bottleneck: int,
        d_block: int,
        n_group_heads: int,
        n_blocks: int,
        n_frequencies: int,
        frequency_init_scale: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.number_sizes, self.category_sizes = spec.numbers_per_group, spec.categories_per_group
        self.number = NumberEmbedding(spec.n_numbers, d_token, n_frequencies, frequency_init_scale)
        self.category = CategoryEmbedding(spec, d_token)
        self.group = nn.Parameter(torch.randn(spec.n_groups, d_token) * 0.5)
        self.norm = nn.LayerNorm(d_token)
        sizes = [n + c + 1 for n, c in zip(self.number_sizes, self.category_sizes, strict=True)]
        self.pool = nn.ModuleList(GroupPooling(size, d_token, d_bottleneck, d_block) for size in sizes)
        self.inter = nn.ModuleList(
            AttentionBlock(d_block, n_group_heads, [spec.n_groups], dropout) for _ in range(n_blocks)
        )
        self.head = make_head(spec.n_groups * d_block, 2 * d_block, n_outputs, dropout)

    def forward(self, batch: TokenBatch, weights: list[Tensor] | None = None) -> Tensor:
        """Predict standardized targets; append the attention weights, of every group and then inter, to `weights`."""
        numbers = self.number(batch).split(self.number_sizes, dim=1)
        categories = self.category(batch).split(self.category_sizes, dim=1)
        groups = self.group.expand(len(batch), -1, -1).split(1, dim=1)
        vectors = [
            pool(self.norm(torch.cat(tokens, dim=1)), weights)
            for pool, *tokens in zip(self.pool, numbers, categories, groups, strict=True)
        ]
        return self.predict_groups(torch.stack(vectors, dim=1), weights)

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

    def predict_groups(self, groups: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """Predict from the vectors of all groups. Shapes: (rows, groups, d_block) to (rows, outputs)."""
        for block in self.inter:
            groups = block(groups, weights)
        prediction: Tensor = self.head(groups.flatten(1))
        return prediction


def _span(sizes: list[int], group: int) -> slice:
    start = sum(sizes[:group])
    return slice(start, start + sizes[group])
