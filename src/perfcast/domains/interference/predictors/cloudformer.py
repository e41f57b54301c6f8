"""Dual-branch Transformer over seconds and metrics, and its attention weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pandas as pd
import torch
from torch import Tensor, nn

from perfcast.domains.interference.predictors.sequence_networks import (
    SequencePredictor,
    StaticEmbedding,
    StepEmbedding,
    split_sequences,
)
from perfcast.domains.interference.sequence_encoder import SequenceEncoder, SequenceSpec
from perfcast.nn.embedding import make_head
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.attention import Attention, mean_weights

_FUSED = "(fused)"


class MetricEmbedding(nn.Module):
    """One vector for each metric: its seconds, where they are missing, and a vector of the metric itself.

    Shapes: rows to (rows, metrics + 1, d_model); the first vector is that of what does not change.
    """

    def __init__(self, spec: SequenceSpec, d_model: int) -> None:
        super().__init__()
        self.spec = spec
        self.static = StaticEmbedding(spec, d_model)
        self.seconds = nn.Linear(2 * spec.n_steps, d_model)
        # every metric weighs its own last value: one projection for all could not tell a rate from a level
        self.gain = nn.Parameter(torch.ones(spec.n_metrics, d_model))
        self.identity = nn.Parameter(torch.randn(spec.n_metrics, d_model) * 0.5)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Embed a batch."""
        vectors = self.seconds(torch.cat(split_sequences(batch, self.spec), dim=2)) * self.gain + self.identity
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

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the vector of a branch, and the weight of every token. Shapes: (rows, d), (rows, tokens)."""
        hidden = self.norm(self.blocks(tokens))
        weights = torch.softmax(self.query(hidden).squeeze(2), dim=1)
        return torch.einsum("nt,ntd->nd", weights, hidden), weights


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
        sizes = {"d_model": d_model, "n_heads": n_heads, "n_blocks": n_blocks, "d_ffn": d_ffn}
        self.steps, self.metrics = StepEmbedding(spec, d_model, dropout), MetricEmbedding(spec, d_model)
        self.position = nn.Parameter(torch.randn(spec.n_steps, d_model) * 0.5)
        self.over_time = _Branch(**sizes, dropout=dropout)
        self.over_metrics = _Branch(**sizes, dropout=dropout)
        self.gate = nn.Linear(2 * d_model, d_model)
        self.head = make_head(d_model, 2 * d_model, n_outputs, dropout)

    def forward(self, batch: TokenBatch, weights: list[Tensor] | None = None) -> Tensor:
        """Predict standardized targets; `weights` receives the shares of seconds, of metrics and of the branches.

        Shapes: each (rows, 1, 1, tokens).
        """
        time, seconds = self.over_time(self.steps(batch) + self.position)
        metric, names = self.over_metrics(self.metrics(batch))
        share = torch.sigmoid(self.gate(torch.cat([time, metric], dim=1)))
        if weights is not None:
            of_time = share.mean(dim=1, keepdim=True)
            weights += [part[:, None, None, :] for part in (seconds, names, torch.cat([of_time, 1 - of_time], dim=1))]
        prediction: Tensor = self.head(share * time + (1 - share) * metric)
        return prediction


@dataclass(kw_only=True, eq=False, repr=False)
class CloudFormer(SequencePredictor):
    """Attention over the seconds of a window in one branch and over its metrics in the other, mixed by a learned gate.

    After the description of CloudFormer; its code and data are not public. Differences: a window of ten seconds, a gate
    in place of their fusion, a query that pools each branch, and the loss, optimizer and budget that all neural
    predictors share.
    """

    d_model: int = 32
    n_heads: int = 2
    n_blocks: int = 1
    d_ffn: int = 64

    def build_sequence_network(self, spec: SequenceSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for windows of these sizes."""
        return CloudFormerNetwork(spec, n_outputs, **self.network_options())

    def attention(self, X: pd.DataFrame) -> Attention:
        """Return the mean shares of seconds, of metrics and of both branches over the rows of X."""
        encoder = cast(SequenceEncoder, self.encoder_)
        seconds, metrics, branches = mean_weights(self.network_, self.encode_inputs(X))
        steps = [f"{step} s ago" for step in reversed(range(encoder.n_steps))]
        intra = {
            "time": pd.DataFrame(seconds, index=[_FUSED], columns=steps),
            "metrics": pd.DataFrame(metrics, index=[_FUSED], columns=["(static)", *encoder.metric_names]),
        }
        return Attention(intra, pd.DataFrame(branches, index=[_FUSED], columns=["time", "metrics"]))
