"""Recurrent baselines of the NCPP publication (arXiv 2407.03385): `lstm` and `gru`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from perfcast.features.encoding.tokens import TokenSpec
from perfcast.nn.embedding import CategoryEmbedding, NumberEmbedding, TokenBatch, make_head
from perfcast.predictors.neural.neural_predictor import NeuralPredictor

Cell = type[nn.LSTM] | type[nn.GRU]


class RecurrentNetwork(nn.Module):
    """The columns of a row read one after the other in the encoder's order, after a learned first token.

    The head reads the mean of the states over all steps: columns have no natural end, and a hundred updates would
    erase the first columns from the last state. The first token serves tables in which no column varies. The head
    starts at zero. Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        spec: TokenSpec,
        n_outputs: int,
        *,
        cell: Cell,
        d_token: int,
        hidden_size: int,
        num_layers: int,
        n_frequencies: int,
        frequency_init_scale: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(1, d_token) * 0.5)
        self.number = NumberEmbedding(spec.n_numbers, d_token, n_frequencies, frequency_init_scale)
        self.category = CategoryEmbedding(spec, d_token)
        self.recurrent = cell(d_token, hidden_size, num_layers)
        self.head = make_head(hidden_size, 2 * hidden_size, n_outputs, dropout)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Predict standardized targets."""
        first = self.first.expand(len(batch), -1, -1)
        tokens = torch.cat([first, self.number(batch), self.category(batch)], dim=1)
        states, _ = self.recurrent(tokens.transpose(0, 1))
        prediction: Tensor = self.head(states.mean(dim=0))
        return prediction


@dataclass(kw_only=True, eq=False, repr=False)
class _RecurrentBase(NeuralPredictor):
    """The columns of a row as a sequence; a subclass names its cell."""

    cell: ClassVar[Cell]

    d_token: int = 16
    hidden_size: int = 48
    num_layers: int = 1
    n_frequencies: int = 8
    frequency_init_scale: float = 0.16
    dropout: float = 0.1
    epochs: int = 15
    batch_size: int = 128
    patience: int = 5

    def build_network(self, spec: TokenSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for tokens of these sizes."""
        return RecurrentNetwork(spec, n_outputs, cell=self.cell, **self.network_options())


@dataclass(kw_only=True, eq=False, repr=False)
class LSTM(_RecurrentBase):
    """Long short-term memory (Hochreiter & Schmidhuber 1997) over the columns of a row in a fixed order."""

    cell = nn.LSTM


@dataclass(kw_only=True, eq=False, repr=False)
class GRU(_RecurrentBase):
    """Gated recurrent units (Cho et al. 2014, arXiv 1406.1078) over the columns of a row in a fixed order."""

    cell = nn.GRU
