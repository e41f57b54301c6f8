"""An evaluation as a folder of tidy tables, and as the nested numbers `dvc metrics` compares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation.evaluation_tables import Evaluation
from perfcast.schema.schema_version import SCHEMA_KEY, SCHEMA_VERSION, check_schema_version
from perfcast.schema.table_files import read_csv, read_parquet
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, read_object, write_json

_TABLES = (
    "metrics",
    "slices",
    "paired",
    "pairs",
    "noise",
    "history",
    "importance",
    "attention",
    "published",
    "in_domain",
    "levels",
)
_TEXT = (
    *("split", "predictor", "other", "task", "metric", "slice", "against", "reference", "claim"),
    *("group", "asks", "looks_at", "what", "citation"),
)


def metrics_tree(evaluation: Evaluation) -> dict[str, Any]:
    """Return {split: {predictor: {task: {metric: value}}}}, rounded to six significant digits; NaN is left out."""
    tree: dict[str, Any] = {}
    for row in evaluation.metrics.to_dict("records"):
        if np.isfinite(row["value"]):
            node = tree.setdefault(row["split"], {}).setdefault(row["predictor"], {}).setdefault(row["task"], {})
            node[row["metric"]] = float(f"{row['value']:.6g}")
    return tree


def write_evaluation(evaluation: Evaluation, folder: Path) -> None:
    """Write every table as CSV, the points as Parquet, and summary.json, atomically."""
    with atomic_folder(folder) as temporary:
        for name in _TABLES:
            frame: pd.DataFrame = getattr(evaluation, name)
            frame.to_csv(temporary / f"{name}.csv", index=False, float_format="%.6g", lineterminator="\n")
        evaluation.points.to_parquet(temporary / "points.parquet", index=False, compression="zstd")
        summary = {
            SCHEMA_KEY: SCHEMA_VERSION,
            "dataset": evaluation.dataset,
            "resamples": evaluation.resamples,
            "seed": evaluation.seed,
            "level": evaluation.level,
            "metrics": metrics_tree(evaluation),
        }
        write_json(temporary / "summary.json", summary)


def read_evaluation(folder: Path) -> Evaluation:
    """Read an evaluation written by `write_evaluation`.

    Raises: UserError when the folder holds none, or one of another schema version.
    """
    folder = Path(folder)
    if not (folder / "summary.json").is_file():
        raise UserError("an evaluation must exist", f"{folder / 'summary.json'} is missing", "run snakemake to make it")
    summary = read_summary(folder / "summary.json")
    tables = {name: _read(folder / f"{name}.csv") for name in _TABLES}
    return Evaluation(
        dataset=summary["dataset"],
        points=read_parquet(folder / "points.parquet"),
        resamples=summary["resamples"],
        seed=summary["seed"],
        level=summary["level"],
        **tables,
    )


def read_summary(path: Path) -> dict[str, Any]:
    """Return the content of an evaluation's summary.json. Raises: UserError for another schema version."""
    check_schema_version(read_object(path), path)
    return read_object(path, "dataset", "resamples", "seed", "level", "metrics")


def _read(path: Path) -> pd.DataFrame:
    """Read one table; names stay text even if they look like numbers or missing values."""
    header = read_csv(path, nrows=0).columns
    text = [name for name in header if name in _TEXT or (path.stem == "slices" and name == "value")]
    return read_csv(
        path,
        dtype=dict.fromkeys(text, "str"),
        keep_default_na=False,
        na_values={name: [""] for name in header if name not in text},
    )
