"""The one sentence at the top of the report, and the words about what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfcast.evaluation import BASELINE
from perfcast.report.context import DatasetPart, ReportContext
from perfcast.report.tables import number


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
    return f"{part.title}: the estimates of {name}, {chosen}, are off by {' and '.join(told)}."


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


def _extremes(found: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return the smallest and the largest error; one when they are of the same split."""
    return sorted({min(found), max(found)})


def _beside(part: DatasetPart, split: str) -> str:
    row = part.evaluation.value(split, BASELINE)
    return "" if row is None else f" ({BASELINE}: {number(row['value'])} %)"
