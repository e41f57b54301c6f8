"""Attention over the seconds of a window and over its metrics: the predictor `cloudformer`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from perfcast.domains.interference.sequence_encoder import SequenceEncoder, SequenceSpec
from perfcast.features.encoding.tokens import TokenSpec
from perfcast.nn.embedding import CategoryEmbedding, TokenBatch, make_head
from perfcast.predictors.neural.neural_predictor import NeuralPredictor


def _split_sequences(batch: TokenBatch, spec: SequenceSpec) -> tuple[Tensor, Tensor]:
    """Return the sequences of a batch, and where they are missing. Shapes: both (rows, metrics, steps)."""
    shape = (len(batch), spec.n_metrics, spec.n_steps)
    values = batch.numbers[:, spec.n_static :].reshape(shape)
    missing = batch.missing[:, spec.n_static :].reshape(shape)
    return values, missing


class _StaticEmbedding(nn.Module):
    """One vector for what does not change within a window: plain numbers, and the mean of all categories.

    Shapes: rows to (rows, d_model).
    """

    def __init__(self, spec: SequenceSpec, d_model: int) -> None:
        super().__init__()
        self.n_static = spec.n_static
        self.has_categories = spec.n_categories > 0
        self.numbers = nn.Linear(1 + 2 * spec.n_static, d_model)
        self.categories = CategoryEmbedding(spec, d_model)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Embed a batch."""
        always = batch.numbers.new_ones(len(batch), 1)
        numbers = batch.numbers[:, : self.n_static]
        missing = batch.missing[:, : self.n_static]
        vector: Tensor = self.numbers(torch.cat([always, numbers, missing], dim=1))
        if self.has_categories:
            vector = vector + self.categories(batch).mean(dim=1)
        return vector


class _StepEmbedding(nn.Module):
    """One vector for each step: all metrics of that second, where they are missing, and the static vector.

    Shapes: rows to (rows, steps, d_model).
    """

    def __init__(self, spec: SequenceSpec, d_model: int, dropout: float) -> None:
        super().__init__()
        self.spec = spec
        self.static = _StaticEmbedding(spec, d_model)
        self.metrics = nn.Linear(1 + 2 * spec.n_metrics, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Embed a batch."""
        numbers, missing = _split_sequences(batch, self.spec)
        always = numbers.new_ones(len(batch), 1, self.spec.n_steps)
        steps = torch.cat([always, numbers, missing], dim=1).transpose(1, 2)
        vectors: Tensor = self.metrics(self.dropout(steps)) + self.static(batch).unsqueeze(1)
        return vectors


class _MetricEmbedding(nn.Module):
    """One vector for each metric: its seconds, where they are missing, and a vector of the metric itself.

    Shapes: rows to (rows, metrics + 1, d_model); the first vector is that of what does not change.
    """

    def __init__(self, spec: SequenceSpec, d_model: int) -> None:
        super().__init__()
        self.spec = spec
        self.static = _StaticEmbedding(spec, d_model)
        self.seconds = nn.Linear(2 * spec.n_steps, d_model)
        # every metric weighs its own last value: one projection for all could not tell a rate from a level
        self.gain = nn.Parameter(torch.ones(spec.n_metrics, d_model))
        self.identity = nn.Parameter(torch.randn(spec.n_metrics, d_model) * 0.5)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Embed a batch."""
        seconds = torch.cat(_split_sequences(batch, self.spec), dim=2)
        vectors = self.seconds(seconds) * self.gain + self.identity
        return torch.cat([self.static(batch).unsqueeze(1), vectors], dim=1)


class _Branch(nn.Module):
    """Pre-norm Transformer blocks, and a mean weighted by attention of a learned query. Shapes: (rows, tokens, d)."""

    def __init__(self, *, d_model: int, n_heads: int, n_blocks: int, d_ffn: int, dropout: float) -> None:
        super().__init__()
        layers = [
            nn.TransformerEncoderLayer(d_model, n_heads, d_ffn, dropout, batch_first=True, norm_first=True)
            for _ in range(n_blocks)
        ]
        for layer in layers:
            layer.self_attn.dropout = 0.0  # dropout of attention weights takes three times the time
        self.blocks = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(d_model)
        self.query = nn.Linear(d_model, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vector of a branch. Shapes: (rows, d)."""
        hidden = self.norm(self.blocks(tokens))
        weights = torch.softmax(self.query(hidden).squeeze(2), dim=1)
        return torch.einsum("nt,ntd->nd", weights, hidden)


class CloudFormerNetwork(nn.Module):
    """Both branches, mixed by a gate that reads both, and a head. Shapes: rows to (rows, outputs).

    The gate is one share per row and channel: share x time branch + (1 - share) x metric branch.
    """

    def __init__(
        self,
        spec: SequenceSpec,
        n_outputs: int,
        *,
        d_model: int,
        n_heads: int,
        n_blocks: int,
        d_ffn: int,
        dropout: float,
    ) -> None:
        super().__init__()
        sizes = {
            "d_model": d_model,
            "n_heads": n_heads,
            "n_blocks": n_blocks,
            "d_ffn": d_ffn,
        }
        self.steps = _StepEmbedding(spec, d_model, dropout)
        self.metrics = _MetricEmbedding(spec, d_model)
        self.position = nn.Parameter(torch.randn(spec.n_steps, d_model) * 0.5)
        self.over_time = _Branch(**sizes, dropout=dropout)
        self.over_metrics = _Branch(**sizes, dropout=dropout)
        self.gate = nn.Linear(2 * d_model, d_model)
        self.head = make_head(d_model, 2 * d_model, n_outputs, dropout)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Predict standardized targets."""
        time = self.over_time(self.steps(batch) + self.position)
        metric = self.over_metrics(self.metrics(batch))
        share = torch.sigmoid(self.gate(torch.cat([time, metric], dim=1)))
        prediction: Tensor = self.head(share * time + (1 - share) * metric)
        return prediction


@dataclass(kw_only=True, eq=False, repr=False)
class CloudFormer(NeuralPredictor):
    """Attention over the seconds of a window in one branch and over its metrics in the other, mixed by a learned gate.

    It reads sequence columns beside the plain features that do not repeat them: conf leaves the statistics of windows
    out by `without_columns`, so that the network sees the seconds themselves. Without sequence columns a row is a
    window of one second.

    After the description of CloudFormer; its code and data are not public. Differences: a window of ten seconds, a gate
    in place of their fusion, a query that pools each branch, and the loss, optimizer and budget that all neural
    predictors share.
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
    d_model: int = 32
    n_heads: int = 2
    n_blocks: int = 1
    d_ffn: int = 64

    def build_network(self, spec: TokenSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for windows of these sizes."""
        return CloudFormerNetwork(cast(SequenceSpec, spec), n_outputs, **self.network_options())
