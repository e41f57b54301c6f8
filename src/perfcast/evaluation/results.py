"""What an evaluation of one data set holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from perfcast.splits import is_compared, learning_curve_point

AVERAGE = "average"
"""Name of the row that averages over the tasks of a data set."""
BASELINE = "lookup"
"""The predictor the protocol compares every other with: the same machine's results in training."""
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
    *("half", "support", "unlike"),
]


@dataclass(frozen=True)
class Evaluation:
    """Everything the figures and the report need to know of one data set's runs.

    Shapes: `metrics` one row per (split, predictor, task or "average", metric); `slices` one per (split, predictor,
    slice, value); `paired` as `comparison.compare`; `pairs` as `pairs.compare_all`; `noise` as `noise.noise_floor`;
    `history` one row per (split, predictor, seed, fold, epoch); `points` one per (split, predictor, test row, target),
    predictions being the geometric mean over seeds, with half-width of the interval in logarithms, support, and what is
    least like anything measured; `support` and `levels` as `intervals.by_support` and `by_level`; `importance` and
    `attention` as in `explanations`; `published` one row per (what, split, task, metric) that others published
    a figure of.
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
    support: pd.DataFrame
    levels: pd.DataFrame
    importance: pd.DataFrame
    attention: pd.DataFrame
    published: pd.DataFrame
    resamples: int
    seed: int
    level: float

    @property
    def splits(self) -> list[str]:
        """Splits in the order given to `evaluate`, without `with_less_training` unless there are no others."""
        every = list(dict.fromkeys(self.metrics["split"]))
        return [split for split in every if learning_curve_point(split) is None] or every

    @property
    def with_less_training(self) -> list[str]:
        """Splits that are another one with less to learn from: points on a curve, which tables and orders leave out."""
        return [split for split in dict.fromkeys(self.metrics["split"]) if learning_curve_point(split) is not None]

    @property
    def beside_published(self) -> list[str]:
        """Splits that are no question: they leak on purpose, to stand beside figures that others published."""
        return [split for split in self.splits if not is_compared(split) and learning_curve_point(split) is None]

    @property
    def questions(self) -> list[str]:
        """Splits whose errors count when predictors are compared; all of them where none is a question."""
        return [split for split in self.splits if is_compared(split)] or self.splits

    @property
    def predictors(self) -> list[str]:
        """Predictors in alphabetical order."""
        return sorted(set(self.metrics["predictor"]))

    @property
    def tasks(self) -> list[str]:
        """Tasks in alphabetical order, without the average over them."""
        return sorted(set(self.metrics["task"]) - {AVERAGE})

    def value(self, split: str, predictor: str, task: str = AVERAGE, metric: str = "mape") -> pd.Series | None:
        """Return one row of `metrics`, or None when this predictor has no run on this split."""
        place = self._places.get((split, predictor, task, metric))
        return None if place is None else self.metrics.iloc[place]

    @cached_property
    def _places(self) -> dict[tuple[str, str, str, str], int]:
        """Where each (split, predictor, task, metric) is in `metrics`: the report asks a thousand times."""
        keys = [self.metrics[name] for name in ("split", "predictor", "task", "metric")]
        return {key: place for place, key in enumerate(zip(*keys, strict=True))}

    def ranking(self) -> list[str]:
        """Return the predictors by their mean log MAPE over the questions, best first; display order only."""
        rows = self.metrics[(self.metrics["task"] == AVERAGE) & (self.metrics["metric"] == "mape")]
        rows = rows[rows["split"].isin(self.questions)]
        logs = np.log(rows["value"].clip(lower=1e-9)).groupby(rows["predictor"]).mean()
        return [str(name) for name in logs.sort_index().sort_values(kind="stable").index]
