"""Published periodic embeddings of numbers, for networks that see a row as one vector."""

from __future__ import annotations

import rtdl_num_embeddings
from torch import Tensor, nn

from perfcast.training.data import Rows

_PERIODIC_RANGE = 3.0


class PeriodicNumbers(nn.Module):
    """PLR(lite) embeddings (arXiv 2203.05556) of numerical tokens by their authors' package, inside +-3 deviations.

    Beyond that range a learned wave says nothing about a larger machine; `FlatNetwork` has the plain number beside it,
    which goes on. A missing number is embedded as the mean and marked by an input of its own.
    Shapes: result (rows, numerical, width).
    """

    def __init__(self, numbers: int, width: int, frequencies: int, frequency_scale: float) -> None:
        super().__init__()
        self.width = width
        self.periodic = rtdl_num_embeddings.PeriodicEmbeddings(
            # The package has no embedding of nothing; a table without numbers leaves this one idle.
            max(1, numbers),
            width,
            n_frequencies=frequencies,
            frequency_init_scale=frequency_scale,
            lite=True,
        )

    def forward(self, rows: Rows) -> Tensor:
        """Embed the numbers of a batch."""
        if rows.numbers.shape[1] == 0:
            return rows.numbers.new_zeros(len(rows), 0, self.width)
        vectors: Tensor = self.periodic(rows.numbers.clamp(-_PERIODIC_RANGE, _PERIODIC_RANGE))
        return vectors
