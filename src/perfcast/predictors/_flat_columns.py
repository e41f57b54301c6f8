"""A row as one vector: what the networks without tokens share."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._embedding import CategoryEmbedding, hide
from perfcast.training.data import Rows


class FlatNetwork(nn.Module):
    """A network that sees all columns of a row side by side: the number, its absence, embedded numbers, categories.

    `number` embeds the numbers, (rows, numerical, embedding); without it they come as they are. `widths` has the width
    of every part of the vector, in order.
    """

    def __init__(self, encoder: TokenEncoder, number: nn.Module | None, embedding: int, hide_rate: float) -> None:
        super().__init__()
        self.hide_rate = hide_rate
        numbers, categories = len(encoder.numbers), len(encoder.categories)
        self.number = number
        self.category = CategoryEmbedding(encoder, embedding)
        embedded = categories if number is None else numbers + categories
        self.widths = [1] * (1 + 2 * numbers) + [embedding] * embedded

    def flat(self, rows: Rows) -> Tensor:
        """Return the vector of every row; in training a share of the values is hidden first."""
        if self.training:
            rows = hide(rows, self.hide_rate)
        numbers = [] if self.number is None else [torch.relu(self.number(rows)).flatten(1)]
        # The constant input leaves something to learn from when no column of a table varies.
        constant = rows.numbers.new_ones(len(rows), 1)
        return torch.cat([constant, rows.numbers, rows.missing, *numbers, self.category(rows).flatten(1)], dim=1)
