"""`roofline_attention`: the roofline law, and group attention on what it leaves."""

from __future__ import annotations

from typing import cast

from perfcast.predictors._roofline_residual import RooflineResidualPredictor
from perfcast.predictors.base import Predictor
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.predictors.neural.residual_attention import ResidualAttention


class RooflineAttentionPredictor(ResidualAttention, RooflineResidualPredictor):
    """The roofline law, corrected by a group-attention network.

    Physics anchors the forecast; group attention comes from NCPP (arXiv 2407.03385). `history_` is the learning curve
    of the final network.
    """

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
        return self._new_network(linear_skip=self.linear_skip)

    @property
    def _network(self) -> GroupPoolingPredictor:
        return cast(GroupPoolingPredictor, self.learner_)
