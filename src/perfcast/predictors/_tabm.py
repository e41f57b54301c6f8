"""The TabM network (arXiv 2410.24210) of the package `tabm`, over embedded columns."""

from __future__ import annotations

import tabm
from torch import Tensor, nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._flat_columns import FlatNetwork
from perfcast.predictors._periodic_numbers import PeriodicNumbers
from perfcast.training.data import Rows


class TabMNetwork(FlatNetwork):
    """Perceptrons that share their matrices, each with a head of its own; the heads start at zero.

    Members differ from the start by the random factors of their first scaling, one factor for all of a column's inputs
    that belong together, drawn from a normal distribution as the package does where numbers are embedded.
    Shapes: rows to (rows, members, outputs) while it trains, so that each member has its own loss; to the mean over
    members, (rows, outputs), otherwise.
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        outputs: int,
        *,
        members: int,
        embedding: int,
        width: int,
        blocks: int,
        frequencies: int,
        frequency_scale: float,
        dropout: float,
        hide_rate: float,
    ) -> None:
        number = PeriodicNumbers(len(encoder.numbers), embedding, frequencies, frequency_scale)
        super().__init__(encoder, number, embedding, hide_rate)
        self.view = tabm.EnsembleView(k=members)
        self.backbone = tabm.make_tabm_backbone(
            d_in=sum(self.widths),
            n_blocks=blocks,
            d_block=width,
            dropout=dropout,
            k=members,
            start_scaling_init="normal",
            start_scaling_init_chunks=self.widths,
        )
        self.head = tabm.LinearEnsemble(width, outputs, k=members)
        for parameter in self.head.parameters():
            nn.init.zeros_(parameter)

    def forward(self, rows: Rows) -> Tensor:
        """Forecast standardised targets."""
        forecasts: Tensor = self.head(self.backbone(self.view(self.flat(rows))))
        return forecasts if self.training else forecasts.mean(dim=1)
