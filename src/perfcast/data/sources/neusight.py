"""NeuSight: an archive with tables of kernels, the facts of GPUs, times of whole models and their graphs."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
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
COLUMN_NAMES = {"B": "batch", "M": "m", "N": "k", "K": "n", "H": "width"}
"""Column of a table -> name in the datasets. N is summed over and K are the columns of the product: only so do the
sizes give the blocks that were started."""

_COMMON = ("OPName", "Latency", "Device")
_COLLECTED = ("bmm", "linear")
"""Tables whose training rows are in one file per GPU."""

SUMMARY = "scripts/asplos/summary/summary.csv"
"""Times of whole models, with the predictions of the authors and of others."""
RUN_COLUMNS = ("model_name", "seqlen", "batch", "device", "mode", "option", "label_all_e2e_latency")
"""Columns of SUMMARY that are read; predictions and times of single operations are not."""
MODES = ("inf", "train")
FAMILIES = ("bert", "gpt", "opt", "switch")
"""Starts of the names of models; models of one family have equal kinds of layers."""
PHASES = ("FwOps", "BwOps", "AccOps")
"""Columns of a graph with the kernels of an operation: forward, backward, accumulation of gradients."""
_GRAPH = ("Name", *PHASES)
_MAX_LAYERS = 1000


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


def graph_file(run: str) -> str:
    """Return the path of the graph of a model run, such as "gpt2_large-inf-1024-8", in the archive."""
    return f"scripts/asplos/results/opgraph/{run}.csv"


def layers_file(device: str, run: str) -> str:
    """Return the path of the file with the number of layers of a model run, in the archive."""
    return f"scripts/asplos/label/{device}/{run}.json"


def check(folder: Path) -> None:
    """Check the files of the archive and their columns. Raises: UserError."""
    contents = read_archive(folder / ARCHIVE)
    for name, (table, _) in list_tables().items():
        read_kernels(contents, name, table)
    for gpu in (*TRAINING_GPUS, *NEW_GPUS):
        read_facts(contents, gpu)
    runs = read_runs(folder / ARCHIVE)
    whole = runs[is_single_gpu_run(runs)]
    contents = read_graphs(folder / ARCHIVE, whole)
    for run in name_runs(whole).unique():
        read_graph(contents, run)
    for device, run in zip(whole["device"], name_runs(whole), strict=True):
        read_layers(contents, device, run)


def read_archive(path: Path) -> dict[str, bytes]:
    """Return the tables of kernels and the facts of GPUs by path. Raises: UserError."""
    names = [*list_tables(), *(facts_file(gpu) for gpu in (*TRAINING_GPUS, *NEW_GPUS))]
    return read_tar_members(path, names, whole_paths=True)


def read_runs(path: Path) -> pd.DataFrame:
    """Return the runs of whole models as texts, in the order of their lines. Raises: UserError."""
    contents = read_tar_members(path, [SUMMARY], whole_paths=True)
    return _read_csv(contents[SUMMARY], "summary.csv", RUN_COLUMNS)


def is_single_gpu_run(runs: pd.DataFrame) -> pd.Series:
    """Return which runs have a graph of their own: on one GPU with facts, without fused operations. Shapes: (n,)."""
    known = runs["device"].isin([gpu.replace(" ", "_") for gpu in (*TRAINING_GPUS, *NEW_GPUS)])
    numbers = runs["seqlen"].str.fullmatch(r"[1-9]\d{0,6}") & runs["batch"].str.fullmatch(r"[1-9]\d{0,6}")
    named = runs["model_name"].str.fullmatch(rf"({'|'.join(FAMILIES)})\w{{0,40}}", flags=re.ASCII)
    return known & numbers & named & (runs["option"] == "") & runs["mode"].isin(MODES)


def name_runs(runs: pd.DataFrame) -> pd.Series:
    """Return the name of every run in the names of its files. Shapes: (n,)."""
    return runs["model_name"] + "-" + runs["mode"] + "-" + runs["seqlen"] + "-" + runs["batch"]


def read_graphs(path: Path, runs: pd.DataFrame) -> dict[str, bytes]:
    """Return the graphs and numbers of layers of single-GPU runs by path. Raises: UserError."""
    names = name_runs(runs)
    layers = [layers_file(device, run) for device, run in zip(runs["device"], names, strict=True)]
    return read_tar_members(path, sorted({*map(graph_file, names), *layers}), whole_paths=True)


def read_graph(contents: Mapping[str, bytes], run: str) -> pd.DataFrame:
    """Return the operations of a model run, one row per operation, as texts. Raises: UserError."""
    return _read_csv(contents[graph_file(run)], f"{run}.csv", _GRAPH)


def read_layers(contents: Mapping[str, bytes], device: str, run: str) -> int:
    """Return how often the graph's layer runs; 0 where the graph has all layers. Raises: UserError."""
    name = layers_file(device, run).rpartition("/")[2]
    try:
        layers = json.loads(contents[layers_file(device, run)].decode("utf-8"))["num_layer"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        fact = f"it cannot be read ({type(error).__name__})"
        raise UserError(f"{name} of {ARCHIVE} must be a JSON object with num_layer", fact, FETCH_AGAIN) from None
    if isinstance(layers, bool) or not isinstance(layers, int) or not 0 <= layers <= _MAX_LAYERS:
        requirement = f"num_layer in {name} of {ARCHIVE} must be a number from 0 to {_MAX_LAYERS}"
        raise UserError(requirement, f"it is {str(layers)[:50]!r}", FETCH_AGAIN)
    return layers


def read_kernels(contents: Mapping[str, bytes], name: str, table: str) -> pd.DataFrame:
    """Return the rows of a table as texts. Raises: UserError when it is no CSV file or lacks a column."""
    return _read_csv(contents[name], name.rpartition("/")[2], [*_COMMON, *SHAPES[table]])


def _read_csv(content: bytes, short: str, wanted: Sequence[str]) -> pd.DataFrame:
    try:
        frame = pd.read_csv(
            io.BytesIO(content),
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
    return frame[list(wanted)]


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
