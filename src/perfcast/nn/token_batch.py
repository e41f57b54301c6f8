"""Encoded rows as tensors: what every network reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from perfcast.features.encoding.tokens import UNKNOWN, Tokens


@dataclass(frozen=True)
class TokenBatch:
    """Encoded rows with standardized targets, as tensors.

    Shapes: as in `Tokens`; targets (n, outputs), NaN where not measured. All batches of a table share `grams`.
    """

    numbers: Tensor
    missing: Tensor
    codes: Tensor
    strings: Tensor
    grams: Tensor
    targets: Tensor

    @classmethod
    def from_tokens(cls, tokens: Tokens, targets: np.ndarray) -> Self:
        """Wrap encoded rows and their standardized targets."""
        return cls(
            torch.from_numpy(tokens.numbers),
            torch.from_numpy(tokens.missing),
            torch.from_numpy(tokens.codes),
            torch.from_numpy(tokens.strings),
            torch.from_numpy(tokens.grams),
            torch.from_numpy(np.asarray(targets, dtype=np.float32)),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as arrays: torch would share the tensors' memory, of which containers have little."""
        return _from_arrays, (type(self), {name: tensor.cpu().numpy() for name, tensor in vars(self).items()})

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, index: Tensor | slice) -> TokenBatch:
        """Return some of the rows."""
        return TokenBatch(
            self.numbers[index],
            self.missing[index],
            self.codes[index],
            self.strings[index],
            self.grams,
            self.targets[index],
        )

    def to(self, device: torch.device | str, **options: Any) -> TokenBatch:
        """Return the rows on a device. Lightning calls this method too; rows already there are not copied."""
        return TokenBatch(**{name: tensor.to(device, **options) for name, tensor in vars(self).items()})


def mask_inputs(batch: TokenBatch, mask_rate: float) -> TokenBatch:
    """Return rows with a random share of the numbers missing, of the codes unknown, of the strings empty.

    Training with masked inputs gives the vectors of "missing" and "unknown" a meaning even when every training value
    is known. It also keeps a network from depending on one name.
    """
    if mask_rate <= 0.0:
        return batch
    missing = torch.rand_like(batch.numbers) < mask_rate
    unknown = torch.rand(batch.codes.shape, device=batch.codes.device) < mask_rate
    empty = torch.rand(batch.codes.shape, device=batch.codes.device) < mask_rate
    return replace(
        batch,
        numbers=batch.numbers.masked_fill(missing, 0.0),
        missing=batch.missing.masked_fill(missing, 1.0),
        codes=batch.codes.masked_fill(unknown, UNKNOWN),
        strings=batch.strings.masked_fill(empty, 0),
    )


def distinct_rows(batch: TokenBatch, numbers: slice, categories: slice) -> tuple[Tensor, Tensor]:
    """Return the first row of every distinct content of some columns, and the index of each row's content among them.

    Shapes: (distinct,) and (rows,) int64.
    """
    columns = [
        batch.numbers[:, numbers],
        batch.missing[:, numbers],
        batch.codes[:, categories],
        batch.strings[:, categories],
    ]
    constant = np.zeros((len(batch), 1), dtype=np.uint8)  # rows without any column are all alike
    values = [np.ascontiguousarray(column.numpy()).view(np.uint8) for column in columns]
    table = np.concatenate([constant, *values], axis=1)
    # compared as bytes: exact, and one sort for all columns
    content = table.view(np.dtype((np.void, table.shape[1])))[:, 0]
    _, first, inverse = np.unique(content, return_index=True, return_inverse=True)
    return torch.from_numpy(first), torch.from_numpy(inverse)


def _from_arrays(kind: type[TokenBatch], arrays: dict[str, np.ndarray]) -> TokenBatch:
    return kind(**{name: torch.from_numpy(array) for name, array in arrays.items()})
