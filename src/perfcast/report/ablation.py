"""What each idea of a predictor is worth: the same predictor without it, on the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.evaluation import Evaluation
from perfcast.evaluation.metrics import draw_weights, interval
from perfcast.report.rows import ENTITY, Rows

WITHOUT = "_without_"


@dataclass(frozen=True)
class Loss:
    """By how much the error grows without one idea, in percentage points, with its 95 % interval."""

    difference: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return bool(self.low > 0 or self.high < 0)


@dataclass(frozen=True)
class Ablation:
    """One whole predictor, the splits it was judged on, and one line per idea taken away."""

    whole: str
    splits: list[str]
    lines: list[tuple[str, list[Loss | None]]]


def ablations(evaluation: Evaluation, rows: Rows) -> list[Ablation]:
    """Return one table per predictor that was also run without some of its ideas (`<whole>_without_<idea>`)."""
    pairs = [name.split(WITHOUT, 1) for name in evaluation.predictors if WITHOUT in name]
    found = []
    for whole in sorted({first for first, _ in pairs} & set(evaluation.predictors)):
        ideas = sorted(idea for first, idea in pairs if first == whole)
        losses = {
            (split, idea): _loss(evaluation, rows, split, whole, f"{whole}{WITHOUT}{idea}")
            for split in evaluation.splits
            for idea in ideas
        }
        splits = [split for split in evaluation.splits if any(losses[split, idea] for idea in ideas)]
        lines = [(idea.replace("_", " "), [losses[split, idea] for split in splits]) for idea in ideas]
        if splits:
            found.append(Ablation(whole, splits, lines))
    return found


def _loss(evaluation: Evaluation, rows: Rows, split: str, whole: str, without: str) -> Loss | None:
    """Return the difference of MAPE, averaged over tasks, resampled by entity; None where one was not run."""
    points = evaluation.points[evaluation.points["split"] == split]
    errors = (100 * (points["predicted"] / points["measured"] - 1).abs()).astype(float)
    keyed = points[["row", "task", "target"]].assign(error=errors)
    one, other = (keyed[points["predictor"] == name] for name in (without, whole))
    both = one.merge(other, on=["row", "task", "target"], suffixes=("", "_whole"))
    if both.empty:
        return None
    clusters = pd.factorize(rows.names.loc[both["row"], ENTITY], sort=True)[0]
    count = int(clusters.max()) + 1
    weights = draw_weights(count, evaluation.resamples, evaluation.seed)
    gaps, draws = [], []
    for _, part in both.assign(cluster=clusters).groupby("task", sort=True):
        gap = part["error"] - part["error_whole"]
        size = np.bincount(part["cluster"], minlength=count)
        total = np.bincount(part["cluster"], weights=gap, minlength=count)
        with np.errstate(invalid="ignore"):
            draws.append((weights @ total) / (weights @ size))
        gaps.append(gap.mean())
    low, high = interval(np.mean(draws, axis=0), count)
    return Loss(float(np.mean(gaps)), low, high)
