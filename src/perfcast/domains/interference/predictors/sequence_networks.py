"""Neural predictors over the seconds of a window: `sequence_lstm`, `sequence_gru` and `tcn`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import pandas as pd
from torch import nn

from perfcast.domains.interference.nn.sequence_networks import (
    Cell,
    RecurrentSequenceNetwork,
    TemporalConvolutionNetwork,
)
from perfcast.features.encoding.sequences import SequenceEncoder, SequenceSpec
from perfcast.features.encoding.token_arrays import TokenSpec
from perfcast.predictors.neural.neural_predictor import NeuralPredictor
from perfcast.predictors.task_rows import task_labels


@dataclass(kw_only=True, eq=False, repr=False)
class SequencePredictor(NeuralPredictor):
    """A network over sequence columns, beside the plain features that do not repeat them.

    Conf leaves the statistics of windows out by `without_columns`: the network sees the seconds themselves. Without
    sequence columns a row is a window of one second. A subclass implements `build_sequence_network`.
    """

    reads_sequences = True
    encoder_class = SequenceEncoder

    linear_skip: bool = False
    epochs: int = 12
    steps_per_epoch: int = 100
    batch_size: int = 128
    patience: int = 4
    learning_rate: float = 3e-3
    dropout: float = 0.1

    def build_network(self, spec: TokenSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for rows of these sizes."""
        return self.build_sequence_network(cast(SequenceSpec, spec), n_outputs)

    def predict_windows(self, X: pd.DataFrame, windows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Predict rows whose sequences are not in X: a frame of hundreds of them takes longer than the network.

        Shapes: `windows` (n, steps) by name -> (n, targets), all of them, in the targets' units.
        """
        encoder = cast(SequenceEncoder, self.encoder_)
        tokens = encoder.transform_windows(X, windows)
        return np.asarray(np.exp(self._predict_tokens(tokens, task_labels(X, self.columns_))))

    @abstractmethod
    def build_sequence_network(self, spec: SequenceSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for windows of these sizes."""


@dataclass(kw_only=True, eq=False, repr=False)
class _RecurrentBase(SequencePredictor):
    """A recurrent network over seconds; a subclass names its cell."""

    cell: ClassVar[Cell]

    d_model: int = 48
    hidden_size: int = 64
    num_layers: int = 1

    def build_sequence_network(self, spec: SequenceSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for windows of these sizes."""
        return RecurrentSequenceNetwork(spec, n_outputs, cell=self.cell, **self.network_options())


@dataclass(kw_only=True, eq=False, repr=False)
class SequenceLSTM(_RecurrentBase):
    """Long short-term memory (Hochreiter & Schmidhuber 1997) over the seconds of a window."""

    cell = nn.LSTM


@dataclass(kw_only=True, eq=False, repr=False)
class SequenceGRU(_RecurrentBase):
    """Gated recurrent units (Cho et al. 2014, arXiv 1406.1078) over the seconds of a window."""

    cell = nn.GRU


@dataclass(kw_only=True, eq=False, repr=False)
class TemporalConvolution(SequencePredictor):
    """Temporal convolution network (Bai, Kolter & Koltun 2018, arXiv 1803.01271) over the seconds of a window."""

    d_model: int = 48
    n_blocks: int = 3
    kernel_size: int = 2

    def build_sequence_network(self, spec: SequenceSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for windows of these sizes."""
        return TemporalConvolutionNetwork(spec, n_outputs, **self.network_options())
