"""Tables of the evaluation of one dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from perfcast.evaluation.run_predictions import YEAR
from perfcast.schema.display_names import predictor_label
from perfcast.splits import is_compared, learning_curve_point

_VENDOR = "vendor"
AVERAGE = "average"
"""Name of the row that averages over the tasks of a dataset."""
BASELINE = "nearest"
"""Predictor that every other one is compared with: results of the same machine in training."""
MIN_ENTITIES = 10
"""Machines below which predictors are not ranked: a clustered bootstrap of fewer gives no usable interval."""


@dataclass(frozen=True)
class Evaluation:
    """Tables of one dataset for plots and report, by name: those of `evaluate_runs`, and those of the domain.

    Shapes: `metrics` one row per (split, predictor, task or "average", metric); `slices` one per (split, predictor,
    slice, value); `paired` as `compare`; `pairs` as `compare_all_pairs`; `history` one per (split, predictor, seed,
    fold, epoch); `points` one per (split, predictor, test row, target), predictions being the geometric mean over
    seeds, with the half-width of the interval in logarithms, in-domain score and least similar feature group.
    `labels` maps a predictor to its display name.
    Units: errors in %.
    """

    dataset: str
    tables: Mapping[str, pd.DataFrame]
    resamples: int
    seed: int
    level: float
    labels: Mapping[str, str] = field(default_factory=dict)

    def with_tables(self, **tables: pd.DataFrame) -> Evaluation:
        """Return the evaluation with other tables in place of those of the same names."""
        return replace(self, tables={**self.tables, **tables})

    def label(self, predictor: str) -> str:
        """Return the name of a predictor as people write it."""
        return predictor_label(predictor, self.labels)

    @property
    def metrics(self) -> pd.DataFrame:
        """The table of metrics."""
        return self.tables["metrics"]

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

    @cached_property
    def can_rank(self) -> bool:
        """True where a split that counts has enough tested machines to rank predictors."""
        rows = self.metrics[(self.metrics["task"] == AVERAGE) & self.metrics["split"].isin(self.ranked_splits)]
        return bool((rows["entities"] >= MIN_ENTITIES).any())

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
    def _slice_names(self) -> list[str]:
        return [name for name in dict.fromkeys(self.tables["slices"]["slice"]) if name != YEAR]

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


def headline(evaluation: Evaluation) -> str:
    """Return the table of MAPE / MedAPE, averaged over tasks: predictors by splits, the noise floor last."""
    count = len(evaluation.tasks)
    over = f"average over {count} tasks" if count > 1 else evaluation.tasks[0]
    rows = []
    for predictor in evaluation.ranking():
        name = f"{predictor} (baseline)" if predictor == BASELINE else predictor
        rows.append([name, *[_cell(evaluation, split, predictor) for split in evaluation.splits]])
    noise = evaluation.tables["noise"]
    noise = noise[noise["task"] == AVERAGE]
    if not noise.empty:
        floor = noise.iloc[0]
        cell = f"{floor['mape_floor']:.2f} / {floor['medape_floor']:.2f}"
        rows.append(["noise floor", *[cell for _ in evaluation.splits]])
    text = [f"{evaluation.dataset}: MAPE / MedAPE in %, {over}"]
    lines = [["predictor", *evaluation.splits], *rows]
    first, *widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        text.append("  ".join([name.ljust(first), *map(str.rjust, cells, widths)]))
    if not evaluation.can_rank:
        text.append(f"Fewer than {MIN_ENTITIES} tested machines: the table shows that the chain works, not a ranking.")
    if evaluation.comparison_splits:
        text.append(
            f"{', '.join(evaluation.comparison_splits)}: only for comparison with published values; not counted"
        )
    if evaluation.learning_curve_splits:
        text.append(f"{len(evaluation.learning_curve_splits)} learning-curve splits: in metrics.csv; not counted")
    return "\n".join(text)


def _cell(evaluation: Evaluation, split: str, predictor: str) -> str:
    values = [evaluation.value(split, predictor, AVERAGE, metric) for metric in evaluation.error_metrics]
    return " / ".join("-" if value is None or np.isnan(value["value"]) else f"{value['value']:.2f}" for value in values)
