"""`resnet`: the ResNet for tables of Gorishniy et al. 2021 (arXiv 2106.11959)."""

from __future__ import annotations

from torch import nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._neural import NeuralPredictor
from perfcast.predictors._resnet import ResNetNetwork


class ResNet(NeuralPredictor):
    """The published ResNet for tables: numbers as they are, embedded categories, residual blocks with BatchNorm.

    It is close kin to `mlp`, which has the same residual layers. What is the paper's here and not in `mlp`: BatchNorm
    in place of LayerNorm, a second dropout at the end of each block, and no embedding of the numbers. What is not the
    paper's, and shared with the other networks: n-grams in the category embeddings, the inputs that mark missing
    values, the head that starts at zero, the schedule and the linear skip.
    """

    def __init__(
        self,
        *,
        embedding: int = 8,
        width: int = 192,
        hidden: int = 384,
        blocks: int = 2,
        hidden_dropout: float = 0.1,
        residual_dropout: float = 0.0,
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
        self.embedding, self.width, self.hidden, self.blocks = embedding, width, hidden, blocks
        self.hidden_dropout, self.residual_dropout, self.hide_rate = hidden_dropout, residual_dropout, hide_rate
        self.linear_skip, self.early_stopping, self.refit = linear_skip, early_stopping, refit
        self.epochs, self.least_steps, self.batch_rows = epochs, least_steps, batch_rows
        self.learning_rate, self.weight_decay, self.huber = learning_rate, weight_decay, huber
        self.gradient_norm, self.patience, self.random_state = gradient_norm, patience, random_state

    def network(self, encoder: TokenEncoder, outputs: int) -> nn.Module:
        """Return an untrained network for the tokens of `encoder`."""
        return ResNetNetwork(
            encoder,
            outputs,
            embedding=self.embedding,
            width=self.width,
            hidden=self.hidden,
            blocks=self.blocks,
            hidden_dropout=self.hidden_dropout,
            residual_dropout=self.residual_dropout,
            hide_rate=self.hide_rate,
        )
