"""`law_attention`: the laws, and group attention on what they leave."""

from __future__ import annotations

from typing import cast

from perfcast.predictors._law_residual import LawResidualPredictor
from perfcast.predictors.base import Predictor
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.predictors.neural.residual_attention import ResidualAttention


class LawAttentionPredictor(ResidualAttention, LawResidualPredictor):
    """The mean of the laws with weights from rehearsals, corrected by a group-attention network.

    Structure and extrapolation come from the laws, group attention from NCPP (arXiv 2407.03385). `history_` is the
    learning curve of the final network.
    """

    def __init__(
        self,
        *,
        epochs: int = 20,
        least_steps: int = 200,
        width: int = 16,
        group_width: int = 96,
        inter_blocks: int = 1,
        learning_rate: float = 2e-3,
        dropout: float = 0.0,
        grouped: bool = True,
        announced: bool = True,
        rehearsed: bool = True,
        random_state: int = 0,
    ) -> None:
        self.announced, self.rehearsed = announced, rehearsed
        self.epochs, self.least_steps = epochs, least_steps
        self.width, self.group_width, self.inter_blocks = width, group_width, inter_blocks
        self.learning_rate, self.dropout = learning_rate, dropout
        self.grouped = grouped
        self.random_state = random_state

    def _learners(self) -> dict[str, Predictor]:
        return {"attention": self._new_network()}

    @property
    def _network(self) -> GroupPoolingPredictor:
        return cast(GroupPoolingPredictor, self.learners_["attention"])
