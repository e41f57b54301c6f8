"""`mlp_plr`: the network of `mlp` over periodic number embeddings (Gorishniy et al. 2022, arXiv 2203.05556)."""

from __future__ import annotations

from torch import nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._neural import NeuralPredictor
from perfcast.predictors._periodic_numbers import PeriodicNumbers
from perfcast.predictors._residual_mlp import ResidualMLP


class MLPPLR(NeuralPredictor):
    """The network of `mlp` with the published PLR(lite) embeddings of numbers, by the package of their authors.

    A number goes through sines and cosines at learned frequencies of its own, then through one linear layer that all
    columns share, then ReLU. `mlp` has frequencies too, but a straight line beside them, a layer for every column, and
    its own initial scale: without the factor 2 pi, 1.0 there is 0.16 here.
    """

    def __init__(
        self,
        *,
        embedding: int = 8,
        width: int = 192,
        blocks: int = 2,
        frequencies: int = 8,
        frequency_scale: float = 0.1,
        dropout: float = 0.1,
        hide_rate: float = 0.02,
        linear_skip: bool = True,
        early_stopping: bool = True,
        refit: bool = True,
        epochs: int = 40,
        least_steps: int = 200,
        batch_rows: int = 256,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.02,
        huber: float = 0.3,
        gradient_norm: float = 1.0,
        patience: int = 12,
        random_state: int = 0,
    ) -> None:
        self.embedding, self.width, self.blocks = embedding, width, blocks
        self.frequencies, self.frequency_scale = frequencies, frequency_scale
        self.dropout, self.hide_rate = dropout, hide_rate
        self.linear_skip, self.early_stopping, self.refit = linear_skip, early_stopping, refit
        self.epochs, self.least_steps, self.batch_rows = epochs, least_steps, batch_rows
        self.learning_rate, self.weight_decay, self.huber = learning_rate, weight_decay, huber
        self.gradient_norm, self.patience, self.random_state = gradient_norm, patience, random_state

    def network(self, encoder: TokenEncoder, outputs: int) -> nn.Module:
        """Return an untrained network for the tokens of `encoder`."""
        return ResidualMLP(
            encoder,
            outputs,
            number=PeriodicNumbers(len(encoder.numbers), self.embedding, self.frequencies, self.frequency_scale),
            embedding=self.embedding,
            width=self.width,
            blocks=self.blocks,
            dropout=self.dropout,
            hide_rate=self.hide_rate,
        )
