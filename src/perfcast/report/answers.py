"""Answers of the first screen, the hardest split first, and sentences on a dataset, its budget and its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfcast.evaluation import AVERAGE, BASELINE
from perfcast.report.report_context import DatasetPart, ReportContext
from perfcast.report.text_tables import count, number
from perfcast.splits import describe_split, scenario_label, split_label

MIN_ENTITIES = 10
"""Machines below which predictors are not ranked: a clustered bootstrap of fewer gives no usable interval."""
_POWER_LAW = "power_law"


@dataclass(frozen=True)
class Bar:
    """One bar of the plot: a predictor, its mean error, its interval as text, and what it is."""

    predictor: str
    role: str
    error: float
    interval: str
    length: float
    low: float
    high: float


@dataclass(frozen=True)
class SplitAnswer:
    """Answer of one split. Units: `unit` for the errors, % for the intervals; texts are "" where there is no value."""

    split: str
    title: str
    description: str
    bars: tuple[Bar, ...]
    median: str
    unit: str
    coverage: str
    width: str
    interval_score: str
    rows: int
    seeds: int


def leading_predictor(part: DatasetPart) -> str:
    """Return the champion, which was chosen without test rows, or else the first of the ranking on test rows."""
    ranking = part.evaluation.ranking()
    name = (part.champion or {}).get("predictor")
    return str(name) if name in ranking else ranking[0]


def can_rank(part: DatasetPart) -> bool:
    """Return whether a dataset has enough tested machines to rank predictors."""
    name = leading_predictor(part)
    rows = [part.evaluation.value(split, name) for split in part.evaluation.ranked_splits]
    return max((int(row["entities"]) for row in rows if row is not None), default=0) >= MIN_ENTITIES


def split_answers(part: DatasetPart) -> list[SplitAnswer]:
    """Return the answers of all ranked splits, in the order of the evaluation: the hardest is first."""
    evaluation, leader = part.evaluation, leading_predictor(part)
    names = [leader, *(name for name in (_POWER_LAW, BASELINE) if name != leader and name in evaluation.predictors)]
    rows = {
        split: [(name, row) for name in names if (row := evaluation.value(split, name)) is not None]
        for split in evaluation.ranked_splits
        if evaluation.value(split, leader) is not None
    }
    longest = max((np.fmax(row["value"], row["high"]) for results in rows.values() for _, row in results), default=1.0)

    def share(value: float) -> float:
        return round(min(100.0, 100 * value / longest), 2) if np.isfinite(value) else 0.0

    answers = []
    for split, results in rows.items():
        bars = tuple(
            Bar(
                predictor=part.predictor_label(name),
                role=_role(name, leader, part),
                error=float(row["value"]),
                interval=f"{number(row['low'])} to {number(row['high'])}" if np.isfinite(row["low"]) else "",
                length=share(row["value"]),
                low=share(row["low"]),
                high=share(row["high"]),
            )
            for name, row in results
        )
        first = results[0][1]
        shown = {name: _text(part, split, leader, name) for name in ("coverage", "width", "interval_score")}
        title = scenario_label(split) or split_label(split)
        answers.append(
            SplitAnswer(
                split=split,
                title=title[0].upper() + title[1:],
                description=describe_split(split),
                bars=bars,
                median=_text(part, split, leader, evaluation.error_metrics[1]),
                unit=evaluation.error_unit,
                **shown,
                rows=int(first["rows"]),
                seeds=int(first["seeds"]),
            )
        )
    return answers


def dataset_answer(part: DatasetPart) -> str:
    """Return the answers of the two hardest splits in words, and which predictor gives them."""
    answers = split_answers(part)[:2]
    leader = part.predictor_label(leading_predictor(part))
    texts = [
        f"{answer.title} (split {answer.split}, {count(answer.seeds, 'seed')}): half of the predictions are within "
        f"{answer.median} {answer.unit} of the measured result, and the mean error is "
        f"{_error(answer.bars[0], answer.unit)}."
        for answer in answers
    ]
    choice = "was chosen by inner validation" if _is_champion(part) else "has the smallest error on average"
    return f"{' '.join(texts)} The predictor, {leader}, {choice}."


def small_dataset_sentence(part: DatasetPart) -> str:
    """Return the paragraph on a dataset that is too small to rank predictors."""
    evaluation = part.evaluation
    texts = []
    for split in evaluation.ranked_splits:
        rows = [row for name in evaluation.predictors if (row := evaluation.value(split, name)) is not None]
        if not rows:
            continue
        low, high = (choose(float(row["value"]) for row in rows) for choose in (min, max))
        tested, entities, seeds = (int(rows[0][name]) for name in ("rows", "entities", "seeds"))
        texts.append(
            f"On the {split_label(split)} ({split}, {count(seeds, 'seed')}) it has {count(tested, 'test result')} of "
            f"{count(entities, 'machine')}; the mean errors of its {len(rows)} predictors lie between {number(low)} "
            f"and {number(high)} {evaluation.error_unit}, without a confidence interval."
        )
    return (
        f"{part.title}: too small to rank predictors, which needs {MIN_ENTITIES} tested machines. {' '.join(texts)} "
        f"The tables are in evaluation/{part.name}, the model card is model_cards/{part.name}.md."
    )


def _role(name: str, leader: str, part: DatasetPart) -> str:
    if name == leader:
        return "chosen" if _is_champion(part) else "best on average"
    return "baseline"


def _is_champion(part: DatasetPart) -> bool:
    return (part.champion or {}).get("predictor") == leading_predictor(part)


def _text(part: DatasetPart, split: str, name: str, metric: str) -> str:
    row = part.evaluation.value(split, name, AVERAGE, metric)
    return "" if row is None or not np.isfinite(row["value"]) else number(row["value"])


def _error(bar: Bar, unit: str) -> str:
    return f"{number(bar.error)} {unit}" + (f" (95 % interval {bar.interval} {unit})" if bar.interval else "")


def retrieval_text(source: Mapping[str, Any]) -> str:
    """Return the date of retrieval of a source, or else its snapshot."""
    if source.get("retrieved"):
        return f"retrieved {source['retrieved']}"
    return f"snapshot {source['snapshot']}" if source.get("snapshot") else "date of retrieval not stated"


def budget_sentence(context: ReportContext) -> str:
    """Return a sentence on the training budget of the experiment."""
    seeds = context.params.get("seeds", [])
    runs = count(len(seeds), "seed") if seeds else "an unstated number of seeds"
    if context.params.get("preset") == "quick":
        return (
            f"This is the quick preset: {runs} and short trainings. Its values show that the pipeline works. "
            "Quote values of the full experiment (make full)."
        )
    return f"This is the {context.params.get('preset', 'unnamed')} preset: {runs}, all folds."
