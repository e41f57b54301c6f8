"""`mac`: Mamba blocks before group attention (MambaCPU, arXiv 2410.19297), in plain torch."""

from __future__ import annotations

from torch import nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._mamba import MambaGroupNetwork
from perfcast.predictors._neural import NeuralPredictor


class MaC(NeuralPredictor):
    """Mamba and group attention: selective state space blocks relate the tokens, then attention within and over groups.

    Differences from the publication: every column is taken to the width by weights of its own, with periodic terms, in
    place of one linear layer for all; one token per group is added; the read-out narrows a token before it flattens
    a group; the linear skip; the loss, optimiser and schedule shared by all neural predictors here.
    """

    def __init__(
        self,
        *,
        width: int = 16,
        states: int = 8,
        mamba_blocks: int = 2,
        heads: int = 2,
        narrow: int = 8,
        group_width: int = 128,
        group_heads: int = 4,
        frequencies: int = 8,
        frequency_scale: float = 1.0,
        dropout: float = 0.1,
        hide_rate: float = 0.02,
        linear_skip: bool = True,
        early_stopping: bool = True,
        refit: bool = True,
        epochs: int = 10,
        least_steps: int = 200,
        batch_rows: int = 128,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.02,
        huber: float = 0.3,
        gradient_norm: float = 1.0,
        patience: int = 5,
        random_state: int = 0,
    ) -> None:
        self.width, self.states, self.mamba_blocks = width, states, mamba_blocks
        self.heads, self.narrow = heads, narrow
        self.group_width, self.group_heads = group_width, group_heads
        self.frequencies, self.frequency_scale = frequencies, frequency_scale
        self.dropout, self.hide_rate = dropout, hide_rate
        self.linear_skip, self.early_stopping, self.refit = linear_skip, early_stopping, refit
        self.epochs, self.least_steps, self.batch_rows = epochs, least_steps, batch_rows
        self.learning_rate, self.weight_decay, self.huber = learning_rate, weight_decay, huber
        self.gradient_norm, self.patience, self.random_state = gradient_norm, patience, random_state

    def network(self, encoder: TokenEncoder, outputs: int) -> nn.Module:
        """Return an untrained network for the tokens of `encoder`."""
        return MambaGroupNetwork(
            encoder,
            outputs,
            width=self.width,
            states=self.states,
            mamba_blocks=self.mamba_blocks,
            heads=self.heads,
            intra_blocks=1,
            narrow=self.narrow,
            group_width=self.group_width,
            group_heads=self.group_heads,
            inter_blocks=1,
            frequencies=self.frequencies,
            frequency_scale=self.frequency_scale,
            dropout=self.dropout,
            hide_rate=self.hide_rate,
        )
