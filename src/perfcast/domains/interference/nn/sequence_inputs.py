"""Rows with sequences as tensors: what every network over seconds reads first."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from perfcast.features.encoding.sequences import SequenceSpec
from perfcast.nn.embedding import CategoryEmbedding
from perfcast.nn.token_batch import TokenBatch


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
