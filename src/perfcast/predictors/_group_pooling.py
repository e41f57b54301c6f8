"""Group attention in which a group reads its columns by one learned question: a tenth of the cost."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._embedding import CategoryEmbedding, NumberEmbedding, hide
from perfcast.predictors._group_attention import AttentionBlock
from perfcast.training.data import Rows


class GroupPooling(nn.Module):
    """The tokens of one group to one vector: attention by one learned question, and every token narrowed side by side.

    The attention finds what matters in a row; the narrow tokens keep each column's own weights, which a mean would take
    from it. Shapes: (rows, tokens, width) to (rows, group_width).
    """

    def __init__(self, tokens: int, width: int, narrow: int, group_width: int) -> None:
        super().__init__()
        self.question = nn.Parameter(torch.randn(width) * width**-0.5)
        self.value = nn.Linear(width, group_width)
        self.narrow = nn.Linear(width, narrow)
        self.join = nn.Linear(tokens * narrow, group_width)

    def forward(self, tokens: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """Read the group; the share of every token, (rows, 1, 1, tokens), is added to `weights`."""
        shares = torch.softmax(tokens @ self.question, dim=1)
        if weights is not None:
            weights.append(shares[:, None, None])
        seen = (shares.unsqueeze(-1) * tokens).sum(dim=1)
        read: Tensor = self.value(seen) + self.join(self.narrow(tokens).flatten(1))
        return read


class GroupPoolingNetwork(nn.Module):
    """Feature tokens, one vector per group by attention, attention between the groups, multi-output head.

    The structure of NCPP (arXiv 2407.03385) at a tenth of its cost: within a group one question in place of one per
    column. The head starts at zero, so an untrained network forecasts the centre of its standardised targets.
    Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        outputs: int,
        *,
        width: int,
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
        groups = range(len(encoder.groups))
        self.number_sizes = [numbers.count(group) for group in groups]
        self.category_sizes = [categories.count(group) for group in groups]
        self.number = NumberEmbedding(len(numbers), width, frequencies, frequency_scale)
        self.category = CategoryEmbedding(encoder, width)
        self.own = nn.Parameter(torch.randn(len(groups), width) * 0.5)
        self.norm = nn.LayerNorm(width)
        sizes = [n + c + 1 for n, c in zip(self.number_sizes, self.category_sizes, strict=True)]
        self.pool = nn.ModuleList(GroupPooling(size, width, narrow, group_width) for size in sizes)
        self.inter = nn.ModuleList(
            AttentionBlock(group_width, group_heads, [len(groups)], dropout) for _ in range(inter_blocks)
        )
        joined = len(groups) * group_width
        self.head = nn.Sequential(
            nn.LayerNorm(joined),
            nn.Linear(joined, 2 * group_width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * group_width, outputs),
        )
        for parameter in self.head[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, rows: Rows, weights: list[Tensor] | None = None) -> Tensor:
        """Forecast standardised targets; attention weights, of every group and then inter, are added to `weights`."""
        if self.training:
            rows = hide(rows, self.hide_rate)
        numbers = self.number(rows).split(self.number_sizes, dim=1)
        categories = self.category(rows).split(self.category_sizes, dim=1)
        own = self.own.expand(len(rows), -1, -1).split(1, dim=1)
        groups = torch.stack(
            [
                pool(self.norm(torch.cat(tokens, dim=1)), weights)
                for pool, *tokens in zip(self.pool, numbers, categories, own, strict=True)
            ],
            dim=1,
        )
        return self.answer(groups, weights)

    def read(self, group: int, rows: Rows) -> Tensor:
        """Read one group, as `forward` does, from its own columns. Shapes: rows to (rows, group_width)."""
        numbers, categories = self.columns(group)
        own = self.own[group].expand(len(rows), 1, -1)
        tokens = torch.cat([self.number(rows, numbers), self.category(rows, categories), own], dim=1)
        read: Tensor = self.pool[group](self.norm(tokens))
        return read

    def columns(self, group: int) -> tuple[slice, slice]:
        """Return which numbers and which categories are a group's."""
        return _span(self.number_sizes, group), _span(self.category_sizes, group)

    def answer(self, groups: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """Forecast from what was read of every group. Shapes: (rows, groups, group_width) to (rows, outputs)."""
        for block in self.inter:
            groups = block(groups, weights)
        forecast: Tensor = self.head(groups.flatten(1))
        return forecast


def distinct_rows(rows: Rows, numbers: slice, categories: slice) -> tuple[Tensor, Tensor]:
    """Return the first row of every distinct content of some columns, and where every row's own is among them.

    Shapes: (distinct,) and (rows,) int64.
    """
    parts = [rows.numbers[:, numbers], rows.missing[:, numbers], rows.codes[:, categories], rows.strings[:, categories]]
    nothing = np.zeros((len(rows), 1), dtype=np.uint8)  # rows without any column are all alike
    table = np.concatenate([nothing, *(np.ascontiguousarray(part.numpy()).view(np.uint8) for part in parts)], axis=1)
    # compared as bytes: exact, and one sort for all columns
    content = table.view(np.dtype((np.void, table.shape[1])))[:, 0]
    _, first, place = np.unique(content, return_index=True, return_inverse=True)
    return torch.from_numpy(first), torch.from_numpy(place)


def _span(sizes: list[int], group: int) -> slice:
    start = sum(sizes[:group])
    return slice(start, start + sizes[group])
