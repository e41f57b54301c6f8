"""NeuSight: an archive with tables of kernels, the facts of GPUs, and graphs of models."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.bounded_files import FETCH_AGAIN, read_tar_members
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

ARCHIVE = "neusight.tar.gz"
_DATA = "scripts/asplos/data"
TRAINING_GPUS = (
    *("NVIDIA A100-PCIE-40GB", "Tesla P100-PCIE-16GB", "Tesla P4", "Tesla T4"),
    "Tesla V100-PCIE-32GB",
)
NEW_GPUS = ("NVIDIA A100 80GB PCIe", "NVIDIA H100 80GB HBM3", "NVIDIA L4")
"""GPUs of the authors' test rows alone."""

_MATRIX, _ROWS = ("B", "M", "N", "K"), ("B", "H")
SHAPES = {"bmm": _MATRIX, "linear": _MATRIX, "elem": _ROWS, "ln": _ROWS, "softmax": _ROWS}
"""Table -> columns of the shape of a kernel."""

_COMMON = ("OPName", "Latency", "Device")
_COLLECTED = ("bmm", "linear")
"""Tables whose training rows are in one file per GPU."""


def list_tables() -> dict[str, tuple[str, str]]:
    """Return the table and the authors' subset of every file of kernels, by its path in the archive."""
    files = {}
    for table in SHAPES:
        files[f"{_DATA}/dataset/test/{table}.csv"] = (table, "test")
        if table in _COLLECTED:
            for gpu in TRAINING_GPUS:
                files[f"{_DATA}/dataset/train/collect/{table}/p2.1.0/{gpu}.csv"] = (table, "train")
        else:
            files[f"{_DATA}/dataset/train/{table}.csv"] = (table, "train")
    return files


def facts_file(gpu: str) -> str:
    """Return the path of a GPU's facts in the archive."""
    return f"{_DATA}/device_configs/{gpu.replace(' ', '_')}.json"


def check(folder: Path) -> None:
    """Check the files of the archive and their columns. Raises: UserError."""
    contents = read_archive(folder / ARCHIVE)
    for name, (table, _) in list_tables().items():
        read_kernels(contents, name, table)
    for gpu in (*TRAINING_GPUS, *NEW_GPUS):
        read_facts(contents, gpu)


def read_archive(path: Path) -> dict[str, bytes]:
    """Return the tables of kernels and the facts of GPUs by path. Raises: UserError."""
    names = [*list_tables(), *(facts_file(gpu) for gpu in (*TRAINING_GPUS, *NEW_GPUS))]
    return read_tar_members(path, names, whole_paths=True)


def read_kernels(contents: Mapping[str, bytes], name: str, table: str) -> pd.DataFrame:
    """Return the rows of a table as texts. Raises: UserError when it is no CSV file or lacks a column."""
    wanted = [*_COMMON, *SHAPES[table]]
    short = name.rpartition("/")[2]
    try:
        frame = pd.read_csv(
            io.BytesIO(contents[name]),
            dtype="str",
            keep_default_na=False,
            nrows=size_limits.TABLE_ROWS,
            encoding="utf-8",
        )
    except (ValueError, OverflowError) as error:  # pandas's own errors of parsing are ValueErrors
        raise UserError(f"{short} of {ARCHIVE} must be a CSV table", str(error)[:150], FETCH_AGAIN) from None
    for column in wanted:
        if column not in frame:
            fact = "there is none of that name"
            raise UserError(f"{short} of {ARCHIVE} must have a column {column!r}", fact, FETCH_AGAIN)
    if frame.empty:
        raise UserError(f"{short} of {ARCHIVE} must have rows", "it has a header only", FETCH_AGAIN)
    return frame[wanted]


def read_facts(contents: Mapping[str, bytes], gpu: str) -> dict[str, Any]:
    """Return the facts of a GPU. Raises: UserError when they are no JSON object of positive numbers."""
    name = facts_file(gpu).rpartition("/")[2]
    try:
        facts = json.loads(contents[facts_file(gpu)].decode("utf-8"))
        numbers = {key: float(facts[key]) for key in ("Dev_Mem", "Mem_Bw", "Num_Sm", "SingleFLOPs", "L2Cache", "Freq")}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        fact = f"it cannot be read ({type(error).__name__})"
        raise UserError(
            f"{name} of {ARCHIVE} must be a JSON object with the facts of a GPU", fact, FETCH_AGAIN
        ) from None
    if not all(0 < number < size_limits.ARCHIVE for number in numbers.values()):
        raise UserError(f"{name} of {ARCHIVE} must have positive numbers", "it has others", FETCH_AGAIN)
    return numbers
