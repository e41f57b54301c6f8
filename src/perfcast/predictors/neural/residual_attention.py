"""Base of the hybrid predictors whose learner of the residual is a group-attention network."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.training.devices import TrainerConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from perfcast.predictors.neural.attention_maps import Attention


class ResidualAttention:
    """Hyperparameters, learning curve and attention weights of the network (group attention: arXiv 2407.03385)."""

    trainer_config = TrainerConfig()
    # Devices for training. No annotation, so no hyperparameter: it is neither cloned nor saved.

    epochs: int
    least_steps: int
    width: int
    group_width: int
    inter_blocks: int
    learning_rate: float
    dropout: float
    grouped: bool
    random_state: int

    @property
    @abstractmethod
    def _network(self) -> GroupPoolingPredictor:
        """The fitted network. Raises: AttributeError when there is none."""

    @property
    def history_(self) -> list[dict[str, float]]:
        """The learning curve of the final network, one entry per epoch."""
        history: list[dict[str, float]] = self._network.history_
        return history

    @property
    def attention(self) -> Callable[[pd.DataFrame], Attention]:
        """Attention weights of the fitted network, averaged over rows: a property, so that `hasattr` reports it."""
        return self._network.attention

    def _new_network(self, *, linear_skip: bool = False) -> GroupPoolingPredictor:
        network = GroupPoolingPredictor(
            linear_skip=linear_skip,
            epochs=self.epochs,
            min_steps=self.least_steps,
            d_token=self.width,
            d_block=self.group_width,
            n_blocks=self.inter_blocks,
            learning_rate=self.learning_rate,
            dropout=self.dropout,
            grouped=self.grouped,
            random_state=self.random_state,
        )
        network.trainer_config = self.trainer_config
        return network
