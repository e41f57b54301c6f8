"""Tables and sections of the report: every table of its pages is a `TextTable`, which one macro renders.

The last one is made of single predictions: the largest errors with their probable reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from perfcast.evaluation import Evaluation
from perfcast.schema.display_names import replace_underscores
from perfcast.splits import describe_split, split_label
from perfcast.uncertainty.in_domain import AHEAD, OF_PAIR, RESULTS, YOUNG

_CONTROL = ("control_error", "chance_error", "better", "shuffles")


@dataclass(frozen=True)
class Cell:
    """One cell."""

    text: str
    notes: tuple[str, ...] = ()
    """Lines in smaller letters below the text."""
    key: float | None = None
    """Number that sorts the cell."""
    mark: str = ""
    """best: a clear winner; low or high: a coverage outside its tolerance."""


EMPTY = Cell("–")

Line = list[str | Cell]
"""Cells of one line of a table, the first names it."""


@dataclass(frozen=True)
class TextTable:
    """A table; the first cell of a line names it."""

    label: str
    """Name of the table for screen readers."""
    caption: str
    headings: Sequence[str | Cell]
    lines: Sequence[Sequence[str | Cell]]
    """Lines with a cell for each heading."""
    groups: Sequence[str | Cell] = ()
    """Headings above the columns after the first, each above an equal number of them."""
    foot: Sequence[Sequence[str | Cell]] = ()
    words: Sequence[int] = ()
    """Places of columns that are aligned left."""
    fold: str = ""
    """Title under which tables that follow each other are folded together."""
    open: bool = False
    """Whether that fold is open."""
    style: str = ""

    @property
    def width(self) -> int:
        """Number of columns below each group."""
        return (len(self.lines[0]) - 1) // len(self.groups) if self.groups else 0


@dataclass(frozen=True)
class Section:
    """One section of the page of a dataset."""

    name: str
    title: str
    data: Any
    """Content that the template shows; a section without any is left out."""
    text: str = ""
    """Text before the content."""
    template: str = ""
    """Name of the template, by default that of the section."""


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


def quality_tables(quality: Mapping[str, Any]) -> list[TextTable]:
    """Return the counts of rows and the columns of quality.json."""
    rows = [[state, reason, f"{rows:,}"] for state, reason, rows in row_counts(quality)]
    lines = []
    for name, entry in quality.get("columns", {}).items():
        low = entry.get("min")
        high = entry.get("max")
        distinct = f"{entry['unique']:,}" if "unique" in entry else f"{entry['steps']} steps"
        ends = [end if isinstance(end, str) else f"{end:,.6g}" for end in (low, high) if end is not None]
        lines.append([name, str(entry.get("unit", "")), f"{100 * entry['missing']:.1f} %", distinct, " … ".join(ends)])
    rows_title = "Input rows: kept, merged and rejected"
    columns_title = "Columns: missing values and ranges"
    return [
        TextTable("Rows", "Input rows", ["rows", "reason", "count"], rows, words=[1], fold=rows_title),
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
    title = "Leakage checks"
    checks = (report or {}).get("checks", [])
    findings = sum(len(check["findings"]) for check in checks)
    text = (
        f"Leakage checks read the files of all stages before any error is computed: {len(checks)} checks, "
        f"{findings or 'no'} finding{'' if findings == 1 else 's'}. A finding stops the run."
    )
    lines = []
    for check in checks:
        scope = ". ".join(filter(None, (check["looked_at"], _numbers_sentence(check["numbers"]))))
        lines.append([check["check"], check["meaning"], scope, str(len(check["findings"]))])
    table = TextTable(title, "", ["check", "requirement", "scope", "findings"], lines, words=[1, 2], fold="All checks")
    return text_section("leakage", title, text, [table] if report else [])


def _numbers_sentence(numbers: Mapping[str, Any]) -> str:
    if all(numbers.get(name) is not None for name in _CONTROL):
        control, chance, better, shuffles = (numbers[name] for name in _CONTROL)
        return (
            f"Trained on shuffled scores: mean absolute log error {control:.3f}; chance: {chance:.3f}; "
            f"better than chance in {better} of {shuffles} shuffles."
        )
    return ""


_SHOWN = 6
_LOW = 0.1
_GROUP_TEXTS = {
    RESULTS: "its few results",
    OF_PAIR: "few of this task",
    YOUNG: "its young task",
    AHEAD: "the time since the end of the data",
}
_OF_ERRORS = ("in-domain score", "probable reason")


def largest_errors(evaluation: Evaluation, names: pd.Series, predictor: str) -> list[TextTable]:
    """Return, by split, the machines with the largest errors of one predictor, each machine once.

    Errors are compared by their logarithm, so that half and double are equally wrong. Below the row of a machine stands
    how many of its further rows have at least half of this error.
    """
    several = evaluation.tables["points"]["target"].nunique() > 1
    tables: list[TextTable] = []
    for split in evaluation.ranked_splits:
        points = evaluation.tables["points"]
        mine = points[(points["split"] == split) & (points["predictor"] == predictor)].copy()
        if mine.empty:
            continue
        mine["log"] = np.log(mine["predicted"].astype(float) / mine["measured"].astype(float))
        mine["machine"] = names.loc[mine["row"]].to_numpy()
        mine["rank"] = mine["in_domain_score"].rank(pct=True)
        size = mine["log"].abs()
        by_machine = (size >= 0.5 * size.groupby(mine["machine"]).transform("max")).groupby(mine["machine"])
        mine["similar"] = by_machine.transform("sum") - 1
        worst = mine.loc[size.sort_values(ascending=False, kind="stable").index].drop_duplicates("machine")
        description = f": {describe_split(split)}" if describe_split(split) else ""
        label = split_label(split)
        fold = f"{split_label(split)} ({split}){description}"
        caption = (
            f"{label}: largest errors of {evaluation.label(predictor)}, with "
            f"{100 * evaluation.level:g} % prediction intervals; predictions are not measured results"
        )
        headings: Line = ["machine", "task", "measured", Cell("predicted", ("interval",)), "error", *_OF_ERRORS]
        lines = [_error_line(point, several=several) for point in worst.head(_SHOWN).to_dict("records")]
        table = TextTable(f"Largest errors on {label}", caption, headings, lines, words=[1, 6], fold=fold)
        tables.append(replace(table, open=not tables, style="large-errors"))
    return tables


def _error_line(point: Mapping[Hashable, Any], *, several: bool) -> Line:
    log = float(point["log"])
    half = float(point["half_width"])
    predicted = float(point["predicted"])
    similar = int(point["similar"])
    more = f", and {count(similar, 'similar result')}" if similar else ""
    interval: tuple[str, ...] = ()
    if not np.isnan(half):
        low, high = (_score(predicted * np.exp(way * half)) for way in (-1, 1))
        interval = f"{low} to {high}", "inside" if abs(log) <= half else "outside"
    return [
        Cell(point["machine"], (f"{point['row']}{more}",)),
        Cell(point["task"], (point["target"],) if several else ()),
        _score(float(point["measured"])),
        Cell(_score(predicted), interval),
        f"{signed(100 * np.expm1(log), 0)}\u00a0%",
        number(float(point["in_domain_score"])),
        _reason(point),
    ]


def _score(value: float) -> str:
    """Return a score with three significant digits, whole from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _reason(point: Mapping[Hashable, Any]) -> str:
    """Return the probable reason of one error in words."""
    group = point["least_similar_group"]
    rank = point["rank"]
    if rank <= _LOW and group:
        others = min(int(100 * (1 - rank)), 99)
        cause = _GROUP_TEXTS.get(group, f"its {group}")
        return f"less similar to the training data than {others} % of this split, above all by {cause}"
    if abs(point["log"]) <= point["half_width"]:
        return "inside its interval: errors of this size are expected for such machines"
    return "no reason found in the data"
