"""The one sentence at the top of the report, and the words about what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfcast.evaluation import BASELINE
from perfcast.report.context import DatasetPart, ReportContext
from perfcast.report.questions import asks_about
from perfcast.report.tables import number


@dataclass(frozen=True)
class Question:
    """What the leading predictor reached on one question, as text; "" where there is nothing to tell."""

    split: str
    asks: str
    mape: str
    interval: str
    medape: str
    beside: str
    coverage: str
    width: str


def leading_predictor(part: DatasetPart) -> str:
    """Return the champion, chosen without test rows; without one, the first of the test ranking."""
    ranking = part.evaluation.ranking()
    name = (part.champion or {}).get("predictor")
    return str(name) if name in ranking else ranking[0]


def answer(part: DatasetPart) -> str:
    """Return one sentence: who leads, and its error on the easiest and the hardest question beside the baseline's."""
    evaluation, name = part.evaluation, leading_predictor(part)
    chosen = "chosen by inner validation" if (part.champion or {}).get("predictor") == name else "best on average"
    found = [
        (row["value"], split) for split in evaluation.questions if (row := evaluation.value(split, name)) is not None
    ]
    told = [f"{number(value)} % on {split}{_beside(part, split)}" for value, split in _extremes(found)]
    return f"{part.title}: the estimates of {name}, {chosen}, are off by {' and '.join(told)}.{_sureness(part)}"


def _sureness(part: DatasetPart) -> str:
    """Return one sentence on how often the intervals held on the questions; "" without intervals."""
    held = [(float(one.coverage), one) for one in questions(part) if one.coverage]
    if not held:
        return ""
    level = f"{100 * part.evaluation.level:g}"
    worst, best = min(held, key=lambda one: one[0])[1], max(held, key=lambda one: one[0])[1]
    told = [f"{one.coverage} % of the results on {one.split} ({one.width} % wide)" for one in (worst, best)]
    return f" Its {level} % intervals held {' and '.join(dict.fromkeys(told))}."


def questions(part: DatasetPart) -> list[Question]:
    """Return, question by question, how good and how sure the leading predictor is."""
    evaluation, name = part.evaluation, leading_predictor(part)
    found = []
    for split in evaluation.questions:
        rows = {metric: evaluation.value(split, name, metric=metric) for metric in ("mape", "medape")}
        mape, medape = rows["mape"], rows["medape"]
        if mape is None or medape is None:
            continue
        held, wide = (_told(part, split, name, metric) for metric in ("coverage", "width"))
        beside = evaluation.value(split, BASELINE)
        found.append(
            Question(
                split=split,
                asks=asks_about(split),
                mape=number(mape["value"]),
                interval=f"{number(mape['low'])} to {number(mape['high'])}" if np.isfinite(mape["low"]) else "",
                medape=number(medape["value"]),
                beside="" if beside is None or name == BASELINE else number(beside["value"]),
                coverage=held,
                width=wide,
            )
        )
    return found


def is_spec(sources: tuple[Mapping[str, Any], ...]) -> list[Mapping[str, Any]]:
    """Return the sources that hold SPEC results, by their stated licence."""
    return [source for source in sources if "SPEC" in str(source.get("licence", ""))]


def retrieved(source: Mapping[str, Any]) -> str:
    """Return when a source was retrieved, or else which snapshot it is."""
    if source.get("retrieved"):
        return f"retrieved {source['retrieved']}"
    return f"snapshot {source['snapshot']}" if source.get("snapshot") else "date of retrieval not stated"


def schedule_words(context: ReportContext) -> str:
    """Return one sentence on how thorough the experiment behind the report was."""
    seeds = context.params.get("seeds", [])
    count = f"{len(seeds)} seed{'' if len(seeds) == 1 else 's'}" if seeds else "an unstated number of seeds"
    if context.params.get("schedule") == "quick":
        return (
            f"This is the short schedule: {count} and short trainings. Its figures show that everything works; "
            "quote those of the full experiment (make full)."
        )
    return f"This is the {context.params.get('schedule', 'unnamed')} schedule: {count}, all folds."


def _told(part: DatasetPart, split: str, name: str, metric: str) -> str:
    row = part.evaluation.value(split, name, metric=metric)
    return "" if row is None or not np.isfinite(row["value"]) else number(row["value"])


def _extremes(found: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return the smallest and the largest error; one when they are of the same split."""
    return sorted({min(found), max(found)})


def _beside(part: DatasetPart, split: str) -> str:
    row = part.evaluation.value(split, BASELINE)
    return "" if row is None else f" ({BASELINE}: {number(row['value'])} %)"
