"""Scores of forecasts by known and new entities, task and month."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perfcast.uncertainty.conformal import LEVEL

GATE = 0.99
"""Level of the intervals whose misses, on known set-ups, tell of a change of time."""
COLUMNS = ["known", "results", "entities", "mape", "medape", "coverage"]
LABEL = "label "
"""Start of the columns of forecasts that have the labels of their rows."""
_GROUPS: tuple[list[str], ...] = ([], ["task"], ["month"], ["task", "month"])


def summarize_scores(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return results, entities, MAPE, MedAPE and coverage in % by known and new entities, task and month.

    Results without an estimate are left out. An empty task or month stands for all of them.
    """
    whole = pd.concat([_summarize(predictions, keys) for keys in _GROUPS]).reindex(columns=["task", "month", *COLUMNS])
    return whole.fillna({"task": "", "month": ""}).reset_index(drop=True)


def summarize_labels(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the scores by known and new entities and by each label, such as a vendor or a compiler.

    Columns: `label` and its `value`, then those of `summarize_scores`. Forecasts of earlier versions have no labels.
    """
    parts = [
        _summarize(predictions, [name]).rename(columns={name: "value"}).assign(label=name.removeprefix(LABEL))
        for name in map(str, predictions)
        if name.startswith(LABEL)
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["label", "value", *COLUMNS])


def _summarize(predictions: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    made = predictions.dropna(subset="estimate")
    error = 100 * (made["estimate"] / made["measured"] - 1).abs()
    inside = 100.0 * made["measured"].between(made["low"], made["high"])
    made = made.assign(error=error, inside=inside.where(made["low"].notna()))
    scores = made.groupby([*keys, "known"]).agg(
        results=("row", "size"),
        entities=("entity", "nunique"),
        mape=("error", "mean"),
        medape=("error", "median"),
        coverage=("inside", "mean"),
    )
    return scores.reset_index()


def list_scores(predictions: pd.DataFrame, entity: str) -> Iterator[str]:
    """Yield the errors over all tasks and months in words; `entity` names what is known or new."""
    summary = summarize_scores(predictions)
    for line in summary[(summary["task"] == "") & (summary["month"] == "")].itertuples():
        yield (
            f"{'known' if line.known else 'new'} {entity}s: {line.results} results of {line.entities}, "
            f"MAPE {line.mape:.1f} %, MedAPE {line.medape:.1f} %, "
            f"{line.coverage:.0f} % inside their {100 * LEVEL:g} % intervals"
        )
    if missing := int(predictions["estimate"].isna().sum()):
        yield f"{missing} of {len(predictions)} new results have no forecast: nothing is known of their design"
    gate = predictions["agrees"].dropna() if "agrees" in predictions else pd.Series(dtype=float)
    if outside := int((gate == 0).sum()):
        yield f"{outside} of {len(gate)} known set-ups lie outside the {100 * GATE:g} % interval: a change of time"
