"""`roofline_attention`: the roofline law, and group attention on what it leaves."""

from __future__ import annotations

import pandas as pd

from perfcast.predictors._attention_maps import Attention
from perfcast.predictors._roofline_residual import RooflineResidualPredictor
from perfcast.predictors.base import Predictor
from perfcast.predictors.group_pooling import GroupPoolingPredictor
from perfcast.training.devices import Machine


class RooflineAttentionPredictor(RooflineResidualPredictor):
    """The roofline law, corrected by a group-attention network.

    Physics anchors the forecast; group attention comes from NCPP (arXiv 2407.03385). `history_` is the learning curve
    of the final network.
    """

    machine: Machine = Machine()
    """What trains the network: no hyper-parameter, so it is neither cloned nor saved."""

    def __init__(
        self,
        *,
        epochs: int = 12,
        least_steps: int = 300,
        width: int = 16,
        group_width: int = 64,
        inter_blocks: int = 1,
        learning_rate: float = 2e-3,
        dropout: float = 0.0,
        grouped: bool = True,
        linear_skip: bool = False,
        random_state: int = 0,
    ) -> None:
        self.epochs, self.least_steps = epochs, least_steps
        self.width, self.group_width, self.inter_blocks = width, group_width, inter_blocks
        self.learning_rate, self.dropout = learning_rate, dropout
        self.grouped, self.linear_skip = grouped, linear_skip
        self.random_state = random_state

    def _learner(self) -> Predictor:
        network = GroupPoolingPredictor(
            linear_skip=self.linear_skip,
            epochs=self.epochs,
            least_steps=self.least_steps,
            width=self.width,
            group_width=self.group_width,
            inter_blocks=self.inter_blocks,
            learning_rate=self.learning_rate,
            dropout=self.dropout,
            grouped=self.grouped,
            random_state=self.random_state,
        )
        network.machine = self.machine
        return network

    @property
    def history_(self) -> list[dict[str, float]]:
        """The learning curve of the final network, one entry per epoch."""
        history: list[dict[str, float]] = self._network.history_
        return history

    def attention(self, X: pd.DataFrame) -> Attention:
        """Return where the fitted network looks, averaged over the rows of X."""
        return self._network.attention(X)

    @property
    def _network(self) -> GroupPoolingPredictor:
        assert isinstance(self.learner_, GroupPoolingPredictor)
        return self.learner_
