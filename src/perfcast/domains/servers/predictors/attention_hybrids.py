"""Hybrid predictors of server scores with a group-attention network among the learners of the residual."""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.domains.servers.predictors.server_hybrids import ServerHybridPredictor
from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.gaussian_process import GaussianProcessPredictor
from perfcast.predictors.hybrid.attention_hybrids import ResidualAttention
from perfcast.predictors.predictor import Predictor


@dataclass(kw_only=True, eq=False, repr=False)
class HybridAttentionPredictor(ResidualAttention, ServerHybridPredictor):
    """Analytical models with a group-attention network on their residual."""

    epochs: int = 20
    d_block: int = 96


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
