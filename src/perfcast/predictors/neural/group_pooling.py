"""Group attention that reads each group by one query: `group_pooling`, the network of the hybrid predictors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pandas as pd
import torch
from torch import nn

from perfcast.features.encoding.tokens import TokenSpec
from perfcast.nn.embedding import TokenBatch, distinct_rows
from perfcast.nn.group_attention import GroupPoolingNetwork
from perfcast.predictors.neural.neural_predictor import PREDICT_BATCH_SIZE, NeuralPredictor
from perfcast.training.loop import BatchLoader


@dataclass(kw_only=True, eq=False, repr=False)
class GroupPoolingPredictor(NeuralPredictor):
    """Attention pooling within each group of columns, attention between groups; every task in one model.

    This is the network of the hybrid predictors without their analytical model. Its own scores measure what that model
    contributes. Without `grouped` all columns are one group.
    """

    d_token: int = 16
    d_bottleneck: int = 6
    d_block: int = 96
    n_group_heads: int = 4
    n_blocks: int = 1
    n_frequencies: int = 6
    frequency_init_scale: float = 0.16
    dropout: float = 0.0
    grouped: bool = True
    early_stopping: bool = False
    epochs: int = 20
    patience: int = 10

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        if not self.grouped:
            self.columns_ = tuple(replace(column, group="all") for column in self.columns_)
        super()._fit(X, log_y, validation)

    def _predict_scaled(self, rows: TokenBatch) -> torch.Tensor:
        # The vector of a group depends on its columns alone, and many rows share those of a group: of
        # 20,000 published results of one dataset a fifth of the groups are distinct.
        network = cast(GroupPoolingNetwork, self.network_)
        vectors = []
        for group in range(len(self.encoder_.groups)):
            first, inverse = distinct_rows(rows, *network.columns(group))
            batches = BatchLoader(rows.take(first), PREDICT_BATCH_SIZE)
            vectors.append(torch.cat([network.read_group(group, batch) for batch in batches])[inverse])
        groups = torch.stack(vectors, dim=1)
        return torch.cat([network.predict_groups(batch) for batch in groups.split(PREDICT_BATCH_SIZE)])

    def build_network(self, spec: TokenSpec, n_outputs: int) -> nn.Module:
        """Return an untrained network for tokens of these sizes."""
        return GroupPoolingNetwork(spec, n_outputs, **self.network_options("grouped"))
