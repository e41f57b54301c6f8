"""Rows in memory, cut into batches without worker processes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from perfcast.nn.token_batch import TokenBatch
from perfcast.training.devices import rank_and_size


class BatchLoader:
    """Iterate over rows in batches: shuffled every epoch by a generator of its own, or in order.

    Where batches are `shared`, each of several processes that train together gets its share of every batch.
    """

    def __init__(
        self, rows: TokenBatch, batch_size: int, shuffle_seed: int | None = None, *, shared: bool = False
    ) -> None:
        self.rows, self.batch_size, self.shuffle_seed, self.shared = rows, batch_size, shuffle_seed, shared
        self._generator: torch.Generator | None = None

    def __len__(self) -> int:
        return math.ceil(len(self.rows) / self.batch_size)

    def __iter__(self) -> Iterator[TokenBatch]:
        rank, processes = rank_and_size() if self.shared else (0, 1)
        if self.shuffle_seed is None:
            for start in range(0, len(self.rows), self.batch_size):
                yield self.rows.take(slice(start + rank, start + self.batch_size, processes))
            return
        if self._generator is None:  # made in the process that uses it: see `TokenBatch.__reduce__`
            self._generator = torch.Generator().manual_seed(self.shuffle_seed)
        order = torch.randperm(len(self.rows), generator=self._generator)
        for index in order.split(self.batch_size):
            yield self.rows.take(index[rank::processes])
