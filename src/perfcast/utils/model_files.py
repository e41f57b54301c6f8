"""Files of fitted models from outside: bounded in memory, and without numbers that no training gives."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json

LARGEST = 1e30
"""Largest size of a number in a model: logarithms, weights of standardized values and values of features."""
_COMPRESSED = 20
"""Largest ratio of arrays to their file: numbers of a model hardly shrink, repeated ones do."""
_SMALL = 16 << 20
"""Bytes of arrays that are read whatever the size of their file."""
_AGAIN = "make it again, or fetch it again"


def read_state(path: Path) -> Any:
    """Return the JSON of a fitted model.

    Raises: UserError when it cannot be read, or a number is infinite or larger than `LARGEST`.
    """
    state = read_json(path)
    waiting = [state]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, int | float) and not abs(value) <= LARGEST:
            raise UserError(f"numbers in {path} must be at most {LARGEST:g}", f"found {value:g}", _AGAIN)
    return state


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file by name, or that of an npy file by "".

    Raises: UserError when they need more memory than such a file can hold, are no numbers, or have infinite ones.
    """
    if path.suffix == ".npy":
        with path.open("rb") as file:
            arrays = {"": _read_array(path, file, path.stat().st_size)}
    else:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            bound = min(size_limits.CHAMPION, max(_SMALL, _COMPRESSED * path.stat().st_size))
            if total > bound:
                raise UserError(f"arrays in {path} must have at most {bound} bytes", f"they have {total}", _AGAIN)
            arrays = {}
            for member in members:
                with archive.open(member) as file:
                    arrays[member.filename.removesuffix(".npy")] = _read_array(path, file, member.file_size)
    for array in arrays.values():
        if array.dtype.kind == "f" and len(array.ravel()):
            with np.errstate(invalid="ignore"):
                largest = np.fmax.reduce(np.abs(array), axis=None)  # missing values are NaN
            if largest > LARGEST:
                raise UserError(f"numbers in {path} must be at most {LARGEST:g}", f"found {largest:g}", _AGAIN)
    return arrays


def _read_array(path: Path, file: Any, size: int) -> np.ndarray:
    """Read one array whose header states no more bytes than there are."""
    version = np.lib.format.read_magic(file)
    header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if header is None:
        raise UserError(f"{path} must hold arrays of numbers", f"it has version {version}", _AGAIN)
    shape, by_columns, dtype = header(file)
    if dtype.hasobject or dtype.kind not in "fiubUS":
        raise UserError(f"{path} must hold arrays of numbers", f"it has {dtype}", _AGAIN)
    wanted = math.prod(shape) * dtype.itemsize
    if wanted > size:
        raise UserError(f"{path} must hold its arrays whole", f"one of {wanted} bytes is in {size} bytes", _AGAIN)
    content = file.read(wanted)
    array = np.frombuffer(content, dtype=dtype, count=math.prod(shape)).reshape(shape, order="F" if by_columns else "C")
    return array.copy(order="K")
