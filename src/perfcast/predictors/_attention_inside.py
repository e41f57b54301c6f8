"""What predictors share that hold a group-attention network as one of their parts."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from perfcast.predictors.group_pooling import GroupPoolingPredictor
from perfcast.training.devices import Machine

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from perfcast.predictors._attention_maps import Attention


class AttentionInside:
    """The network's settings, its learning curve and where it looks; group attention is NCPP's (arXiv 2407.03385)."""

    machine: Machine = Machine()
    """What trains the network: no hyper-parameter, so it is neither cloned nor saved."""
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
        """Where the fitted network looks, averaged over the rows of X: a property, so that `hasattr` tells."""
        return self._network.attention

    def _new_network(self, *, linear_skip: bool = False) -> GroupPoolingPredictor:
        network = GroupPoolingPredictor(
            linear_skip=linear_skip,
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
