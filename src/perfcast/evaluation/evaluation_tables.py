"""Tables of the evaluation of one dataset."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from perfcast.evaluation.run_predictions import YEAR
from perfcast.splits import is_compared, learning_curve_point

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
    *("split", "predictor", "slice", "value", "mape", "low", "high", "medape"),
    *("coverage", "width", "rows", "entities"),
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
    slice, value); `paired` as `compare`; `pairs` as `compare_all_pairs`; `noise` as `estimate_noise_floor`;
    `history` one row per (split, predictor, seed, fold, epoch); `points` one per (split, predictor, test row, target),
    predictions being the geometric mean over seeds, with half-width of the interval in logarithms, in-domain score and
    least similar feature group; `in_domain` as `errors_by_in_domain_score`; `levels` as
    `coverage_by_level`; `importance` and `attention` as in `explanation_tables`; `published`
    one row per published value (what, split, task, metric).
    Units: errors in %.
    """

    dataset: str
    metrics: pd.DataFrame
    slices: pd.DataFrame
    paired: pd.DataFrame
    pairs: pd.DataFrame
    noise: pd.DataFrame
    history: pd.DataFrame
    points: pd.DataFrame
    in_domain: pd.DataFrame
    levels: pd.DataFrame
    importance: pd.DataFrame
    attention: pd.DataFrame
    published: pd.DataFrame
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

    def value(self, split: str, predictor: str, task: str = AVERAGE, metric: str = "mape") -> pd.Series | None:
        """Return one row of `metrics`, or None when this predictor has no run on this split."""
        position = self._positions.get((split, predictor, task, metric))
        return None if position is None else self.metrics.iloc[position]

    @cached_property
    def _positions(self) -> dict[tuple[str, str, str, str], int]:
        """Row of each (split, predictor, task, metric) in `metrics`, because the report reads it often."""
        keys = [self.metrics[name] for name in ("split", "predictor", "task", "metric")]
        return {key: position for position, key in enumerate(zip(*keys, strict=True))}

    def ranking(self) -> list[str]:
        """Return the predictors by their mean log MAPE over the ranked splits, best first; display order only."""
        rows = self.metrics[(self.metrics["task"] == AVERAGE) & (self.metrics["metric"] == "mape")]
        rows = rows[rows["split"].isin(self.ranked_splits)]
        logs = np.log(rows["value"].clip(lower=1e-9)).groupby(rows["predictor"]).mean()
        return [str(name) for name in logs.sort_index().sort_values(kind="stable").index]
