"""Tables and sections of the report: every table of its pages is a `TextTable`, which one macro renders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from perfcast.evaluation import Evaluation
from perfcast.schema.display_names import replace_underscores
from perfcast.splits import split_label

TEMPLATES = Environment(
    loader=PackageLoader("perfcast.report", "templates"),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
"""Templates of the report; text of others is escaped in those of HTML."""
_CONTROL = ("control_error", "chance_error", "better", "shuffles")


@dataclass(frozen=True)
class Cell:
    """One cell: text, smaller notes, and the number that sorts it.

    `mark` is "best" for a clear winner, "low" or "high" for a coverage outside its tolerance. `bar` has the low end,
    the dot and the high end of a strip on an axis from -100 to 100.
    """

    text: str
    notes: tuple[str, ...] = ()
    key: float | None = None
    mark: str = ""
    bar: tuple[float, float, float] | None = None


EMPTY = Cell("–")

Line = list[str | Cell]
"""Cells of one line of a table, the first names it."""


@dataclass(frozen=True)
class TextTable:
    """A table: `lines` have a cell for each of `headings`, the first of a line names it.

    `label` names the table for screen readers. `groups` head the columns after the first, each with an equal number of
    them. Columns at the places `words` are aligned left. Tables that follow each other with the same `fold` are folded
    together under that title. `notes` are paragraphs below the table.
    """

    label: str
    caption: str
    headings: Sequence[str | Cell]
    lines: Sequence[Sequence[str | Cell]]
    groups: Sequence[str | Cell] = ()
    foot: Sequence[Sequence[str | Cell]] = ()
    words: Sequence[int] = ()
    fold: str = ""
    open: bool = False
    style: str = ""
    notes: Sequence[str] = ()

    @property
    def width(self) -> int:
        """Number of columns below each group."""
        return (len(self.lines[0]) - 1) // len(self.groups) if self.groups else 0


@dataclass(frozen=True)
class Section:
    """One section of a dataset: its title, the data of its template, by default `<name>.html`, and a text before it."""

    name: str
    title: str
    data: Any
    text: str = ""
    template: str = ""


def text_section(name: str, title: str, text: str, tables: Sequence[TextTable]) -> Section:
    """Return a section of tables with a text before them; without a table it is not shown."""
    return Section(name, title, tables, text, "text_tables")


def folds(tables: Sequence[TextTable]) -> list[tuple[str, list[TextTable]]]:
    """Return tables by the title under which they are folded, in their order."""
    return [(fold, list(members)) for fold, members in groupby(tables, key=lambda table: table.fold)]


def number(value: float) -> str:
    """Return a number with two decimals below 10, one below 100 and none above; a dash for NaN."""
    if not np.isfinite(value):
        return "–"
    return f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}"


def count(number_of: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not 1."""
    return f"{number_of:,} {noun}{'' if number_of == 1 else 's'}"


def signed(value: float, decimals: int) -> str:
    """Return a number with its sign, a true minus."""
    return f"{value:+.{decimals}f}".replace("-", "−")


def split_heading(split: str) -> Cell:
    """Return the heading of a split: its label, and below it its name."""
    label = split_label(split)
    return Cell(label, () if label == split else (split,))


def noise_tables(evaluation: Evaluation) -> list[TextTable]:
    """Return the spread of repeated measurements by task; none where nothing was measured twice."""
    lines = [
        [
            row["task"],
            *(f"{row[name]:,}" for name in ("configurations", "rows")),
            *(number(row[name]) for name in ("cv_median", "cv_mean", "mape_floor")),
        ]
        for row in evaluation.tables["noise"].to_dict("records")
    ]
    title = "Repeated measurements of one configuration"
    headings = ["task", "configurations", "rows", "median CV", "mean CV", "MAPE floor"]
    return [TextTable("Repeated measurements", f"{title}, in %", headings, lines, fold=title)] if lines else []


def quality_tables(quality: Mapping[str, Any], evaluation: Evaluation) -> list[TextTable]:
    """Return the counts of rows, the noise of repeated measurements and the columns of quality.json."""
    rows = [[state, reason, f"{rows:,}"] for state, reason, rows in row_counts(quality)]
    lines = []
    for name, entry in quality.get("columns", {}).items():
        low, high = entry.get("min"), entry.get("max")
        distinct = f"{entry['unique']:,}" if "unique" in entry else f"{entry['steps']} steps"
        ends = [end if isinstance(end, str) else f"{end:,.6g}" for end in (low, high) if end is not None]
        lines.append([name, str(entry.get("unit", "")), f"{100 * entry['missing']:.1f} %", distinct, " … ".join(ends)])
    rows_title, columns_title = "Input rows: kept, merged and rejected", "Columns: missing values and ranges"
    return [
        TextTable("Rows", "Input rows", ["rows", "reason", "count"], rows, words=[1], fold=rows_title),
        *noise_tables(evaluation),
        TextTable(
            "Columns", "", ["column", "unit", "missing", "distinct", "range"], lines, words=[1], fold=columns_title
        ),
    ]


def row_counts(quality: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Return (state, reason, rows) of all input rows: kept, merged by rule, rejected by reason."""
    lines = [("read", "", int(quality["rows_in"])), ("kept", "", int(quality["rows_kept"]))]
    if excluded := int(quality.get("rows_excluded", 0)):
        lines.append(("of these", "excluded from the evaluation: the score cannot be that of the machine", excluded))
    return lines + [
        (state, replace_underscores(reason), int(rows))
        for state in ("merged", "rejected")
        for reason, rows in sorted(quality.get(state, {}).items())
    ]


def leakage_section(report: Mapping[str, Any] | None) -> Section:
    """Return every leakage check with its numbers as a sentence; not shown without a report."""
    title, checks = "Leakage checks", (report or {}).get("checks", [])
    findings = sum(len(check["findings"]) for check in checks)
    text = (
        f"Leakage checks read the files of all stages before any error is computed: {len(checks)} checks, "
        f"{findings or 'no'} finding{'' if findings == 1 else 's'}. A finding stops the run."
    )
    lines = [
        [
            check["check"],
            check["meaning"],
            ". ".join(filter(None, (check["looked_at"], _numbers_sentence(check["numbers"])))),
            str(len(check["findings"])),
        ]
        for check in checks
    ]
    table = TextTable(title, "", ["check", "requirement", "scope", "findings"], lines, words=[1, 2], fold="All checks")
    return text_section("leakage", title, text, [table] if report else [])


def _numbers_sentence(numbers: Mapping[str, Any]) -> str:
    if all(numbers.get(name) is not None for name in _CONTROL):
        control, chance, better, shuffles = (numbers[name] for name in _CONTROL)
        return (
            f"Trained on shuffled scores: mean absolute log error {control:.3f}; chance: {chance:.3f}; "
            f"better than chance in {better} of {shuffles} shuffles."
        )
    share = numbers.get("least_share_of_error_left")
    if share is not None:
        return f"Closest feature to the score: {numbers['by']} leaves {100 * share:.0f} % of the error of a constant."
    return ""
