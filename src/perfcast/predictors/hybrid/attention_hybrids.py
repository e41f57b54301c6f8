"""Hybrid predictors with a group-attention network among the learners of the residual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import cast

import pandas as pd

from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.gaussian_process import GaussianProcessPredictor
from perfcast.predictors.hybrid.residual_stacking import HybridPredictor
from perfcast.predictors.hybrid.roofline_hybrids import RooflineHybridPredictor
from perfcast.predictors.hybrid.server_hybrids import ServerHybridPredictor
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
class HybridAttentionPredictor(ResidualAttention, ServerHybridPredictor):
    """Analytical models with a group-attention network on their residual."""

    epochs: int = 20
    d_block: int = 96


@dataclass(kw_only=True, eq=False, repr=False)
class RooflineAttentionPredictor(ResidualAttention, RooflineHybridPredictor):
    """The roofline model with a group-attention network on its residual."""

    min_steps: int = 300


@dataclass(kw_only=True, eq=False, repr=False)
class HybridEnsemblePredictor(ResidualAttention, ServerHybridPredictor):
    """Analytical models with group attention, boosted trees (twice) and a Gaussian process on their residual.

    The four learners make different errors. Trees are boosted under Huber's loss, which resolves repeated results
    finely, and under absolute errors, which follow the usual level of a CPU model. Squared errors were worse than both
    in backtests before 2023 and on random splits. The process is smooth between the training CPU models: on inner rows
    its weight for unseen CPUs is one half. Extremely randomized trees added nothing beside it.

    `network`, `boosting` and `gaussian_process` select the learners. `boosting_alpha` is the `alpha` of the Huber
    objective in `LightgbmPredictor`; parameters with the prefix `gp_` are those of `GaussianProcessPredictor`.
    """

    boosting_n_estimators: int = 300
    boosting_learning_rate: float = 0.1
    boosting_num_leaves: int = 63
    boosting_alpha: float = 0.02
    gp_max_samples: int = 10_000
    gp_length_scale_steps: int = 120
    network: bool = True
    boosting: bool = True
    gaussian_process: bool = True

    def _new_learners(self) -> dict[str, Predictor]:
        learners: dict[str, Predictor] = super()._new_learners() if self.network else {}
        if self.boosting:
            learners["boosting"] = self._new_boosting("huber", min_child_samples=5)
            # The median of few rows is imprecise, so this objective needs larger leaves.
            learners["boosting_median"] = self._new_boosting("regression_l1", min_child_samples=10)
        if self.gaussian_process:
            learners["gaussian_process"] = GaussianProcessPredictor(
                max_samples=self.gp_max_samples,
                length_scale_steps=self.gp_length_scale_steps,
                random_state=self.random_state,
            )
        return learners

    def _new_boosting(self, objective: str, min_child_samples: int) -> Predictor:
        return LightgbmPredictor(
            n_estimators=self.boosting_n_estimators,
            learning_rate=self.boosting_learning_rate,
            num_leaves=self.boosting_num_leaves,
            min_child_samples=min_child_samples,
            objective=objective,
            alpha=self.boosting_alpha,
            random_state=self.random_state,
        )
