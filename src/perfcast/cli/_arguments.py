"""Arguments, folders and examples that several commands share; a number out of range is a mistake in one line."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

LARGEST_SEED = 2**32 - 1
"""The largest seed of numpy."""


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from `low` to `high`."""

    def read(text: str) -> int:
        plain = text.strip().removeprefix("+").removeprefix("-")
        value = int(text) if plain.isascii() and plain.isdigit() and len(plain) <= 20 else None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be a whole number from {low} to {high}; got {text[:60]!r}")
        return value

    return read


def number(low: float, high: float) -> Callable[[str], float]:
    """Return a reader of numbers from `low` to `high`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be a number from {low:g} to {high:g}; got {text[:60]!r}")
        return value

    return read


seed = whole(0, LARGEST_SEED)
backtests = whole(0, 10)
resamples = whole(1, 100_000)
level = number(1e-6, 1 - 1e-6)

MIRROR_VARIABLE = "PERFCAST_MIRROR"
CACHE_VARIABLE = "PERFCAST_CACHE"


def read_experiment(text: str) -> dict[str, Any]:
    """Read an experiment as JSON."""
    from perfcast.inference.machine_files import read_json_text
    from perfcast.utils.errors import UserError

    value = read_json_text(text, "--experiment")
    if not isinstance(value, dict):
        raise UserError("--experiment must be one JSON object", f"it is {text[:60]!r}")
    return value


SHARED: dict[str, dict[str, Any]] = {
    "dataset": {},
    "split": {},
    "predictor": {},
    "--table": {"type": Path, "required": True, "help": "the table with features"},
    "--standard": {"type": Path, "required": True, "help": "the standard table, without features"},
    "--folds": {"type": Path, "required": True, "help": "the split"},
    "--runs": {"type": Path, "required": True, "help": "folder of the dataset's runs"},
    "--raw": {"type": Path, "required": True, "help": "folder of the ingested sources"},
    "--splits": {"nargs": "+", "required": True},
    "--predictors": {"nargs": "+", "required": True},
    "--preset": {"choices": ["quick", "full"], "default": "full"},
    "--backtest-windows": {"type": backtests, "default": 1, "help": "most backtests of a forward split"},
    "--resamples": {"type": resamples, "default": 1000, "help": "bootstrap resamples (default 1000)"},
    "--seed": {"type": seed, "default": 0},
    "--out": {"type": Path, "required": True},
    "--experiment": {"type": read_experiment, "help": "the experiment as JSON (default: params.yaml)"},
    "--results": {"type": Path, "default": Path("results")},
    "--project": {"type": Path, "default": Path(), "help": "folder of params.yaml and conf/ (default: .)"},
}


def add_shared(parser: argparse.ArgumentParser, names: str) -> None:
    """Declare arguments that several commands have: their names in SHARED, separated by blanks."""
    for name in names.split():
        parser.add_argument(name, **SHARED[name])


def mirror_folders(configured: Sequence[str], project: Path, environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the mirror folders to search: those of PERFCAST_MIRROR first, then the configured ones."""
    named = [entry for entry in environment.get(MIRROR_VARIABLE, "").split(os.pathsep) if entry]
    return [project / entry for entry in (*named, *configured)]


def cache_folder(project: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of verified downloads: PERFCAST_CACHE, or one inside the project."""
    return project / environment.get(CACHE_VARIABLE, ".perfcast-cache")


def embedded_folder(project: Path) -> Path:
    """Return the folder of the data that is versioned with the project itself."""
    return project / "data" / "embedded"


def present_sources(raw: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the folders of the sources that were ingested, by name."""
    from perfcast.utils.io import read_object

    status = {name: read_object(raw / name / "manifest.json", "status")["status"] for name in names}
    return {name: raw / name for name in status if status[name] == "present"}


EXAMPLES = {
    "compare": "perfcast compare v1.0 results --fail-if-worse",
    "config": "perfcast config predictor=ridge split=random",
    "doctor": "perfcast doctor",
    "measure": "perfcast measure gemm --budget-minutes 5",
    "predict": "perfcast predict --processor 'AMD EPYC 9755' --chips 2 --memory '24 x 64 GB DDR5-6400'",
    "rank": "perfcast rank machines.csv",
    "reproduced": "perfcast reproduced HEAD",
    "serve": "perfcast serve --port 8000",
    "similar": "perfcast similar --processor 'AMD EPYC 9755'",
    "sources": "perfcast sources",
    "summary": "perfcast summary --results results",
    "tune": "perfcast tune spec_cpu2017 random ridge --table results/features/spec_cpu2017.parquet "
    "--folds results/splits/spec_cpu2017/random.parquet --out results/tuning",
    "ui": "perfcast ui --port 5000",
    "what_if": "perfcast what-if --this-machine --vary memory",
    "leakage": "perfcast pipeline leakage host_gemm --table features.parquet --standard standard.parquet "
    "--folds splits --runs runs --splits random --predictors ridge --out leakage.json",
    "available": "perfcast pipeline available host_gemm --raw results/raw --out results/raw/available.json",
    "champion": "perfcast pipeline champion host_gemm --runs runs --table features.parquet --standard standard.parquet "
    "--raw results/raw --splits random --predictors ridge --out champion",
    "evaluate": "perfcast pipeline evaluate host_gemm --table features.parquet --runs runs --splits random "
    "--predictors ridge --out evaluation",
    "fake": "perfcast pipeline fake demo --rows 600",
    "features": "perfcast pipeline features host_gemm --table standard.parquet --out features.parquet",
    "plots": "perfcast pipeline plots host_gemm --evaluation evaluation --plots coverage --out plots",
    "ingest": "perfcast pipeline ingest host_gemm --out results/raw/host_gemm",
    "metrics": "perfcast pipeline metrics results/evaluation/host_gemm --out results/metrics.json",
    "record": "perfcast pipeline record --results results",
    "report": "perfcast pipeline report --results results --out results/report.html",
    "split": "perfcast pipeline split random --table standard.parquet --out random.parquet",
    "standardize": "perfcast pipeline standardize host_gemm --raw results/raw --table standard.parquet "
    "--rejected rejected.csv --quality quality.json",
    "in_domain": "perfcast pipeline in-domain host_gemm random --table features.parquet --folds random.parquet "
    "--out support.parquet",
    "times": "perfcast pipeline times --results results",
    "train": "perfcast pipeline train host_gemm random ridge --table features.parquet --folds random.parquet --out run",
}
