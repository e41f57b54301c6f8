"""Tables of the evaluation of one dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation.run_predictions import YEAR
from perfcast.schema.schema_version import SCHEMA_KEY, SCHEMA_VERSION, check_schema_version
from perfcast.schema.table_files import read_csv, read_parquet
from perfcast.splits import is_compared, learning_curve_point
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, read_object, write_json
from perfcast.utils.result_digests import record_digests
from perfcast.utils.terminal_tables import format_table

_VENDOR = "vendor"
_LINEAGE = ("family", "generation", "series")
AVERAGE = "average"
"""Name of the row that averages over the tasks of a dataset."""
BASELINE = "nearest"
"""Predictor that every other one is compared with: results of the same machine in training."""
METRIC_COLUMNS = [
    "split",
    "predictor",
    "task",
    "metric",
    "value",
    "low",
    "high",
    "seed_sd",
    "rows",
    "entities",
    "seeds",
]
SLICE_COLUMNS = [
    *("split", "predictor", "slice", "value", "mape", "low", "high", "medape", "mae"),
    *("coverage", "width", "interval_score", "rows", "entities"),
]
PUBLISHED_COLUMNS = ["what", "split", "task", "metric", "value", "citation", "predictor"]
POINT_COLUMNS = [
    *("split", "predictor", "row", "task", "target", "measured", "predicted"),
    *("half_width", "in_domain_score", "least_similar_group"),
]


@dataclass(frozen=True)
class Evaluation:
    """Tables of one dataset for plots and report.

    Shapes: `metrics` one row per (split, predictor, task or "average", metric); `slices` one per (split, predictor,
    slice, value); `paired` as `compare`; `pairs` as `compare_all_pairs`; `all_rows` as `compare_all_rows`;
    `noise` as `estimate_noise_floor`; `history` one row per (split, predictor, seed, fold, epoch); `points` one per
    (split, predictor, test row, target), predictions being the geometric mean over seeds, with the half-width
    of the interval in logarithms, in-domain score and least similar feature group; `in_domain` as
    `errors_by_in_domain_score`; `levels` as `coverage_by_level`; `pit` as `pit_histogram`; `calibration` as
    `calibration_checks`; `importance` and `attention` as in `explanation_tables`; `published` one row per published
    value (what, split, task, metric); `described` as `summarize_described`; `error_sources` as
    `tabulate_error_sources`; `kinds` as `tabulate_kind_errors`; `series` as
    `tabulate_series`; `tables` has those of the domain.
    Units: errors in %.
    """

    dataset: str
    metrics: pd.DataFrame
    slices: pd.DataFrame
    paired: pd.DataFrame
    pairs: pd.DataFrame
    all_rows: pd.DataFrame
    noise: pd.DataFrame
    history: pd.DataFrame
    points: pd.DataFrame
    in_domain: pd.DataFrame
    levels: pd.DataFrame
    pit: pd.DataFrame
    calibration: pd.DataFrame
    importance: pd.DataFrame
    attention: pd.DataFrame
    published: pd.DataFrame
    described: pd.DataFrame
    error_sources: pd.DataFrame
    kinds: pd.DataFrame
    series: pd.DataFrame
    tables: Mapping[str, pd.DataFrame]
    resamples: int
    seed: int
    level: float

    @property
    def splits(self) -> list[str]:
        """Splits in the order given to `evaluate`, without `learning_curve_splits` unless there are no others."""
        every = list(dict.fromkeys(self.metrics["split"]))
        return [split for split in every if learning_curve_point(split) is None] or every

    @property
    def learning_curve_splits(self) -> list[str]:
        """Splits with less training data than their base: points of learning curves, not in tables and rankings."""
        return [split for split in dict.fromkeys(self.metrics["split"]) if learning_curve_point(split) is not None]

    @property
    def comparison_splits(self) -> list[str]:
        """Splits that leak on purpose and serve comparison with published values only."""
        return [split for split in self.splits if not is_compared(split) and learning_curve_point(split) is None]

    @property
    def ranked_splits(self) -> list[str]:
        """Splits that count in rankings of predictors; all of them where none does."""
        return [split for split in self.splits if is_compared(split)] or self.splits

    @property
    def predictors(self) -> list[str]:
        """Predictors in alphabetical order."""
        return sorted(set(self.metrics["predictor"]))

    @property
    def tasks(self) -> list[str]:
        """Tasks in alphabetical order, without the average over them."""
        return sorted(set(self.metrics["task"]) - {AVERAGE})

    @property
    def vendor_slices(self) -> list[str]:
        """Slices whose column name ends in "vendor"."""
        return [name for name in self._slice_names if name.endswith(_VENDOR)]

    @property
    def lineage_slices(self) -> list[str]:
        """Slices whose column name ends in "family", "generation" or "series"."""
        return [name for name in self._slice_names if name.endswith(_LINEAGE)]

    @property
    def other_slices(self) -> list[str]:
        """Remaining slices but the year: tasks, targets, configuration, and what else the dataset declares."""
        return [name for name in self._slice_names if not name.endswith((_VENDOR, *_LINEAGE))]

    @property
    def _slice_names(self) -> list[str]:
        return [name for name in dict.fromkeys(self.slices["slice"]) if name != YEAR]

    @cached_property
    def error_metrics(self) -> tuple[str, str]:
        """Mean and median error that tables and rankings show: in points where the results are shares, else in %."""
        return ("mae", "medae") if (self.metrics["metric"] == "mae").any() else ("mape", "medape")

    @property
    def error_unit(self) -> str:
        """Unit of `error_metrics`."""
        return "points" if self.error_metrics[0] == "mae" else "%"

    def value(self, split: str, predictor: str, task: str = AVERAGE, metric: str = "") -> pd.Series | None:
        """Return one row of `metrics`, or None when this predictor has no run on this split.

        Without a metric it is the mean error.
        """
        position = self._positions.get((split, predictor, task, metric or self.error_metrics[0]))
        return None if position is None else self.metrics.iloc[position]

    @cached_property
    def _positions(self) -> dict[tuple[str, str, str, str], int]:
        """Row of each (split, predictor, task, metric) in `metrics`, because the report reads it often."""
        keys = [self.metrics[name] for name in ("split", "predictor", "task", "metric")]
        return {key: position for position, key in enumerate(zip(*keys, strict=True))}

    def ranking(self) -> list[str]:
        """Return the predictors by their mean log error over the ranked splits, best first; display order only."""
        rows = self.metrics[(self.metrics["task"] == AVERAGE) & (self.metrics["metric"] == self.error_metrics[0])]
        rows = rows[rows["split"].isin(self.ranked_splits)]
        logs = np.log(rows["value"].clip(lower=1e-9)).groupby(rows["predictor"]).mean()
        return [str(name) for name in logs.sort_index().sort_values(kind="stable").index]


_TABLES = (
    "metrics",
    "slices",
    "paired",
    "pairs",
    "all_rows",
    "noise",
    "history",
    "importance",
    "attention",
    "published",
    "in_domain",
    "levels",
    "pit",
    "calibration",
    "described",
    "error_sources",
    "kinds",
    "series",
)
_OPTIONAL = ("described", "all_rows", "error_sources", "kinds", "series", "pit", "calibration")
"""Tables that results of earlier versions do not have."""
_TEXT = (
    *("split", "predictor", "other", "task", "metric", "slice", "against", "reference", "claim"),
    *("group", "asks", "looks_at", "what", "citation", "facts", "known", "alarm"),
    *("kind", "unit", "line", "axis", "quantity"),
)


_SLICED = ("slices", "kinds")
"""Tables whose column `value` is text."""


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
        core = {name: getattr(evaluation, name) for name in _TABLES}
        for name, frame in {**evaluation.tables, **core}.items():
            frame.to_csv(temporary / f"{name}.csv", index=False, float_format="%.6g", lineterminator="\n")
        evaluation.points.to_parquet(
            temporary / "points.parquet", index=False, compression="zstd", write_page_checksum=True
        )
        summary = {
            SCHEMA_KEY: SCHEMA_VERSION,
            "dataset": evaluation.dataset,
            "resamples": evaluation.resamples,
            "seed": evaluation.seed,
            "level": evaluation.level,
            "metrics": metrics_tree(evaluation),
        }
        write_json(temporary / "summary.json", summary)
        record_digests(temporary)


def read_summary(path: Path) -> dict[str, Any]:
    """Return the content of an evaluation's summary.json. Raises: UserError for another schema version."""
    check_schema_version(read_object(path), path)
    return read_object(path, "dataset", "resamples", "seed", "level", "metrics")


def read_evaluation(folder: Path) -> Evaluation:
    """Read an evaluation written by `write_evaluation`.

    Raises: UserError when the folder holds none, or one of another schema version.
    """
    folder = Path(folder)
    if not (folder / "summary.json").is_file():
        raise UserError("an evaluation must exist", f"{folder / 'summary.json'} is missing", "run snakemake to make it")
    summary = read_summary(folder / "summary.json")
    paths = {name: folder / f"{name}.csv" for name in _TABLES}
    tables = {
        name: _read(path) if name not in _OPTIONAL or path.is_file() else pd.DataFrame() for name, path in paths.items()
    }
    return Evaluation(
        dataset=summary["dataset"],
        points=read_parquet(folder / "points.parquet"),
        tables={path.stem: _read(path) for path in sorted(folder.glob("*.csv")) if path.stem not in _TABLES},
        resamples=summary["resamples"],
        seed=summary["seed"],
        level=summary["level"],
        **tables,
    )


def _read(path: Path) -> pd.DataFrame:
    """Read one table; names stay text even if they look like numbers or missing values."""
    header = read_csv(path, nrows=0).columns
    text = [name for name in header if name in _TEXT or (path.stem in _SLICED and name == "value")]
    return read_csv(
        path,
        dtype=dict.fromkeys(text, "str"),
        keep_default_na=False,
        na_values={name: [""] for name in header if name not in text},
    )


def headline(evaluation: Evaluation) -> str:
    """Return the table of MAPE / MedAPE, averaged over tasks: predictors by splits, the noise floor last."""
    count = len(evaluation.tasks)
    over = f"average over {count} tasks" if count > 1 else evaluation.tasks[0]
    rows = []
    for predictor in evaluation.ranking():
        name = f"{predictor} (baseline)" if predictor == BASELINE else predictor
        rows.append([name, *[_cell(evaluation, split, predictor) for split in evaluation.splits]])
    noise = evaluation.noise[evaluation.noise["task"] == AVERAGE]
    if not noise.empty:
        floor = noise.iloc[0]
        cell = f"{floor['mape_floor']:.2f} / {floor['medape_floor']:.2f}"
        rows.append(["noise floor", *[cell for _ in evaluation.splits]])
    text = [f"{evaluation.dataset}: MAPE / MedAPE in %, {over}"]
    text += format_table(["predictor", *evaluation.splits], rows, right=range(1, len(evaluation.splits) + 1))
    if evaluation.comparison_splits:
        text.append(
            f"{', '.join(evaluation.comparison_splits)}: only for comparison with published values; not counted"
        )
    if evaluation.learning_curve_splits:
        text.append(f"{len(evaluation.learning_curve_splits)} learning-curve splits: see the plots; not counted")
    return "\n".join(text)


def _cell(evaluation: Evaluation, split: str, predictor: str) -> str:
    values = [evaluation.value(split, predictor, AVERAGE, metric) for metric in evaluation.error_metrics]
    return " / ".join("-" if value is None or np.isnan(value["value"]) else f"{value['value']:.2f}" for value in values)
