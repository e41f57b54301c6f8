"""Rows in memory, cut into batches without worker processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from perfcast.encoding.tokens import Tokens
from perfcast.training.devices import rank_and_size


@dataclass(frozen=True)
class Rows:
    """Encoded rows with standardised targets, as tensors.

    Shapes: as in `Tokens`; targets (n, outputs), NaN where not measured. `grams` is shared by all batches.
    """

    numbers: Tensor
    missing: Tensor
    codes: Tensor
    strings: Tensor
    grams: Tensor
    targets: Tensor

    @classmethod
    def of(cls, tokens: Tokens, targets: np.ndarray) -> Self:
        """Wrap encoded rows and their standardised targets."""
        return cls(
            torch.from_numpy(tokens.numbers),
            torch.from_numpy(tokens.missing),
            torch.from_numpy(tokens.codes),
            torch.from_numpy(tokens.strings),
            torch.from_numpy(tokens.grams),
            torch.from_numpy(np.asarray(targets, dtype=np.float32)),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process as arrays: torch would share the tensors' memory, of which containers have little."""
        return _from_arrays, (type(self), {name: tensor.cpu().numpy() for name, tensor in vars(self).items()})

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, index: Tensor | slice) -> Rows:
        """Return some of the rows."""
        return Rows(
            self.numbers[index],
            self.missing[index],
            self.codes[index],
            self.strings[index],
            self.grams,
            self.targets[index],
        )

    def to(self, device: torch.device | str, **options: Any) -> Rows:
        """Return the rows on a device: the method by which Lightning moves a batch; nothing is copied when there."""
        return Rows(**{name: tensor.to(device, **options) for name, tensor in vars(self).items()})


def _from_arrays(kind: type[Rows], arrays: dict[str, np.ndarray]) -> Rows:
    return kind(**{name: torch.from_numpy(array) for name, array in arrays.items()})


class Batches:
    """Iterate over rows in batches: shuffled anew each epoch by an own generator, or in order.

    Where batches are `shared`, each of several processes that train together gets its part of every one of them.
    """

    def __init__(self, rows: Rows, size: int, shuffle_seed: int | None = None, *, shared: bool = False) -> None:
        self.rows, self.size, self.shuffle_seed, self.shared = rows, size, shuffle_seed, shared
        self._generator: torch.Generator | None = None

    def __len__(self) -> int:
        return math.ceil(len(self.rows) / self.size)

    def __iter__(self) -> Iterator[Rows]:
        rank, processes = rank_and_size() if self.shared else (0, 1)
        if self.shuffle_seed is None:
            for start in range(0, len(self.rows), self.size):
                yield self.rows.take(slice(start + rank, start + self.size, processes))
            return
        if self._generator is None:  # made where it is used: see `Rows.__reduce__`
            self._generator = torch.Generator().manual_seed(self.shuffle_seed)
        order = torch.randperm(len(self.rows), generator=self._generator)
        for index in order.split(self.size):
            yield self.rows.take(index[rank::processes])
