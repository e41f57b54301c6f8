"""Summaries of a dataset: its leading predictor, sources, budget, ablations and calibration of intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.evaluation.error_metrics import draw_weights, percentile_interval
from perfcast.evaluation.run_predictions import SHIFT, YEAR
from perfcast.report.report_context import ENTITY, DatasetPart, ReportContext, Rows
from perfcast.schema.display_names import replace_underscores
from perfcast.splits import split_label


def leading_predictor(part: DatasetPart) -> str:
    """Return the champion, which was chosen without test rows, or else the first of the ranking on test rows."""
    ranking = part.evaluation.ranking()
    name = (part.champion or {}).get("predictor")
    return str(name) if name in ranking else ranking[0]


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


WITHOUT = "_without_"


@dataclass(frozen=True)
class ErrorIncrease:
    """Increase of the error without one component, in percentage points, with its 95 % interval."""

    difference: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Return whether the interval excludes zero."""
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
            (replace_underscores(component), [increases[split, component] for split in splits])
            for component in components
        ]
        if splits:
            tables.append(Ablation(complete, splits, lines))
    return tables


def _error_increase(
    evaluation: Evaluation, rows: Rows, split: str, predictor: str, reduced: str
) -> ErrorIncrease | None:
    """Return the difference of MAPE, averaged over tasks, resampled by entity; None where one was not run."""
    points = evaluation.tables["points"]
    points = points[points["split"] == split]
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


TOLERANCE = 2.0
"""Percentage points around the level within which a coverage is not flagged."""
_MIN_ROWS = 20
"""Rows below which a coverage is not flagged; a line without a split of more rows is left out."""


@dataclass(frozen=True)
class CalibrationCell:
    """Coverage and median width in %, and the number of rows; `flag` is "low", "high" or ""."""

    coverage: float
    width: float
    rows: int
    flag: str


def calibration_remarks(evaluation: Evaluation, predictor: str) -> list[str]:
    """Return a sentence per split on its worst slab and on the test of exchangeability; none without intervals."""
    frame = evaluation.tables["calibration"]
    if frame.empty:
        return []
    sentences = []
    frame = frame[frame["predictor"] == predictor]
    for line in frame[frame["split"].isin(evaluation.splits)].to_dict("records"):
        text = f"{split_label(line['split'])}: the worst fifth of the machines has {line['worst_slab_coverage']:.1f} %"
        if np.isfinite(line["log10_martingale"]):
            alarm = str(line["alarm"])
            text += f"; from {alarm} on, errors are unlike those of backtests" if alarm else "; no alarm"
            text += f" (martingale 10^{line['log10_martingale']:.1f})"
        sentences.append(f"{text}.")
    return sentences


@dataclass(frozen=True)
class CalibrationTable:
    """One table: the column that its lines are values of, and one cell or None per split."""

    column: str
    lines: list[tuple[str, list[CalibrationCell | None]]]


def calibration_tables(evaluation: Evaluation, predictor: str) -> list[CalibrationTable]:
    """Return one table by task, by every vendor column, by year and by shift; empty without intervals."""
    tables = [CalibrationTable("task", _by_task(evaluation, predictor))]
    tables += [
        CalibrationTable(name, _by_slice(evaluation, predictor, name))
        for name in [*evaluation.vendor_slices, YEAR, SHIFT]
    ]
    return [table for table in tables if any(cell for _, cells in table.lines for cell in cells)]


def _by_task(evaluation: Evaluation, predictor: str) -> list[tuple[str, list[CalibrationCell | None]]]:
    lines = []
    for task in [*(evaluation.tasks if len(evaluation.tasks) > 1 else ()), AVERAGE]:
        cells: list[CalibrationCell | None] = []
        for split in evaluation.splits:
            coverage, width = (evaluation.value(split, predictor, task, metric) for metric in ("coverage", "width"))
            if coverage is None or width is None or not np.isfinite(coverage["value"]):
                cells.append(None)
            else:
                cells.append(_cell(evaluation, coverage["value"], width["value"], coverage["rows"]))
        lines.append(("average over tasks" if task == AVERAGE and len(evaluation.tasks) > 1 else task, cells))
    return lines


def _by_slice(evaluation: Evaluation, predictor: str, name: str) -> list[tuple[str, list[CalibrationCell | None]]]:
    frame = evaluation.tables["slices"]
    frame = frame[(frame["slice"] == name) & (frame["predictor"] == predictor) & frame["coverage"].notna()]
    counts = frame.groupby("value")["rows"].max()
    values = sorted(counts.index) if name == YEAR else counts.sort_values(ascending=False, kind="stable").index
    cells = {
        (row["split"], row["value"]): _cell(evaluation, row["coverage"], row["width"], row["rows"])
        for row in frame.to_dict("records")
    }
    return [
        (str(value), [cells.get((split, value)) for split in evaluation.splits])
        for value in values
        if counts[value] >= _MIN_ROWS
    ]


def _cell(evaluation: Evaluation, coverage: float, width: float, rows: int) -> CalibrationCell:
    excess = coverage - 100 * evaluation.level
    flag = "" if abs(excess) <= TOLERANCE or rows < _MIN_ROWS else "low" if excess < 0 else "high"
    return CalibrationCell(float(coverage), float(width), int(rows), flag)
