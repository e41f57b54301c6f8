"""Headline metrics: per dataset and split, the errors of the champion and of the best baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfcast.evaluation.evaluation_tables import AVERAGE

_ERROR_OF_SHARES = "mae"
_SHOWN = (_ERROR_OF_SHARES, "mape", "medape", "coverage")


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
