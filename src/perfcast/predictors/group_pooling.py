"""`group_pooling`: group attention that reads each group by one question."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pandas as pd
import torch
from torch import nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._attention_maps import Attention, mean_weights
from perfcast.predictors._group_pooling import GroupPoolingNetwork, distinct_rows
from perfcast.predictors._neural import PREDICT_BATCH_ROWS, NeuralPredictor
from perfcast.training.data import Batches, Rows


class GroupPoolingPredictor(NeuralPredictor):
    """Attention pooling within each group of columns, attention between groups; every task in one model.

    The network of `law_attention`, here without the laws: on its own it says what they are worth. Without `grouped` all
    columns are one group.
    """

    def __init__(
        self,
        *,
        width: int = 16,
        narrow: int = 6,
        group_width: int = 96,
        group_heads: int = 4,
        inter_blocks: int = 1,
        frequencies: int = 6,
        frequency_scale: float = 1.0,
        dropout: float = 0.0,
        hide_rate: float = 0.02,
        grouped: bool = True,
        linear_skip: bool = True,
        early_stopping: bool = False,
        refit: bool = True,
        epochs: int = 20,
        least_steps: int = 200,
        batch_rows: int = 256,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.02,
        huber: float = 0.3,
        gradient_norm: float = 1.0,
        patience: int = 10,
        random_state: int = 0,
    ) -> None:
        self.width, self.narrow, self.group_width = width, narrow, group_width
        self.group_heads, self.inter_blocks = group_heads, inter_blocks
        self.frequencies, self.frequency_scale = frequencies, frequency_scale
        self.dropout, self.hide_rate = dropout, hide_rate
        self.grouped = grouped
        self.linear_skip, self.early_stopping, self.refit = linear_skip, early_stopping, refit
        self.epochs, self.least_steps, self.batch_rows = epochs, least_steps, batch_rows
        self.learning_rate, self.weight_decay, self.huber = learning_rate, weight_decay, huber
        self.gradient_norm, self.patience, self.random_state = gradient_norm, patience, random_state

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, valid: np.ndarray) -> None:
        if not self.grouped:
            self.columns_ = tuple(replace(column, group="all") for column in self.columns_)
        super()._fit(X, log_y, valid)

    def _answers(self, rows: Rows) -> torch.Tensor:
        # What a group says depends on its columns alone, and many machines share a processor, a memory, a workload:
        # of 20,000 published SPEC results a fifth of the groups are distinct.
        network, read = cast(GroupPoolingNetwork, self.network_), []
        for group in range(len(self.encoder_.groups)):
            first, place = distinct_rows(rows, *network.columns(group))
            batches = Batches(rows.take(first), PREDICT_BATCH_ROWS)
            read.append(torch.cat([network.read(group, batch) for batch in batches])[place])
        groups = torch.stack(read, dim=1)
        return torch.cat([network.answer(part) for part in groups.split(PREDICT_BATCH_ROWS)])

    def attention(self, X: pd.DataFrame) -> Attention:
        """Return where the fitted network looks, averaged over the rows of X."""
        tokens = self.encoder_.transform(self._inputs(X))
        maps = mean_weights(self.network_, Rows.of(tokens, np.full((len(X), len(self.targets_)), np.nan)))
        groups = self.encoder_.groups
        intra, blocks = maps[: len(groups)], maps[len(groups) :]
        # without a block between groups each one hears itself alone
        inter = blocks[-1] if blocks else np.eye(len(groups))
        names = {group: [*self.encoder_.token_names(group), "(group)"] for group in groups}
        read = {
            group: pd.DataFrame(shares, index=["(group)"], columns=names[group])
            for group, shares in zip(groups, intra, strict=True)
        }
        return Attention(read, pd.DataFrame(inter, index=list(groups), columns=list(groups)))

    def network(self, encoder: TokenEncoder, outputs: int) -> nn.Module:
        """Return an untrained network for the tokens of `encoder`."""
        return GroupPoolingNetwork(
            encoder,
            outputs,
            width=self.width,
            narrow=self.narrow,
            group_width=self.group_width,
            group_heads=self.group_heads,
            inter_blocks=self.inter_blocks,
            frequencies=self.frequencies,
            frequency_scale=self.frequency_scale,
            dropout=self.dropout,
            hide_rate=self.hide_rate,
        )
