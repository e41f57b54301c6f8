"""Neural predictors over the seconds of a window: `sequence_lstm`, `sequence_gru` and `tcn`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from perfcast.domains.interference.sequence_encoder import SequenceEncoder, SequenceSpec
from perfcast.features.encoding.tokens import TokenSpec
from perfcast.nn.embedding import CategoryEmbedding, make_head
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.neural_predictor import NeuralPredictor
from perfcast.predictors.task_rows import task_labels

Cell = type[nn.LSTM] | type[nn.GRU]


def split_sequences(batch: TokenBatch, spec: SequenceSpec) -> tuple[Tensor, Tensor]:
    """Return the sequences of a batch, and where they are missing. Shapes: both (rows, metrics, steps)."""
    shape = (len(batch), spec.n_metrics, spec.n_steps)
    return batch.numbers[:, spec.n_static :].reshape(shape), batch.missing[:, spec.n_static :].reshape(shape)


class StaticEmbedding(nn.Module):
    """One vector for what does not change within a window: plain numbers, and the mean of all categories.

    Shapes: rows to (rows, d_model).
    """

    def __init__(self, spec: SequenceSpec, d_model: int) -> None:
        super().__init__()
        self.n_static, self.has_categories = spec.n_static, spec.n_categories > 0
        self.numbers = nn.Linear(1 + 2 * spec.n_static, d_model)
        self.categories = CategoryEmbedding(spec, d_model)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Embed a batch."""
        always = batch.numbers.new_ones(len(batch), 1)
        some = slice(0, self.n_static)
        vector: Tensor = self.numbers(torch.cat([always, batch.numbers[:, some], batch.missing[:, some]], dim=1))
        return vector + self.categories(batch).mean(dim=1) if self.has_categories else vector


class StepEmbedding(nn.Module):
    """One vector for each step: all metrics of that second, where they are missing, and the static vector.

    Shapes: rows to (rows, steps, d_model).
    """

    def __init__(self, spec: SequenceSpec, d_model: int, dropout: float) -> None:
        super().__init__()
        self.spec = spec
        self.static = StaticEmbedding(spec, d_model)
        self.metrics = nn.Linear(1 + 2 * spec.n_metrics, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Embed a batch."""
        numbers, missing = split_sequences(batch, self.spec)
        always = numbers.new_ones(len(batch), 1, self.spec.n_steps)
        steps = torch.cat([always, numbers, missing], dim=1).transpose(1, 2)
        vectors: Tensor = self.metrics(self.dropout(steps)) + self.static(batch).unsqueeze(1)
        return vectors


class RecurrentSequenceNetwork(nn.Module):
    """A recurrent cell over the steps; the head reads the last state and the mean of all. Shapes: (rows, outputs)."""

    def __init__(
        self,
        spec: SequenceSpec,
        n_outputs: int,
        *,
        cell: Cell,
        d_model: int,
        hidden_size: int,
        num_layers: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.steps = StepEmbedding(spec, d_model, dropout)
        self.recurrent = cell(d_model, hidden_size, num_layers)
        self.head = make_head(2 * hidden_size, 2 * hidden_size, n_outputs, dropout)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Predict standardized targets."""
        states, _ = self.recurrent(self.steps(batch).transpose(0, 1))
        prediction: Tensor = self.head(torch.cat([states[-1], states.mean(dim=0)], dim=1))
        return prediction


class _CausalBlock(nn.Module):
    """Two dilated convolutions that see earlier steps only, beside an identity. Shapes: (rows, channels, steps)."""

    def __init__(self, channels: int, kernel_size: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.padding = (kernel_size - 1) * dilation
        self.first = nn.Conv1d(channels, channels, kernel_size, dilation=dilation)
        self.second = nn.Conv1d(channels, channels, kernel_size, dilation=dilation)
        self.norm = nn.GroupNorm(1, channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, steps: Tensor) -> Tensor:
        """Return the steps of the next layer."""
        hidden = torch.relu(self.first(nn.functional.pad(self.norm(steps), (self.padding, 0))))
        hidden = self.second(nn.functional.pad(self.dropout(hidden), (self.padding, 0)))
        following: Tensor = steps + hidden
        return following


class TemporalConvolutionNetwork(nn.Module):
    """Causal convolutions of dilation 1, 2, 4 and so on; the head reads the last step and the mean of all.

    Shapes: rows to (rows, outputs).
    """

    def __init__(
        self, spec: SequenceSpec, n_outputs: int, *, d_model: int, n_blocks: int, kernel_size: int, dropout: float
    ) -> None:
        super().__init__()
        self.steps = StepEmbedding(spec, d_model, dropout)
        self.blocks = nn.Sequential(
            *(_CausalBlock(d_model, kernel_size, 2**block, dropout) for block in range(n_blocks))
        )
        self.head = make_head(2 * d_model, 2 * d_model, n_outputs, dropout)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Predict standardized targets."""
        steps = self.blocks(self.steps(batch).transpose(1, 2))
        prediction: Tensor = self.head(torch.cat([steps[:, :, -1], steps.mean(dim=2)], dim=1))
        return prediction


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
