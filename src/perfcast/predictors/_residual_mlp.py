"""A residual multilayer perceptron over embedded columns."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._embedding import CategoryEmbedding, NumberEmbedding, hide
from perfcast.training.data import Rows


class ResidualMLP(nn.Module):
    """Embedded columns side by side, then pre-norm residual layers (Gorishniy et al. 2021, arXiv 2106.11959).

    The head starts at zero. Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        outputs: int,
        *,
        embedding: int,
        width: int,
        blocks: int,
        frequencies: int,
        frequency_scale: float,
        dropout: float,
        hide_rate: float,
    ) -> None:
        super().__init__()
        self.hide_rate = hide_rate
        numbers, categories = len(encoder.numbers), len(encoder.categories)
        self.number = NumberEmbedding(numbers, embedding, frequencies, frequency_scale)
        self.category = CategoryEmbedding(encoder, embedding)
        self.enter = nn.Linear(1 + 2 * numbers + (numbers + categories) * embedding, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width),
                nn.Linear(width, 2 * width),
                nn.ReLU(),
                nn.Dropout(dropout),
                nn.Linear(2 * width, width),
            )
            for _ in range(blocks)
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, outputs))
        for parameter in self.head[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, rows: Rows) -> Tensor:
        """Forecast standardised targets."""
        if self.training:
            rows = hide(rows, self.hide_rate)
        embedded = [torch.relu(self.number(rows)).flatten(1), self.category(rows).flatten(1)]
        # The constant input leaves something to learn from when no column of a table varies.
        x = self.enter(torch.cat([rows.numbers.new_ones(len(rows), 1), rows.numbers, rows.missing, *embedded], dim=1))
        for block in self.blocks:
            x = x + block(x)
        forecast: Tensor = self.head(x)
        return forecast
