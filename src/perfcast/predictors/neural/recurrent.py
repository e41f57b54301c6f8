"""Recurrent baselines of the NCPP publication (arXiv 2407.03385): `lstm` and `gru`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from perfcast.features.encoding.token_arrays import TokenSpec
from perfcast.nn.recurrent import Cell, RecurrentNetwork
from perfcast.predictors.neural.neural_predictor import NeuralPredictor


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
