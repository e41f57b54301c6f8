"""`mlp`: embedded columns and a residual multilayer perceptron."""

from __future__ import annotations

from torch import nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._embedding import NumberEmbedding
from perfcast.predictors._neural import NeuralPredictor
from perfcast.predictors._residual_mlp import ResidualMLP


class MLP(NeuralPredictor):
    """Residual multilayer perceptron over embedded columns; the neural baseline beside group attention."""

    def __init__(
        self,
        *,
        embedding: int = 8,
        width: int = 192,
        blocks: int = 2,
        frequencies: int = 8,
        frequency_scale: float = 1.0,
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
            number=NumberEmbedding(len(encoder.numbers), self.embedding, self.frequencies, self.frequency_scale),
            embedding=self.embedding,
            width=self.width,
            blocks=self.blocks,
            dropout=self.dropout,
            hide_rate=self.hide_rate,
        )
