"""`law_ensemble`: the laws, and four different learners on what they leave."""

from __future__ import annotations

from perfcast.predictors.base import Predictor
from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.gaussian_process import GaussianProcessPredictor
from perfcast.predictors.law_attention import LawAttentionPredictor
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor


class LawEnsemblePredictor(LawAttentionPredictor):
    """The laws, corrected by group attention, boosted trees (twice) and a Gaussian process together.

    The four err in different ways, and rehearsals say how much each counts for which kind of novelty. Trees are boosted
    under Huber's loss, which resolves what repeats more finely, and under absolute errors, which follow a part's usual
    level and no single result; squared errors were behind both in rehearsals before 2023 and on shuffled submissions.
    The process is smooth between the parts it knows: on inner rows it counts half for parts never seen. It took the
    place of extremely randomised trees, which added nothing beside it. `network`, `boosting` and `process` say which
    of them take part.
    """

    def __init__(
        self,
        *,
        epochs: int = 12,
        least_steps: int = 200,
        width: int = 16,
        group_width: int = 64,
        inter_blocks: int = 1,
        learning_rate: float = 2e-3,
        dropout: float = 0.0,
        rounds: int = 300,
        boosting_rate: float = 0.1,
        leaves: int = 63,
        huber: float = 0.02,
        process_rows: int = 10_000,
        relevance_steps: int = 120,
        grouped: bool = True,
        announced: bool = True,
        rehearsed: bool = True,
        network: bool = True,
        boosting: bool = True,
        process: bool = True,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            epochs=epochs,
            least_steps=least_steps,
            width=width,
            group_width=group_width,
            inter_blocks=inter_blocks,
            learning_rate=learning_rate,
            dropout=dropout,
            grouped=grouped,
            announced=announced,
            rehearsed=rehearsed,
            random_state=random_state,
        )
        self.rounds, self.boosting_rate = rounds, boosting_rate
        self.leaves, self.huber = leaves, huber
        self.process_rows, self.relevance_steps = process_rows, relevance_steps
        self.network, self.boosting, self.process = network, boosting, process

    @property
    def _network(self) -> GroupPoolingPredictor:
        if not self.network:
            raise AttributeError("this ensemble was made without a network")
        return super()._network

    def _learners(self) -> dict[str, Predictor]:
        def boosted(huber: float, leaf_rows: int) -> Predictor:
            return LightgbmPredictor(
                n_estimators=self.rounds,
                learning_rate=self.boosting_rate,
                num_leaves=self.leaves,
                min_child_samples=leaf_rows,
                objective="huber" if huber else "regression_l1",
                alpha=huber,
                random_state=self.random_state,
            )

        learners: dict[str, Predictor] = super()._learners() if self.network else {}
        if self.boosting:
            # a median of few rows is a coarse thing: it needs larger leaves
            learners |= {"boosted": boosted(self.huber, 5), "boosted_median": boosted(0.0, 10)}
        if self.process:
            learners["process"] = GaussianProcessPredictor(
                rows=self.process_rows, relevance_steps=self.relevance_steps, random_state=self.random_state
            )
        return learners
