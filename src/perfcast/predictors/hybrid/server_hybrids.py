"""`hybrid_ensemble`: the laws, and four different learners on what they leave."""

from __future__ import annotations

from typing import cast

from perfcast.predictors.boosting.lightgbm import LightgbmPredictor
from perfcast.predictors.gaussian_process import GaussianProcessPredictor
from perfcast.predictors.hybrid.residual_stacking import HybridPredictor
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.predictors.neural.residual_attention import ResidualAttention
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.trees import ExtraTrees


class HybridAttentionPredictor(ResidualAttention, HybridPredictor):
    """The mean of the laws with weights from backtests, corrected by a group-attention network.

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
        backtest_weights: bool = True,
        random_state: int = 0,
    ) -> None:
        self.announced, self.backtest_weights = announced, backtest_weights
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


class HybridTreesPredictor(HybridPredictor):
    """The mean of the laws with weights from a backtest, corrected by extremely randomized trees."""

    def __init__(
        self,
        *,
        trees: int = 100,
        feature_fraction: float = 0.3,
        leaf_rows: int = 2,
        announced: bool = True,
        backtest_weights: bool = True,
        random_state: int = 0,
    ) -> None:
        self.announced, self.backtest_weights = announced, backtest_weights
        self.trees = trees
        self.feature_fraction = feature_fraction
        self.leaf_rows = leaf_rows
        self.random_state = random_state

    def _learners(self) -> dict[str, Predictor]:
        trees = ExtraTrees(
            n_estimators=self.trees,
            max_features=self.feature_fraction,
            min_samples_leaf=self.leaf_rows,
            random_state=self.random_state,
        )
        return {"extra_trees": trees}


class HybridEnsemblePredictor(HybridAttentionPredictor):
    """The laws, corrected by group attention, boosted trees (twice) and a Gaussian process together.

    The four err in different ways, and backtests say how much each counts for which kind of novelty. Trees are boosted
    under Huber's loss, which resolves what repeats more finely, and under absolute errors, which follow a part's usual
    level and no single result; squared errors were behind both in backtests before 2023 and on shuffled submissions.
    The process is smooth between the parts it knows: on inner rows it counts half for parts never seen. It took the
    place of extremely randomized trees, which added nothing beside it. `network`, `boosting` and `process` say which
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
        backtest_weights: bool = True,
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
            backtest_weights=backtest_weights,
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
