"""Model card of a champion: purpose, data, errors, calibration and limits.

Source of the headings: Mitchell et al., 2019, Model Cards for Model Reporting, FAT* 2019 (arXiv 1810.03993).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfcast.evaluation import AVERAGE, BASELINE, Evaluation
from perfcast.report.report_context import DatasetPart, ReportContext
from perfcast.report.text_tables import Cell, TextTable, number
from perfcast.schema.display_names import metric_label
from perfcast.schema.table import Role
from perfcast.splits import describe_split

_EVALUATION_NOTES = (
    "The values are of the same predictor trained on the training part of each split. The model itself is fitted on "
    "every row, so no row is left to test it.",
    "Errors are averaged over tasks, with 95 % bootstrap intervals clustered by entity. MAPE is the mean and MedAPE "
    "the median of the absolute error in % of the measured score, MAE and MedAE those in points of a share. Coverage "
    "is the share of measured scores inside their prediction interval; width is the median width of the interval in % "
    "of the prediction.",
)
_LIMITS = (
    "Every prediction is an estimate, not a measured result, and must not be quoted as a published result.",
    "For a kind of machine without any result, expect the errors of the splits with unseen CPUs and later releases.",
    "Published results come from tuned systems, chosen by those who publish them; machines in everyday use are slower.",
    "Prediction intervals are calibrated on backtests inside the training data. Their coverage is right only if new "
    "generations differ from the data like earlier ones did.",
    "Do not use predictions for procurement or marketing claims without a measurement, or for machines of another kind "
    "than the data.",
)


@dataclass(frozen=True)
class CardSection:
    """One part of a card: a heading, sentences, and a table."""

    title: str
    lines: tuple[str, ...]
    table: TextTable | None = None


def model_card(part: DatasetPart, context: ReportContext) -> list[CardSection]:
    """Return the card of the champion of a dataset, section by section; empty without a champion."""
    about = part.champion
    if not about or about.get("predictor") not in part.evaluation.predictors:
        return []
    name = str(about["predictor"])
    return [
        CardSection("Model", _identity(about, part, context)),
        CardSection("Intended use", _purpose(part)),
        CardSection("Data and terms", _data(part, about, context.sources)),
        CardSection("Evaluation", _EVALUATION_NOTES, _metric_table(part.evaluation, name)),
        CardSection("Calibration of prediction intervals", _calibration(part.evaluation, name)),
        CardSection("Limits", _LIMITS),
        CardSection("How to load the model", _loading(part.name)),
        CardSection("Environment", (", ".join(f"{key} {value}" for key, value in context.environment.items()),)),
    ]


def cards(context: ReportContext) -> dict[str, str]:
    """Return the model card of every champion as Markdown, by dataset."""
    return {part.name: markdown(part, model_card(part, context)) for part in context.datasets}


def markdown(part: DatasetPart, sections: Sequence[CardSection]) -> str:
    """Return a card as Markdown; without sections, the reason why there is none."""
    if not sections:
        return f"# Model card: {part.title}\n\nNo champion of {part.name} was evaluated.\n"
    text = [f"# Model card: {part.title}", ""]
    for section in sections:
        text += [f"## {section.title}", ""]
        text += [f"- {line}" for line in section.lines]
        if section.lines:
            text.append("")
        if section.table:
            head = section.table.headings
            text += [_cells(head), _cells(["---"] * len(head)), *map(_cells, section.table.lines), ""]
    return "\n".join(text).rstrip() + "\n"


def _cells(cells: Sequence[str | Cell]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _identity(about: Mapping[str, Any], part: DatasetPart, context: ReportContext) -> tuple[str, ...]:
    count = f"all {about['rows']:,}" if "rows" in about else "all"
    lines = [f"The predictor {about['predictor']}, fitted on {count} rows of {part.name}."]
    if about.get("chosen_by"):
        lines.append(f"Chosen by: {about['chosen_by']}.")
    lines.append(f"Preset {about.get('preset', 'not stated')}, seed {about.get('seed', 'not stated')}.")
    if part.rows is not None:
        features = [column for column in part.rows.table.columns if column.role is Role.FEATURE]
        groups = ", ".join(dict.fromkeys(column.group for column in features))
        lines.append(f"It uses {len(features)} characteristics of a machine, in these groups: {groups}.")
    lines.append(f"Made by perfcast {context.environment['perfcast']}, Apache-2.0.")
    return tuple(lines)


def _purpose(part: DatasetPart) -> tuple[str, ...]:
    tasks = part.evaluation.tasks
    shown = ", ".join(tasks[:6]) + (f" and {len(tasks) - 6} more" if len(tasks) > 6 else "")
    return (
        f"Predictions of {shown} for machines that were not measured, from their characteristics.",
        "For people who choose, size or design machines, and for researchers who compare predictors.",
    )


def _data(part: DatasetPart, about: Mapping[str, Any], sources: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    lines = [
        f"{source['title'] or source['source']} ({source['source']}): license {source['license']}. "
        f"Terms: {source['terms']}."
        for source in sources
        if source.get("status") == "present" and source["source"] in part.sources
    ]
    if about.get("table_sha256"):
        lines.append(f"SHA-256 of the table with features: {about['table_sha256']}.")
    if part.quality:
        counts = f"{part.quality['rows_kept']:,} of {part.quality['rows_in']:,} rows"
        lines.append(f"{counts} were kept; the report lists the reasons for the others.")
    return tuple(lines)


def _metric_table(evaluation: Evaluation, name: str) -> TextTable:
    level = f"{100 * evaluation.level:g} %"
    mean, median = evaluation.error_metrics
    head = (
        *("split", "test rows", metric_label(mean), "95 % interval", metric_label(median), BASELINE),
        *(f"{level} coverage", "median width", "interval score"),
    )
    lines = []
    for split in evaluation.ranked_splits:
        metrics = (mean, median, "coverage", "width", "interval_score")
        values = {metric: evaluation.value(split, name, AVERAGE, metric) for metric in metrics}
        error = values[mean]
        if error is None:
            continue
        texts = {metric: number(row["value"]) if row is not None else "–" for metric, row in values.items()}
        baseline = evaluation.value(split, BASELINE)
        lines.append(
            (
                split,
                describe_split(split),
                texts[mean],
                f"{number(error['low'])} to {number(error['high'])}" if np.isfinite(error["low"]) else "none",
                texts[median],
                "–" if baseline is None else number(baseline["value"]),
                texts["coverage"],
                texts["width"],
                texts["interval_score"],
            )
        )
    return TextTable("Evaluation", "Evaluation: errors and widths in %", head, lines, words=[1])


def _calibration(evaluation: Evaluation, name: str) -> tuple[str, ...]:
    rows = evaluation.metrics
    mine = rows[(rows["predictor"] == name) & (rows["task"] == AVERAGE) & (rows["metric"] == "coverage")]
    coverage = mine[mine["split"].isin(evaluation.ranked_splits)]["value"].dropna()
    if coverage.empty:
        return ("It has no prediction intervals, because there were too few rows for backtests.",)
    return (
        f"The coverage of its {100 * evaluation.level:g} % prediction intervals is {number(coverage.min())} to "
        f"{number(coverage.max())} %, by split.",
        "Method: split conformal prediction on backtests, by task, scaled by the distance of a machine from the "
        "training data (its in-domain score).",
    )


def _loading(dataset: str) -> tuple[str, ...]:
    return (
        f"`perfcast predict machines.csv --dataset {dataset}` predicts a CSV file of machines, with intervals.",
        f'`load_predictor("results/champion/{dataset}/model")` from `perfcast.predictors.predictor` predicts a table '
        "of features.",
        f"`models:/perfcast-{dataset}@champion` is the same in MLflow.",
    )
