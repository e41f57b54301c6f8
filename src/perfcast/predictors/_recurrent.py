"""Recurrent networks over feature tokens: what `lstm` and `gru` share."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._embedding import CategoryEmbedding, NumberEmbedding, hide
from perfcast.predictors._neural import NeuralPredictor
from perfcast.training.data import Rows

Cell = type[nn.LSTM] | type[nn.GRU]


class RecurrentNetwork(nn.Module):
    """The columns of a row read one after the other in the encoder's order, after a learned first token.

    The head reads the mean of the states over all steps: columns have no natural end, and the last state would know the
    first of a hundred columns by what a hundred updates left of it. The first token leaves something to read when no
    column of a table varies. The head starts at zero. Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        outputs: int,
        *,
        cell: Cell,
        embedding: int,
        width: int,
        layers: int,
        frequencies: int,
        frequency_scale: float,
        dropout: float,
        hide_rate: float,
    ) -> None:
        super().__init__()
        self.hide_rate = hide_rate
        self.first = nn.Parameter(torch.randn(1, embedding) * 0.5)
        self.number = NumberEmbedding(len(encoder.numbers), embedding, frequencies, frequency_scale)
        self.category = CategoryEmbedding(encoder, embedding)
        self.recurrent = cell(embedding, width, layers)
        self.head = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 2 * width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * width, outputs),
        )
        for parameter in self.head[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, rows: Rows) -> Tensor:
        """Forecast standardised targets."""
        if self.training:
            rows = hide(rows, self.hide_rate)
        first = self.first.expand(len(rows), -1, -1)
        tokens = torch.cat([first, self.number(rows), self.category(rows)], dim=1)
        states, _ = self.recurrent(tokens.transpose(0, 1))
        forecast: Tensor = self.head(states.mean(dim=0))
        return forecast


class RecurrentPredictor(NeuralPredictor):
    """A recurrent baseline of the NCPP publication (arXiv 2407.03385); a subclass names its cell."""

    cell: ClassVar[Cell]

    def __init__(
        self,
        *,
        embedding: int = 16,
        width: int = 48,
        layers: int = 1,
        frequencies: int = 8,
        frequency_scale: float = 1.0,
        dropout: float = 0.1,
        hide_rate: float = 0.02,
        linear_skip: bool = True,
        early_stopping: bool = True,
        refit: bool = True,
        epochs: int = 15,
        least_steps: int = 200,
        batch_rows: int = 128,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.02,
        huber: float = 0.3,
        gradient_norm: float = 1.0,
        patience: int = 5,
        random_state: int = 0,
    ) -> None:
        self.embedding, self.width, self.layers = embedding, width, layers
        self.frequencies, self.frequency_scale = frequencies, frequency_scale
        self.dropout, self.hide_rate = dropout, hide_rate
        self.linear_skip, self.early_stopping, self.refit = linear_skip, early_stopping, refit
        self.epochs, self.least_steps, self.batch_rows = epochs, least_steps, batch_rows
        self.learning_rate, self.weight_decay, self.huber = learning_rate, weight_decay, huber
        self.gradient_norm, self.patience, self.random_state = gradient_norm, patience, random_state

    def network(self, encoder: TokenEncoder, outputs: int) -> nn.Module:
        """Return an untrained network for the tokens of `encoder`."""
        return RecurrentNetwork(
            encoder,
            outputs,
            cell=self.cell,
            embedding=self.embedding,
            width=self.width,
            layers=self.layers,
            frequencies=self.frequencies,
            frequency_scale=self.frequency_scale,
            dropout=self.dropout,
            hide_rate=self.hide_rate,
        )
