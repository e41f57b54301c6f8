"""Hybrid predictors with a group-attention network among the learners of the residual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import cast

import pandas as pd

from perfcast.predictors.hybrid.residual_stacking import HybridPredictor
from perfcast.predictors.hybrid.roofline_hybrids import RooflineHybridPredictor
from perfcast.predictors.neural.attention import Attention
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.predictors.predictor import Predictor
from perfcast.training.devices import TrainerConfig


@dataclass(kw_only=True, eq=False, repr=False)
class ResidualAttention(HybridPredictor):
    """Hybrid predictor whose learner is a group-attention network; parameters are those of `GroupPoolingPredictor`.

    `history_` is the learning curve of the final network. Source of group attention: NCPP, arXiv 2407.03385.
    """

    trainer_config = TrainerConfig()
    # Devices for training. No annotation, so no hyperparameter: it is neither cloned nor saved.

    epochs: int = 12
    min_steps: int = 200
    d_token: int = 16
    d_block: int = 64
    n_blocks: int = 1
    learning_rate: float = 2e-3
    dropout: float = 0.0
    grouped: bool = True
    linear_skip: bool = False
    random_state: int = 0

    def _new_learners(self) -> dict[str, Predictor]:
        options = {field.name: getattr(self, field.name) for field in fields(ResidualAttention) if field.init}
        network = GroupPoolingPredictor(**options)
        network.trainer_config = self.trainer_config
        return {"attention": network}

    @property
    def _network(self) -> GroupPoolingPredictor:
        """The fitted network. Raises: AttributeError when there is none."""
        if "attention" not in self.learners_:
            raise AttributeError("this predictor has no network")
        return cast(GroupPoolingPredictor, self.learners_["attention"])

    @property
    def history_(self) -> list[dict[str, float]]:
        """The learning curve of the final network, one entry per epoch."""
        history: list[dict[str, float]] = self._network.history_
        return history

    @property
    def attention(self) -> Callable[[pd.DataFrame], Attention]:
        """Attention weights of the fitted network, averaged over rows: a property, so that `hasattr` reports it."""
        return self._network.attention


@dataclass(kw_only=True, eq=False, repr=False)
class RooflineAttentionPredictor(ResidualAttention, RooflineHybridPredictor):
    """The roofline model with a group-attention network on its residual."""

    min_steps: int = 300
