"""The TabM network (arXiv 2410.24210) of the package `tabm`, over embedded columns."""

from __future__ import annotations

import tabm
from torch import Tensor, nn

from perfcast.features.encoding.token_arrays import TokenSpec
from perfcast.nn.embedding import initialize_to_zero
from perfcast.nn.mlp import FlatNetwork
from perfcast.nn.token_batch import TokenBatch


class TabMNetwork(FlatNetwork):
    """Perceptrons that share their matrices, each with its own head; the heads start at zero.

    The k members differ from the start by the random factors of their first scaling, one factor for all inputs of a
    column that belong together. The factors are normal, as in the package where numbers are embedded.
    Shapes: rows to (rows, k, outputs) in training, so that each member has its own loss; otherwise to the mean over
    members, (rows, outputs).
    """

    def __init__(
        self,
        spec: TokenSpec,
        n_outputs: int,
        *,
        number: nn.Module,
        k: int,
        d_embedding: int,
        d_block: int,
        n_blocks: int,
        dropout: float,
    ) -> None:
        super().__init__(spec, number, d_embedding)
        self.view = tabm.EnsembleView(k=k)
        self.backbone = tabm.make_tabm_backbone(
            d_in=sum(self.sizes),
            n_blocks=n_blocks,
            d_block=d_block,
            dropout=dropout,
            k=k,
            start_scaling_init="normal",
            start_scaling_init_chunks=self.sizes,
        )
        self.head = tabm.LinearEnsemble(d_block, n_outputs, k=k)
        initialize_to_zero(self.head)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Predict standardized targets."""
        predictions: Tensor = self.head(self.backbone(self.view(self.flatten(batch))))
        return predictions if self.training else predictions.mean(dim=1)
