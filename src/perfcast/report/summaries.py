"""Summary of the leading predictor at the top of a dataset, and sentences on sources and on the training budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfcast.evaluation import BASELINE
from perfcast.report.error_tables import number
from perfcast.report.report_context import DatasetPart, ReportContext
from perfcast.splits import describe_split, split_label


@dataclass(frozen=True)
class SplitSummary:
    """Metrics of the leading predictor on one split, as text; "" where there is no value. Units: %."""

    split: str
    label: str
    description: str
    mape: str
    interval: str
    medape: str
    baseline_mape: str
    coverage: str
    width: str


def leading_predictor(part: DatasetPart) -> str:
    """Return the champion, which was chosen without test rows, or else the first of the ranking on test rows."""
    ranking = part.evaluation.ranking()
    name = (part.champion or {}).get("predictor")
    return str(name) if name in ranking else ranking[0]


def summary_sentence(part: DatasetPart) -> str:
    """Return the leading predictor, and its error on its best and worst split beside that of the baseline."""
    evaluation, name = part.evaluation, leading_predictor(part)
    choice = "chosen by inner validation" if (part.champion or {}).get("predictor") == name else "best on average"
    errors = [
        (row["value"], split)
        for split in evaluation.ranked_splits
        if (row := evaluation.value(split, name)) is not None
    ]
    # one value where the smallest and the largest error are of the same split
    extremes = sorted({min(errors), max(errors)})
    texts = [f"{number(value)} % on {split_label(split)}{_baseline_error(part, split)}" for value, split in extremes]
    return (
        f"{part.title}: the mean error of {part.predictor_label(name)}, {choice}, is {' and '.join(texts)}."
        f"{_coverage_sentence(part)}"
    )


def _coverage_sentence(part: DatasetPart) -> str:
    """Return the lowest and the highest coverage of the prediction intervals; "" without intervals."""
    known = [(float(summary.coverage), summary) for summary in split_summaries(part) if summary.coverage]
    if not known:
        return ""
    level = f"{100 * part.evaluation.level:g}"
    worst, best = (choose(known, key=lambda pair: pair[0])[1] for choose in (min, max))
    texts = [f"{one.coverage} % of the results on {one.label} ({one.width} % wide)" for one in (worst, best)]
    return f" Its {level} % prediction intervals contain {' and '.join(dict.fromkeys(texts))}."


def split_summaries(part: DatasetPart) -> list[SplitSummary]:
    """Return error, coverage and width of the leading predictor, split by split."""
    evaluation, name = part.evaluation, leading_predictor(part)
    summaries = []
    for split in evaluation.ranked_splits:
        mape, medape = (evaluation.value(split, name, metric=metric) for metric in ("mape", "medape"))
        if mape is None or medape is None:
            continue
        baseline = evaluation.value(split, BASELINE)
        summaries.append(
            SplitSummary(
                split=split,
                label=split_label(split),
                description=describe_split(split),
                mape=number(mape["value"]),
                interval=f"{number(mape['low'])} to {number(mape['high'])}" if np.isfinite(mape["low"]) else "",
                medape=number(medape["value"]),
                baseline_mape="" if baseline is None or name == BASELINE else number(baseline["value"]),
                coverage=_metric_text(part, split, name, "coverage"),
                width=_metric_text(part, split, name, "width"),
            )
        )
    return summaries


def select_spec_sources(sources: tuple[Mapping[str, Any], ...]) -> list[Mapping[str, Any]]:
    """Return the sources with SPEC results, by their stated license."""
    return [source for source in sources if "SPEC" in str(source.get("license", ""))]


def retrieval_text(source: Mapping[str, Any]) -> str:
    """Return the date of retrieval of a source, or else its snapshot."""
    if source.get("retrieved"):
        return f"retrieved {source['retrieved']}"
    return f"snapshot {source['snapshot']}" if source.get("snapshot") else "date of retrieval not stated"


def budget_sentence(context: ReportContext) -> str:
    """Return a sentence on the training budget of the experiment."""
    seeds = context.params.get("seeds", [])
    count = f"{len(seeds)} seed{'' if len(seeds) == 1 else 's'}" if seeds else "an unstated number of seeds"
    if context.params.get("preset") == "quick":
        return (
            f"This is the quick preset: {count} and short trainings. Its values show that the pipeline works. "
            "Quote values of the full experiment (make full)."
        )
    return f"This is the {context.params.get('preset', 'unnamed')} preset: {count}, all folds."


def _metric_text(part: DatasetPart, split: str, name: str, metric: str) -> str:
    row = part.evaluation.value(split, name, metric=metric)
    return "" if row is None or not np.isfinite(row["value"]) else number(row["value"])


def _baseline_error(part: DatasetPart, split: str) -> str:
    row = part.evaluation.value(split, BASELINE)
    return "" if row is None else f" ({part.predictor_label(BASELINE)}: {number(row['value'])} %)"
