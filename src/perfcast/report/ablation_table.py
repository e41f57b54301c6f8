"""Ablation: error of a predictor without one of its components, on the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.evaluation import Evaluation
from perfcast.evaluation.error_metrics import draw_weights, percentile_interval
from perfcast.report.table_rows import ENTITY, Rows

WITHOUT = "_without_"


@dataclass(frozen=True)
class ErrorIncrease:
    """Increase of the error without one component, in percentage points, with its 95 % interval."""

    difference: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return bool(self.low > 0 or self.high < 0)


@dataclass(frozen=True)
class Ablation:
    """One complete predictor, the splits it was evaluated on, and one line per removed component."""

    predictor: str
    splits: list[str]
    lines: list[tuple[str, list[ErrorIncrease | None]]]


def ablation_tables(evaluation: Evaluation, rows: Rows) -> list[Ablation]:
    """Return one table per predictor that was also run without a component (`<predictor>_without_<component>`)."""
    pairs = [name.split(WITHOUT, 1) for name in evaluation.predictors if WITHOUT in name]
    tables = []
    for complete in sorted({first for first, _ in pairs} & set(evaluation.predictors)):
        components = sorted(component for first, component in pairs if first == complete)
        increases = {
            (split, component): _error_increase(evaluation, rows, split, complete, f"{complete}{WITHOUT}{component}")
            for split in evaluation.splits
            for component in components
        }
        splits = [split for split in evaluation.splits if any(increases[split, component] for component in components)]
        lines = [
            (component.replace("_", " "), [increases[split, component] for split in splits]) for component in components
        ]
        if splits:
            tables.append(Ablation(complete, splits, lines))
    return tables


def _error_increase(
    evaluation: Evaluation, rows: Rows, split: str, predictor: str, reduced: str
) -> ErrorIncrease | None:
    """Return the difference of MAPE, averaged over tasks, resampled by entity; None where one was not run."""
    points = evaluation.points[evaluation.points["split"] == split]
    errors = (100 * (points["predicted"] / points["measured"] - 1).abs()).astype(float)
    keyed = points[["row", "task", "target"]].assign(error=errors)
    first, second = (keyed[points["predictor"] == name] for name in (reduced, predictor))
    both = first.merge(second, on=["row", "task", "target"], suffixes=("", "_complete"))
    if both.empty:
        return None
    clusters = pd.factorize(rows.names.loc[both["row"], ENTITY], sort=True)[0]
    count = int(clusters.max()) + 1
    weights = draw_weights(count, evaluation.resamples, evaluation.seed)
    gaps, draws = [], []
    for _, part in both.assign(cluster=clusters).groupby("task", sort=True):
        gap = part["error"] - part["error_complete"]
        size = np.bincount(part["cluster"], minlength=count)
        total = np.bincount(part["cluster"], weights=gap, minlength=count)
        with np.errstate(invalid="ignore"):
            draws.append((weights @ total) / (weights @ size))
        gaps.append(gap.mean())
    low, high = percentile_interval(np.mean(draws, axis=0), count)
    return ErrorIncrease(float(np.mean(gaps)), low, high)
