"""`tabm`: an implicit ensemble of perceptrons that share most weights (Gorishniy et al. 2024, arXiv 2410.24210)."""

from __future__ import annotations

from torch import nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._neural import NeuralPredictor
from perfcast.predictors._tabm import TabMNetwork


class TabM(NeuralPredictor):
    """TabM by its published package: `members` perceptrons in one, each with its own loss, averaged in the forecast.

    The members share the embeddings and every weight matrix; what is a member's own are scalings of each layer's inputs
    and outputs, biases and the head. Numbers are embedded as in `mlp_plr`, like in the paper's stronger variants (which
    take piecewise-linear embeddings). What is not the paper's: categories are embedded, their n-grams included, in
    place of one-hot; fewer members (the paper has 32); the head that starts at zero; the schedule and the linear skip.
    """

    def __init__(
        self,
        *,
        members: int = 8,
        embedding: int = 8,
        width: int = 128,
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
        self.members, self.embedding, self.width, self.blocks = members, embedding, width, blocks
        self.frequencies, self.frequency_scale = frequencies, frequency_scale
        self.dropout, self.hide_rate = dropout, hide_rate
        self.linear_skip, self.early_stopping, self.refit = linear_skip, early_stopping, refit
        self.epochs, self.least_steps, self.batch_rows = epochs, least_steps, batch_rows
        self.learning_rate, self.weight_decay, self.huber = learning_rate, weight_decay, huber
        self.gradient_norm, self.patience, self.random_state = gradient_norm, patience, random_state

    def network(self, encoder: TokenEncoder, outputs: int) -> nn.Module:
        """Return an untrained network for the tokens of `encoder`."""
        return TabMNetwork(
            encoder,
            outputs,
            members=self.members,
            embedding=self.embedding,
            width=self.width,
            blocks=self.blocks,
            frequencies=self.frequencies,
            frequency_scale=self.frequency_scale,
            dropout=self.dropout,
            hide_rate=self.hide_rate,
        )
