"""Encoded rows as tensors, which every network reads; tokens to vectors, and the head that reads them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import rtdl_num_embeddings
import torch
from torch import Tensor, nn

from perfcast.features.encoding.tokens import UNKNOWN, Tokens, TokenSpec


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
        arrays = {**vars(tokens), "targets": np.asarray(targets, dtype=np.float32)}
        return cls(**{name: torch.from_numpy(array) for name, array in arrays.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as arrays: torch would share the tensors' memory, of which containers have little."""
        return _from_arrays, (type(self), {name: tensor.cpu().numpy() for name, tensor in vars(self).items()})

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, index: Tensor | slice) -> TokenBatch:
        """Return some of the rows."""
        return TokenBatch(**{name: each if name == "grams" else each[index] for name, each in vars(self).items()})

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
    columns = [each[:, numbers] for each in (batch.numbers, batch.missing)]
    columns += [each[:, categories] for each in (batch.codes, batch.strings)]
    constant = np.zeros((len(batch), 1), dtype=np.uint8)  # rows without any column are all alike
    values = [np.ascontiguousarray(column.numpy()).view(np.uint8) for column in columns]
    table = np.concatenate([constant, *values], axis=1)
    # compared as bytes: exact, and one sort for all columns
    content = table.view(np.dtype((np.void, table.shape[1])))[:, 0]
    _, first, inverse = np.unique(content, return_index=True, return_inverse=True)
    return torch.from_numpy(first), torch.from_numpy(inverse)


def _from_arrays(kind: type[TokenBatch], arrays: dict[str, np.ndarray]) -> TokenBatch:
    return kind(**{name: torch.from_numpy(array) for name, array in arrays.items()})


ALL = slice(None)

PERIODIC_RANGE = 3.0
"""Standardized numbers are clipped here before they enter a periodic function."""

UNIT_BIN = (-1.0, 1.0)
"""Edges of the one bin of a column without a range of known values."""


class NumberEmbedding(nn.Module):
    """One vector per numerical token: a linear and a periodic embedding of the number, and a vector when it is missing.

    Both are of the package `rtdl_num_embeddings` (Gorishniy et al. 2022, arXiv 2203.05556), with weights of its own for
    every column. The periodic part resolves thresholds within the range of the training rows; beyond +-3 deviations a
    token continues as a straight line. Without frequencies the linear part stands alone.
    Shapes: result (rows, numerical, d_token).
    """

    def __init__(self, n_numbers: int, d_token: int, n_frequencies: int, frequency_init_scale: float) -> None:
        super().__init__()
        self.n_numbers = n_numbers
        # The package does not support zero columns; a table without numbers leaves one column unused.
        self.linear = rtdl_num_embeddings.LinearEmbeddings(max(1, n_numbers), d_token)
        self.missing = nn.Parameter(torch.zeros(n_numbers, d_token))
        self.periodic = None
        if n_frequencies:
            self.periodic = rtdl_num_embeddings.PeriodicEmbeddings(
                max(1, n_numbers),
                d_token,
                n_frequencies=n_frequencies,
                frequency_init_scale=frequency_init_scale,
                activation=False,
                lite=False,
            )

    def forward(self, batch: TokenBatch, columns: slice = ALL) -> Tensor:
        """Embed the numbers of a batch, or some of its columns."""
        x = batch.numbers[:, columns]
        vectors = self._embed(self.linear, x, columns)
        if self.periodic is not None:
            vectors = vectors + self._embed(self.periodic, x.clamp(-PERIODIC_RANGE, PERIODIC_RANGE), columns)
        return vectors + batch.missing[:, columns].unsqueeze(-1) * self.missing[columns]

    def _embed(self, embedding: nn.Module, x: Tensor, columns: slice) -> Tensor:
        if columns == ALL and self.n_numbers:
            vectors: Tensor = embedding(x)
            return vectors
        # Every parameter of the package has one entry per column.
        some = slice(0, self.n_numbers) if columns == ALL else columns
        parameters = {name: parameter[some] for name, parameter in embedding.named_parameters()}
        selected: Tensor = torch.func.functional_call(embedding, parameters, (x,))
        return selected


class CategoryEmbedding(nn.Module):
    """One vector per categorical token: that of its code plus the mean of its string's n-grams.

    Shapes: result (rows, categorical, d_token).
    """

    offsets: Tensor

    def __init__(self, spec: TokenSpec, d_token: int) -> None:
        super().__init__()
        sizes = spec.vocabulary_sizes
        starts = [sum(sizes[:position]) for position in range(len(sizes))]
        self.register_buffer("offsets", torch.tensor(starts, dtype=torch.int64), persistent=False)
        self.code = nn.Embedding(max(1, sum(sizes)), d_token)
        self.gram = nn.EmbeddingBag(spec.n_grams, d_token, mode="mean", padding_idx=0)
        nn.init.normal_(self.code.weight, std=0.5)
        nn.init.normal_(self.gram.weight, std=0.5)
        with torch.no_grad():
            self.gram.weight[0].zero_()

    def forward(self, batch: TokenBatch, columns: slice = ALL) -> Tensor:
        """Embed the categories of a batch, or some of its columns."""
        # A batch holds few distinct strings: each is embedded once.
        distinct, inverse = torch.unique(batch.strings[:, columns], return_inverse=True)
        codes = self.code(batch.codes[:, columns] + self.offsets[columns])
        vectors: Tensor = codes + self.gram(batch.grams[distinct])[inverse]
        return vectors


def initialize_to_zero(layer: nn.Module) -> None:
    """Set the parameters of an output layer to zero: the untrained network predicts the center of its targets."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)


def make_head(d_in: int, d_hidden: int, n_outputs: int, dropout: float) -> nn.Sequential:
    """Return LayerNorm and a perceptron with one hidden layer, whose output layer starts at zero."""
    head = nn.Sequential(
        nn.LayerNorm(d_in),
        nn.Linear(d_in, d_hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(d_hidden, n_outputs),
    )
    initialize_to_zero(head[-1])
    return head


class PeriodicNumbers(nn.Module):
    """PLR(lite) embeddings (arXiv 2203.05556) of numerical tokens by the package of their authors.

    The waves end at +-3 deviations: beyond, a learned wave carries no information, and the plain number that
    `FlatNetwork` places beside it continues. A missing number is embedded as the mean and marked by another input.
    Shapes: result (rows, numerical, d_embedding).
    """

    def __init__(self, n_numbers: int, d_embedding: int, n_frequencies: int, frequency_init_scale: float) -> None:
        super().__init__()
        self.d_embedding = d_embedding
        self.periodic = rtdl_num_embeddings.PeriodicEmbeddings(
            # The package does not support zero columns; a table without numbers leaves this one unused.
            max(1, n_numbers),
            d_embedding,
            n_frequencies=n_frequencies,
            frequency_init_scale=frequency_init_scale,
            lite=True,
        )

    def forward(self, batch: TokenBatch) -> Tensor:
        """Embed the numbers of a batch."""
        if batch.numbers.shape[1] == 0:
            return batch.numbers.new_zeros(len(batch), 0, self.d_embedding)
        vectors: Tensor = self.periodic(batch.numbers.clamp(-PERIODIC_RANGE, PERIODIC_RANGE))
        return vectors


class PiecewiseLinearNumbers(nn.Module):
    """Piecewise-linear embeddings (arXiv 2203.05556) of numerical tokens by the package of their authors, version B.

    `bins` has the ascending edges of every column; see `quantile_bins`.
    Shapes: result (rows, numerical, d_embedding).
    """

    def __init__(self, bins: Sequence[Sequence[float]], d_embedding: int) -> None:
        super().__init__()
        self.d_embedding = d_embedding
        edges = [torch.tensor(column, dtype=torch.float32) for column in bins or [UNIT_BIN]]
        with _quiet_package():
            self.piecewise = rtdl_num_embeddings.PiecewiseLinearEmbeddings(
                edges, d_embedding, activation=False, version="B"
            )

    def forward(self, batch: TokenBatch) -> Tensor:
        """Embed the numbers of a batch."""
        if batch.numbers.shape[1] == 0:
            return batch.numbers.new_zeros(len(batch), 0, self.d_embedding)
        vectors: Tensor = self.piecewise(batch.numbers)
        return vectors


def quantile_bins(numbers: np.ndarray, missing: np.ndarray, n_bins: int) -> list[list[float]]:
    """Return the bin edges of every column: distinct quantiles of its known values, by the package.

    A column with fewer than two known values takes one bin. Shapes: numbers and missing (rows, numerical).
    """
    bins = []
    for column, absent in zip(numbers.T, missing.T, strict=True):
        known = torch.from_numpy(np.ascontiguousarray(column[absent == 0]))
        count = min(n_bins, len(known) - 1)
        if count < 2 or known.min() == known.max():
            bins.append(list(UNIT_BIN))
        else:
            with _quiet_package():
                bins.append(rtdl_num_embeddings.compute_bins(known.unsqueeze(1), count)[0].tolist())
    return bins


@contextmanager
def _quiet_package() -> Iterator[None]:
    """Silence the package about columns with one bin and about an old name of `torch.vstack`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
