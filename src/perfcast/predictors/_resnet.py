"""The residual network of Gorishniy et al. 2021 (arXiv 2106.11959)."""

from __future__ import annotations

from torch import Tensor, nn

from perfcast.encoding.tokens import TokenEncoder
from perfcast.predictors._flat_columns import FlatNetwork
from perfcast.training.data import Rows


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that takes the running statistics for a training batch of one row.

    One row has no variance, and torch refuses it; such a batch comes whenever the number of training rows is one more
    than a multiple of the batch size. Shapes: (rows, features) to the same.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise a batch."""
        if self.training and len(x) == 1:
            return nn.functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(x)


class ResNetNetwork(FlatNetwork):
    """A linear layer, then x + Dropout(Linear(Dropout(ReLU(Linear(BatchNorm(x)))))), then Linear(ReLU(BatchNorm(x))).

    The head starts at zero. Shapes: rows to (rows, outputs).
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        outputs: int,
        *,
        embedding: int,
        width: int,
        hidden: int,
        blocks: int,
        hidden_dropout: float,
        residual_dropout: float,
        hide_rate: float,
    ) -> None:
        super().__init__(encoder, None, embedding, hide_rate)
        self.enter = nn.Linear(sum(self.widths), width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                BatchNorm(width),
                nn.Linear(width, hidden),
                nn.ReLU(),
                nn.Dropout(hidden_dropout),
                nn.Linear(hidden, width),
                nn.Dropout(residual_dropout),
            )
            for _ in range(blocks)
        )
        self.head = nn.Sequential(BatchNorm(width), nn.ReLU(), nn.Linear(width, outputs))
        for parameter in self.head[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, rows: Rows) -> Tensor:
        """Forecast standardised targets."""
        x = self.enter(self.flat(rows))
        for block in self.blocks:
            x = x + block(x)
        forecast: Tensor = self.head(x)
        return forecast
