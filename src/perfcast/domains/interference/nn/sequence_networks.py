"""Networks over the seconds of a window: recurrent and convolutional."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from perfcast.domains.interference.nn.sequence_inputs import StepEmbedding
from perfcast.features.encoding.sequences import SequenceSpec
from perfcast.nn.embedding import make_head
from perfcast.nn.token_batch import TokenBatch

Cell = type[nn.LSTM] | type[nn.GRU]


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
