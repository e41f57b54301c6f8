"""The card of a champion: what it is for, what it was made from, how good and how sure it is, and where it fails.

Source of the headings: Mitchell et al., 2019, Model Cards for Model Reporting, FAT* 2019 (arXiv 1810.03993).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfcast.evaluation import AVERAGE, BASELINE, Evaluation
from perfcast.report.context import DatasetPart, ReportContext
from perfcast.report.questions import asks_about
from perfcast.report.tables import number
from perfcast.schema import Role

_JUDGED = (
    "The figures are of the same predictor trained on each question's training part, not of the model fitted on every "
    "row, which no row is left to judge.",
    "Errors in %, averaged over tasks, with 95 % bootstrap intervals clustered by entity; MAPE is the mean, MedAPE the "
    "median of the absolute error; intervals held so many % of the measured scores, and are so many % of the estimate "
    "wide.",
)
_LIMITS = (
    "Every figure it gives is an estimate, not a result; an estimate must not be quoted as a published result.",
    "A kind of machine that no result has shown is a guess from what is stated of it: the errors to expect are those "
    "of the questions about the future and the unseen.",
    "Published results come from tuned systems, chosen by those who publish them; machines in everyday use are slower.",
    "Intervals were calibrated on forecasts rehearsed inside the training parts: they hold as often as the next "
    "generation drifts like those before it.",
    "Not for procurement or marketing claims without a measurement; not for machines of another kind than its data.",
)


@dataclass(frozen=True)
class Section:
    """One part of a card: a heading, sentences, and a table as rows of cells, the first being the head."""

    title: str
    lines: tuple[str, ...]
    table: tuple[tuple[str, ...], ...] = ()


def model_card(part: DatasetPart, context: ReportContext) -> list[Section]:
    """Return the card of a data set's champion, part by part; empty without a champion."""
    about = part.champion
    if not about or about.get("predictor") not in part.evaluation.predictors:
        return []
    name = str(about["predictor"])
    return [
        Section("What it is", _identity(about, part, context)),
        Section("What it is for", _purpose(part)),
        Section("Data and terms", _data(part, about, context.sources)),
        Section("How it was judged", _JUDGED, _figures(part.evaluation, name)),
        Section("How sure it is", _calibration(part.evaluation, name)),
        Section("Limits", _LIMITS),
        Section("How to load it", _loading(part.name)),
        Section("Environment", (", ".join(f"{key} {value}" for key, value in context.environment.items()),)),
    ]


def cards(context: ReportContext) -> dict[str, str]:
    """Return the card of every data set's champion as Markdown, by data set."""
    return {part.name: markdown(part, model_card(part, context)) for part in context.datasets}


def markdown(part: DatasetPart, sections: Sequence[Section]) -> str:
    """Return a card as Markdown; without sections, one sentence that says why there is none."""
    if not sections:
        return f"# Model card: {part.title}\n\nNo champion of {part.name} was evaluated, so there is nothing to tell.\n"
    text = [f"# Model card: {part.title}", ""]
    for section in sections:
        text += [f"## {section.title}", ""]
        text += [f"- {line}" for line in section.lines]
        if section.lines:
            text.append("")
        if section.table:
            head, *body = section.table
            text += [_cells(head), _cells(["---"] * len(head)), *map(_cells, body), ""]
    return "\n".join(text).rstrip() + "\n"


def _cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _identity(about: Mapping[str, Any], part: DatasetPart, context: ReportContext) -> tuple[str, ...]:
    count = f"all {about['rows']:,}" if "rows" in about else "all"
    lines = [f"The predictor {about['predictor']}, fitted on {count} rows of {part.name}."]
    if about.get("chosen_by"):
        lines.append(f"Chosen by: {about['chosen_by']}.")
    lines.append(f"Schedule {about.get('schedule', 'not stated')}, seed {about.get('seed', 'not stated')}.")
    if part.rows is not None:
        features = [column for column in part.rows.table.columns if column.role is Role.FEATURE]
        groups = ", ".join(dict.fromkeys(column.group for column in features))
        lines.append(f"It knows a machine by {len(features)} characteristics, by group: {groups}.")
    lines.append(f"Made by perfcast {context.environment['perfcast']}, Apache-2.0.")
    return tuple(lines)


def _purpose(part: DatasetPart) -> tuple[str, ...]:
    tasks = part.evaluation.tasks
    shown = ", ".join(tasks[:6]) + (f" and {len(tasks) - 6} more" if len(tasks) > 6 else "")
    return (
        f"Estimates of {shown} for machines described by their characteristics, before anyone has measured them.",
        "For people who choose, size or design machines, and for researchers who compare predictors.",
    )


def _data(part: DatasetPart, about: Mapping[str, Any], sources: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    lines = [
        f"{source['title'] or source['source']} ({source['source']}): licence {source['licence']}. "
        f"Terms: {source['terms']}."
        for source in sources
        if source.get("status") == "present" and source["source"] in part.sources
    ]
    if about.get("table_sha256"):
        lines.append(f"SHA-256 of the table with features: {about['table_sha256']}.")
    if part.quality:
        kept = f"{part.quality['rows_kept']:,} of {part.quality['rows_in']:,} rows read were kept"
        lines.append(f"{kept}; the report accounts for the others.")
    return tuple(lines)


def _figures(evaluation: Evaluation, name: str) -> tuple[tuple[str, ...], ...]:
    level = f"{100 * evaluation.level:g} %"
    head = ("question", "asks about", "MAPE", "95 % interval", "MedAPE", BASELINE, f"{level} intervals held", "width")
    lines = [head]
    for split in evaluation.questions:
        values = {
            metric: evaluation.value(split, name, AVERAGE, metric) for metric in ("mape", "medape", "coverage", "width")
        }
        mape = values["mape"]
        if mape is None:
            continue
        told = {metric: number(row["value"]) if row is not None else "–" for metric, row in values.items()}
        beside = evaluation.value(split, BASELINE)
        lines.append(
            (
                split,
                asks_about(split),
                told["mape"],
                f"{number(mape['low'])} to {number(mape['high'])}" if np.isfinite(mape["low"]) else "none",
                told["medape"],
                "–" if beside is None else number(beside["value"]),
                told["coverage"],
                told["width"],
            )
        )
    return tuple(lines)


def _calibration(evaluation: Evaluation, name: str) -> tuple[str, ...]:
    rows = evaluation.metrics
    mine = rows[(rows["predictor"] == name) & (rows["task"] == AVERAGE) & (rows["metric"] == "coverage")]
    found = mine[mine["split"].isin(evaluation.questions)]["value"].dropna()
    if found.empty:
        return ("It has no intervals: too few rows were there to rehearse forecasts.",)
    return (
        f"Made to hold {100 * evaluation.level:g} %, its intervals held {number(found.min())} to "
        f"{number(found.max())} % of the measured scores, by question.",
        "Split conformal on rehearsed forecasts, by task, scaled by how far a machine is from what was measured "
        "(its support); mean width in % of the estimate stands in the table.",
    )


def _loading(dataset: str) -> tuple[str, ...]:
    return (
        f"`perfcast predict machines.csv --dataset {dataset}` answers a CSV file of machines, with intervals.",
        f'`load_predictor("results/champion/{dataset}/model")` from `perfcast.predictors.base` answers a table of '
        "features.",
        f"`models:/perfcast-{dataset}@champion` is the same in MLflow.",
    )
