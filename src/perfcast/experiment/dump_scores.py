"""Forecasts of the new results of a dump, frozen before the champion learns these, and the page of all dumps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.experiment.fitting import evaluated_rows, measured_rows
from perfcast.inference.bridge import Base
from perfcast.inference.champion import Champion
from perfcast.schema.table import Table, Tag
from perfcast.schema.table_files import read_parquet
from perfcast.sources.source_spec import MANIFEST
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.io import read_object, write_text

PREDICTIONS, PAGE = "predictions.parquet", "forecasts.md"
_GATE = 0.99
"""Level of the intervals whose misses, on known set-ups, tell of a change of time."""
_GROUPS: tuple[list[str], ...] = ([], ["task"], ["month"], ["task", "month"])
_TITLE = f"""# Forecasts and later results of {{}}

Every section is a dump. The champion forecast its new results before it learned them, from the set-ups that they state;
facts of hardware are those of the version at hand. Errors are those of the estimate in % of the result, coverage is the
share of results inside their {100 * LEVEL:g} % intervals. Forecasts are estimates, not official results.
"""


def predict_new(champion: Champion, table: Table, is_new: np.ndarray) -> pd.DataFrame:
    """Return the forecasts of new results by a champion that has not learned them; only those that metrics count.

    A result is its first score.

    Shapes: is_new (rows of the table,) bool -> one row per result: row, task, entity, month, `known` where an earlier
    result has the entity, measured, estimate, low, high, and `agrees`: 1 where the 99 % interval holds the result, 0
    where not, NaN where no earlier result has the set-up. Without a known design estimate and ends are NaN.
    """
    row, entity, task, time = map(table.column_of, (Tag.ROW, Tag.ENTITY, Tag.TASK, Tag.TIME))
    setup = [task, *table.select(tag=Tag.IDENTITY)]
    new, old = table.frame[is_new & measured_rows(table) & evaluated_rows(table)], table.frame[~is_new]
    base = Base(champion, "made", {name: name for name in champion.tasks})
    made, wide = (base.estimate(new, level) for level in (LEVEL, _GATE))
    measured = new[champion.predictor.targets_[0]]
    agrees = measured.between(wide["made_low"], wide["made_high"]).astype(float)
    is_known = pd.MultiIndex.from_frame(new[setup].astype(str)).isin(pd.MultiIndex.from_frame(old[setup].astype(str)))
    frame: pd.DataFrame = new[[row, task, entity]].astype(str).set_axis(["row", "task", "entity"], axis=1)
    frame = frame.assign(month=new[time].dt.strftime("%Y-%m"), known=frame["entity"].isin(old[entity].astype(str)))
    frame["measured"] = measured
    for name in ("estimate", "low", "high"):
        frame[name] = made[f"made_{name}"]
    frame["agrees"] = agrees.where(is_known & wide["made_low"].notna())
    return frame.reset_index(drop=True)


def summarize_scores(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return results, entities, MAPE, MedAPE and coverage in % by known and new entities, task and month.

    Results without an estimate are left out. An empty task or month stands for all of them.
    """
    made = predictions.dropna(subset="estimate")
    error = 100 * (made["estimate"] / made["measured"] - 1).abs()
    inside = 100.0 * made["measured"].between(made["low"], made["high"])
    made = made.assign(error=error, inside=inside.where(made["low"].notna()))
    parts = [
        made.groupby([*keys, "known"]).agg(
            results=("row", "size"),
            entities=("entity", "nunique"),
            mape=("error", "mean"),
            medape=("error", "median"),
            coverage=("inside", "mean"),
        )
        for keys in _GROUPS
    ]
    whole = pd.concat([part.reset_index() for part in parts]).reindex(columns=["task", "month", *_COLUMNS])
    return whole.fillna({"task": "", "month": ""}).reset_index(drop=True)


_COLUMNS = ["known", "results", "entities", "mape", "medape", "coverage"]


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
    gate = predictions["agrees"].dropna()
    if outside := int((gate == 0).sum()):
        yield f"{outside} of {len(gate)} known set-ups lie outside the {100 * _GATE:g} % interval: a change of time"


def write_page(dumps: Path, dataset: str) -> Path:
    """Write the page of the forecasts of all dumps that were kept in a folder, the oldest first; return its path."""
    parts = [_TITLE.format(dataset)]
    for path in sorted(dumps.glob(f"*/{PREDICTIONS}")):
        facts, predictions = read_object(path.parent / MANIFEST, "newest", "frozen"), read_parquet(path)
        entity = facts["frozen"]["entity"]
        parts.append(f"## Forecasts of {facts['frozen']['until']}, results to {facts['newest']}\n")
        by = f"{facts['frozen']['predictor']}, retrieved {facts['retrieved']} from {facts['origin']}"
        parts.append(f"Champion {by}, sha256 {facts['files'][0]['sha256']}.\n")
        parts += [f"- {line}" for line in list_scores(predictions, entity)]
        header = ["task", "month", entity, "results", f"{entity}s", "MAPE %", "MedAPE %", "coverage %"]
        parts.append(f"\n| {' | '.join(header)} |\n| --- | --- | --- |{' ---: |' * 5}")
        for line in summarize_scores(predictions).itertuples(index=False):
            about = [str(line.task or "all"), str(line.month or "all"), "known" if line.known else "new"]
            numbers = [str(line.results), str(line.entities), f"{line.mape:.1f}", f"{line.medape:.1f}"]
            parts.append(f"| {' | '.join([*about, *numbers, f'{line.coverage:.0f}'])} |")
        parts.append("")
    write_text(dumps / PAGE, "\n".join(parts))
    return dumps / PAGE
