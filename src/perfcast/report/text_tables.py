"""Sections of the report that are a text and tables of text, such as those of a domain's further tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.evaluation.supplementary_tables import LEVEL_LABELS
from perfcast.report.error_tables import number
from perfcast.splits import split_label


@dataclass(frozen=True)
class Section:
    """One section of a dataset: its title, the data of its template, by default `<name>.html`, and a text before it."""

    name: str
    title: str
    data: Any
    text: str = ""
    template: str = ""


@dataclass(frozen=True)
class TextTable:
    """A table of text: `lines` have a cell for each of `headings`, and `label` names it for screen readers."""

    label: str
    caption: str
    headings: Sequence[str]
    lines: Sequence[Sequence[str]]


def text_section(name: str, title: str, text: str, tables: Sequence[TextTable]) -> Section:
    """Return a section of tables of text; without a table it is not shown."""
    return Section(name, title, tables, text, "text_tables")


_DESCRIBED = (
    "Test machines through the tool's own path, as users describe them: characteristics that a level leaves out are "
    "filled in. Of a forward split there are two predictions: with the facts of processors that were public at its "
    "cut, and with all of them, as on the day of a launch. Values are averages over tasks, in %; width is the median."
)


def described_section(evaluation: Evaluation) -> Section:
    """Return error, coverage and width of described machines by split, facts and level, averaged over tasks."""
    frame = evaluation.tables["described"]
    lines = [
        (
            split_label(row["split"]),
            row["facts"],
            f"{row['level']} {LEVEL_LABELS[row['level'] - 1]}",
            f"{row['n']:,}",
            *(number(row[name]) for name in ("mape", "medape", "coverage", "width")),
        )
        for row in frame[frame["task"] == AVERAGE].to_dict("records")
    ]
    headings = ("split", "facts", "given", "rows", "MAPE", "MedAPE", "coverage", "width")
    table = TextTable("Described machines", "Error, coverage and width by level of description", headings, lines)
    return text_section("described", "Machines as users describe them", _DESCRIBED, [table] if lines else [])
