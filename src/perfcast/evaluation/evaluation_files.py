"""Files of an evaluation, and the metrics that are gathered from those of several datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation.evaluate_runs import TABLES
from perfcast.evaluation.evaluation_tables import AVERAGE, Evaluation
from perfcast.schema.table_files import SCHEMA_KEY, SCHEMA_VERSION, check_schema_version, read_csv, read_parquet
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, read_object, write_json
from perfcast.utils.result_digests import record_digests

_SUMMARY = ("dataset", "resamples", "seed", "level")
"""Fields of an `Evaluation` that summary.json has."""
_POINTS = "points"
"""The largest table, stored as Parquet."""
_TEXT = (
    "split",
    "predictor",
    "other",
    "task",
    "metric",
    "slice",
    "against",
    "reference",
    "claim",
    "group",
    "facts",
    "alarm",
    "unit",
)
_SLICED = "slices"
"""The table whose column `value` is text."""
_ERROR_OF_SHARES = "mae"
_SHOWN = (_ERROR_OF_SHARES, "mape", "medape", "coverage")


def write_evaluation(evaluation: Evaluation, folder: Path) -> None:
    """Write every table as CSV, the points as Parquet, and summary.json, atomically."""
    with atomic_folder(folder) as temporary:
        for name, frame in evaluation.tables.items():
            if name == _POINTS:
                path = temporary / f"{name}.parquet"
                frame.to_parquet(path, index=False, compression="zstd", write_page_checksum=True)
            else:
                frame.to_csv(temporary / f"{name}.csv", index=False, float_format="%.6g", lineterminator="\n")
        summary = {SCHEMA_KEY: SCHEMA_VERSION, **{name: getattr(evaluation, name) for name in _SUMMARY}}
        write_json(temporary / "summary.json", {**summary, "metrics": metrics_tree(evaluation)})
        record_digests(temporary)


def read_evaluation(folder: Path) -> Evaluation:
    """Read an evaluation written by `write_evaluation`.

    Raises: UserError when the folder holds none, one of another schema version, or one without a table of `TABLES`.
    """
    folder = Path(folder)
    if not (folder / "summary.json").is_file():
        raise UserError("an evaluation must exist", f"{folder / 'summary.json'} is missing", "run snakemake to make it")
    check_schema_version(read_object(folder / "summary.json"), folder / "summary.json")
    summary = read_object(folder / "summary.json", *_SUMMARY)
    names = dict.fromkeys([*TABLES, *(path.stem for path in sorted(folder.glob("*.csv")))])
    tables = {name: _read(folder / f"{name}.csv") for name in names if name != _POINTS}
    tables[_POINTS] = read_parquet(folder / f"{_POINTS}.parquet")
    return Evaluation(tables=tables, **{name: summary[name] for name in _SUMMARY})


def _read(path: Path) -> pd.DataFrame:
    """Read one table; names stay text even if they look like numbers or missing values."""
    header = read_csv(path, nrows=0).columns
    text = [name for name in header if name in _TEXT or (path.stem == _SLICED and name == "value")]
    return read_csv(
        path,
        dtype=dict.fromkeys(text, "str"),
        keep_default_na=False,
        na_values={name: [""] for name in header if name not in text},
    )


def metrics_tree(evaluation: Evaluation) -> dict[str, Any]:
    """Return {split: {predictor: {task: {metric: value}}}}, rounded to six significant digits; NaN is left out."""
    tree: dict[str, Any] = {}
    for row in evaluation.metrics.to_dict("records"):
        if np.isfinite(row["value"]):
            node = tree.setdefault(row["split"], {}).setdefault(row["predictor"], {}).setdefault(row["task"], {})
            node[row["metric"]] = float(f"{row['value']:.6g}")
    return tree


def headline_metrics(
    metrics: Mapping[str, Mapping[str, Mapping[str, Any]]], champions: Mapping[str, str], baselines: Sequence[str]
) -> dict[tuple[str, str], dict[str, str | float]]:
    """Return the headline of every (dataset, split); a metric that was not measured is left out.

    Args:
        metrics: {dataset: {split: {predictor: {task: {metric: value}}}}}, as in metrics.json.
        champions: Predictor that was chosen for each dataset.
        baselines: Predictors that count as baselines; the one with the least error is shown.
    Units: percent; `mae` in points.
    """
    headlines = {}
    for dataset, champion in champions.items():
        for split, predictors in metrics[dataset].items():
            averages = {name: tasks.get(AVERAGE, {}) for name, tasks in predictors.items()}
            values: dict[str, str | float] = {"champion": champion}
            values |= {name: averages[champion][name] for name in _SHOWN if name in averages.get(champion, {})}
            error = _ERROR_OF_SHARES if _ERROR_OF_SHARES in averages.get(champion, {}) else "mape"
            known = [name for name in baselines if error in averages.get(name, {})]
            if known:
                best = min(known, key=lambda name: float(averages[name][error]))
                values |= {"baseline": best, f"baseline_{error}": averages[best][error]}
            headlines[dataset, split] = values
    return headlines
