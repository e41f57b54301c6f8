"""Files of fitted models from outside: bounded in memory, and without numbers that no training gives."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from perfcast.utils import size_limits
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json

Model = TypeVar("Model")

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
        arrays = {"": np.load(path, allow_pickle=False)}
    else:
        with zipfile.ZipFile(path) as archive:
            total = sum(member.file_size for member in archive.infolist())
        bound = min(size_limits.MODEL, max(_SMALL, _COMPRESSED * path.stat().st_size))
        if total > bound:
            raise UserError(f"arrays in {path} must have at most {bound} bytes", f"they have {total}", _AGAIN)
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
    for array in arrays.values():
        if array.dtype.kind == "f" and len(array.ravel()):
            with np.errstate(invalid="ignore"):
                largest = np.fmax.reduce(np.abs(array), axis=None)  # missing values are NaN
            if largest > LARGEST:
                raise UserError(f"numbers in {path} must be at most {LARGEST:g}", f"found {largest:g}", _AGAIN)
    return arrays


def write_models(folder: Path, stem: str, models: Mapping[str, Mapping[str, Any]]) -> None:
    """Write models that are dataclasses of arrays and numbers, by target and name, to a file each."""
    for target, by_name in enumerate(models.values()):
        for number, model in enumerate(by_name.values()):
            np.savez_compressed(folder / f"{stem}_{target}_{number}.npz", **vars(model))


def read_models(
    folder: Path, stem: str, names: Mapping[str, Iterable[str]], kind: Callable[..., Model]
) -> dict[str, dict[str, Model]]:
    """Read what `write_models` wrote, by the names of the models of every target."""

    def read(target: int, number: int) -> Model:
        arrays = read_arrays(folder / f"{stem}_{target}_{number}.npz")
        return kind(**{name: each if each.ndim else float(each) for name, each in arrays.items()})

    return {
        name: {model: read(target, number) for number, model in enumerate(listed)}
        for target, (name, listed) in enumerate(names.items())
    }
