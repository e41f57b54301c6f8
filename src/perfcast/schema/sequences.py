"""Cells that are sequences: the last seconds of one metric, stored as Arrow lists of fixed size in single precision.

A column takes the memory of its numbers alone, as an array of objects would not, and rows are selected without Python.
Missing values inside are NaN; a missing cell is a sequence of NaN.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

_DIGEST_ROWS = 1024
"""Rows whose sequences are together in memory while they are compared."""


def is_sequence(dtype: Any) -> bool:
    """Return whether a pandas type is that of a sequence column."""
    return isinstance(dtype, pd.ArrowDtype) and pa.types.is_fixed_size_list(dtype.pyarrow_dtype)


def from_matrix(matrix: np.ndarray, index: pd.Index | None = None) -> pd.Series:
    """Return a sequence column. Shapes: matrix (n, steps)."""
    numbers = pa.array(np.ascontiguousarray(matrix, "float32").ravel())
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.FixedSizeListArray.from_arrays(numbers, matrix.shape[1])), index)


def to_matrix(values: pd.Series) -> np.ndarray:
    """Return a sequence column, or a column of equally long lists, as numbers. Shapes: (n, steps) float32.

    Raises: ValueError when cells differ in length or hold no numbers.
    """
    if not is_sequence(values.dtype):
        return _stack(values)
    chunks = pa.array(values.array)
    steps = chunks.type.list_size
    if isinstance(chunks, pa.ChunkedArray):
        chunks = chunks.combine_chunks()
    if chunks.null_count == 0:
        flat = chunks.flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat, dtype="float32").reshape(len(values), steps)
    matrix = np.full((len(values), steps), np.nan, dtype="float32")
    known = ~np.asarray(values.isna(), dtype=bool)
    matrix[known] = chunks.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, steps)
    return matrix


def _stack(values: pd.Series) -> np.ndarray:
    cells = [None if np.isscalar(cell) or cell is None else np.asarray(cell, dtype="float32") for cell in values]
    lengths = {len(cell) for cell in cells if cell is not None}
    if len(lengths) > 1:
        raise ValueError(f"sequences of {values.name!r} differ in length: {', '.join(map(str, sorted(lengths)))}")
    missing = np.full(lengths.pop() if lengths else 1, np.nan, dtype="float32")
    rows = [missing if cell is None else cell for cell in cells]
    return np.stack(rows) if rows else np.empty((0, len(missing)), dtype="float32")


def comparable(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Return the named columns with all sequences replaced by one text per row, equal where all sequences are equal."""
    names = list(names)
    sequences = [name for name in names if is_sequence(frame[name].dtype)]
    if not sequences:
        return frame[names]
    plain = frame[[name for name in names if name not in sequences]]
    return plain.assign(**{"sequences of the row": _digest_rows(frame[sequences])})


def _digest_rows(frame: pd.DataFrame) -> np.ndarray:
    digests = np.empty(len(frame), dtype=object)
    for start in range(0, len(frame), _DIGEST_ROWS):
        rows = frame.iloc[start : start + _DIGEST_ROWS]
        block = np.hstack([to_matrix(rows[name]) for name in frame]) + np.float32(0)  # zero has two signs
        block[np.isnan(block)] = np.nan  # and a missing number many forms
        digests[start : start + len(rows)] = [
            hashlib.blake2b(row.tobytes(), digest_size=16).hexdigest() for row in block
        ]
    return digests
