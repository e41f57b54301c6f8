"""A residual multilayer perceptron over embedded columns."""

from __future__ import annotations

from torch import Tensor, nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._flat_columns import FlatNetwork
from perfcast.training.data import Rows


class ResidualMLP(FlatNetwork):
    """Embedded columns side by side, then pre-norm residual layers (Gorishniy et al. 2021, arXiv 2106.11959).

    `number` embeds the numerical columns. The head starts at zero. Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        outputs: int,
        *,
        number: nn.Module,
        embedding: int,
        width: int,
        blocks: int,
        dropout: float,
        hide_rate: float,
    ) -> None:
        super().__init__(encoder, number, embedding, hide_rate)
        self.enter = nn.Linear(sum(self.widths), width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width),
                nn.Linear(width, 2 * width),
                nn.ReLU(),
                nn.Dropout(dropout),
                nn.Linear(2 * width, width),
            )
            for _ in range(blocks)
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, outputs))
        for parameter in self.head[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, rows: Rows) -> Tensor:
        """Forecast standardised targets."""
        x = self.enter(self.flat(rows))
        for block in self.blocks:
            x = x + block(x)
        forecast: Tensor = self.head(x)
        return forecast
