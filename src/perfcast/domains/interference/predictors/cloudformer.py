"""Dual-branch Transformer over seconds and metrics, and its attention weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pandas as pd
from torch import nn

from perfcast.domains.interference.nn.cloudformer import CloudFormerNetwork
from perfcast.domains.interference.predictors.sequence_networks import SequencePredictor
from perfcast.features.encoding.sequences import SequenceEncoder, SequenceSpec
from perfcast.predictors.neural.attention import Attention, mean_weights

_FUSED = "(fused)"


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
