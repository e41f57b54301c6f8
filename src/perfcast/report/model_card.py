"""Model card of a champion: purpose, data, errors, calibration and limits.

Source of the headings: Mitchell et al., 2019, Model Cards for Model Reporting, FAT* 2019 (arXiv 1810.03993).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfcast.evaluation import AVERAGE, BASELINE, Evaluation
from perfcast.report.report_context import DatasetPart, ReportContext
from perfcast.report.text_tables import TEMPLATES, Cell, TextTable, number
from perfcast.schema.display_names import metric_label
from perfcast.splits import describe_split


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
    evaluation, name = part.evaluation, str(about["predictor"])
    rows = evaluation.metrics[evaluation.metrics["split"].isin(evaluation.ranked_splits)]
    rows = rows[(rows["predictor"] == name) & (rows["task"] == AVERAGE) & (rows["metric"] == "coverage")]
    given = {"part": part, "about": about, "context": context, "coverage": rows["value"].dropna(), "number": number}
    sections = TEMPLATES.get_template("model_card.md").render(**given).split("## ")[1:]
    return [
        CardSection(title, tuple(lines), _metric_table(evaluation, name) if title == "Evaluation" else None)
        for title, *lines in (section.strip().split("\n- ") for section in sections)
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


def _metric_table(evaluation: Evaluation, name: str) -> TextTable:
    mean, median = evaluation.error_metrics
    head = (
        *("split", "test rows", metric_label(mean), "95 % interval", metric_label(median), BASELINE),
        *(f"{100 * evaluation.level:g} % coverage", "median width", "interval score"),
    )
    lines = []
    for split in evaluation.ranked_splits:
        if (error := evaluation.value(split, name)) is None:
            continue
        interval = f"{number(error['low'])} to {number(error['high'])}" if np.isfinite(error["low"]) else "none"
        cells = [(name, median), (BASELINE, mean), *((name, each) for each in ("coverage", "width", "interval_score"))]
        rows = [evaluation.value(split, predictor, metric=metric) for predictor, metric in cells]
        texts = ["–" if row is None else number(row["value"]) for row in rows]
        lines.append((split, describe_split(split), number(error["value"]), interval, *texts))
    return TextTable("Evaluation", "Evaluation: errors and widths in %", head, lines, words=[1])
