"""`ncpp`: group attention over machine characteristics (arXiv 2407.03385), corrected."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._attention_maps import Attention, mean_weights
from perfcast.predictors._group_attention import GroupAttentionNetwork
from perfcast.predictors._neural import NeuralPredictor
from perfcast.training.data import Rows


class NCPP(NeuralPredictor):
    """Group attention: intra-group, then inter-group, then one head for all targets, with every task in one model.

    Differences from the published network, beside the corrections: one token per column in place of convolutions over
    columns; a read-out into a wider vector per group in place of a mean; character n-grams in place of single
    characters; the linear skip.
    """

    def __init__(
        self,
        *,
        width: int = 32,
        heads: int = 2,
        intra_blocks: int = 1,
        narrow: int = 8,
        group_width: int = 128,
        group_heads: int = 4,
        inter_blocks: int = 1,
        frequencies: int = 8,
        frequency_scale: float = 1.0,
        dropout: float = 0.1,
        hide_rate: float = 0.02,
        linear_skip: bool = True,
        early_stopping: bool = True,
        refit: bool = True,
        epochs: int = 25,
        least_steps: int = 200,
        batch_rows: int = 256,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.02,
        huber: float = 0.3,
        gradient_norm: float = 1.0,
        patience: int = 10,
        random_state: int = 0,
    ) -> None:
        self.width, self.heads, self.intra_blocks = width, heads, intra_blocks
        self.narrow, self.group_width = narrow, group_width
        self.group_heads, self.inter_blocks = group_heads, inter_blocks
        self.frequencies, self.frequency_scale = frequencies, frequency_scale
        self.dropout, self.hide_rate = dropout, hide_rate
        self.linear_skip, self.early_stopping, self.refit = linear_skip, early_stopping, refit
        self.epochs, self.least_steps, self.batch_rows = epochs, least_steps, batch_rows
        self.learning_rate, self.weight_decay, self.huber = learning_rate, weight_decay, huber
        self.gradient_norm, self.patience, self.random_state = gradient_norm, patience, random_state

    def attention(self, X: pd.DataFrame) -> Attention:
        """Return where the fitted network looks, averaged over the rows of X."""
        tokens = self.encoder_.transform(self._inputs(X))
        means = mean_weights(self.network_, Rows.of(tokens, np.full((len(X), len(self.targets_)), np.nan)))
        groups = self.encoder_.groups
        last_intra = means[(self.intra_blocks - 1) * len(groups) : self.intra_blocks * len(groups)]
        intra = {}
        for group, shares in zip(groups, last_intra, strict=True):
            names = [*self.encoder_.token_names(group), "(group)"]
            intra[group] = pd.DataFrame(shares, index=names, columns=names)
        return Attention(intra, pd.DataFrame(means[-1], index=list(groups), columns=list(groups)))

    def network(self, encoder: TokenEncoder, outputs: int) -> nn.Module:
        """Return an untrained network for the tokens of `encoder`."""
        return GroupAttentionNetwork(
            encoder,
            outputs,
            width=self.width,
            heads=self.heads,
            intra_blocks=self.intra_blocks,
            narrow=self.narrow,
            group_width=self.group_width,
            group_heads=self.group_heads,
            inter_blocks=self.inter_blocks,
            frequencies=self.frequencies,
            frequency_scale=self.frequency_scale,
            dropout=self.dropout,
            hide_rate=self.hide_rate,
        )
