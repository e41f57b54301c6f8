"""What changed in data, code and parameters as short lines, the same in the terminal and on the page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from perfcast.comparing.changes import Changes
from perfcast.comparing.code import CodeChange
from perfcast.comparing.data import SourceChange, TableChange
from perfcast.comparing.metrics import RowsCompared
from perfcast.comparing.parameters import ParameterChange
from perfcast.comparing.verdicts import BETTER, REAL, SAME, UNKNOWN, WORSE
from perfcast.evaluation import AVERAGE

LABELS = {"mape": "MAPE", "medape": "MedAPE", "p90": "p90", "coverage": "coverage", "width": "width"}
_LONGEST = 60


def summary(changes: Changes) -> str:
    """Return the whole comparison in one line."""
    frame = changes.metrics.frame
    counts = [f"{changes.count(one)} {one}" for one in (BETTER, WORSE)]
    counts += [f"{changes.count(one)} {one}" for one in REAL if one not in (BETTER, WORSE) and changes.count(one)]
    if not changes.real:
        told = "no metric changed for real"
        identical = ((frame["difference"] == 0) | frame["difference"].isna()).all()
        told = "all metrics are the same" if identical else told
    else:
        told = f"real changes: {', '.join(counts)}"
    unknown = changes.count(UNKNOWN)
    return f"{told} (of {len(frame) - unknown} compared{f'; of {unknown} the rows cannot tell' if unknown else ''})"


def data_lines(changes: Changes) -> list[str]:
    """Return what changed in sources and tables."""
    lines = [_source(one) for one in changes.sources] + [_table(one) for one in changes.tables]
    if not changes.sources:
        lines.insert(0, "sources: the same files")
    if changes.same_tables:
        lines.append(f"{changes.same_tables} {'other ' if changes.tables else ''}tables have equal bytes")
    return lines


def row_lines(changes: Changes) -> list[str]:
    """Return where the sides were tested on other rows, and what could not be compared."""
    return [line for one in changes.metrics.rows if (line := _rows(one))] + changes.metrics.left_out


def code_lines(changes: Changes, most: int | None = None) -> list[str]:
    """Return what changed in the code, at most `most` files."""
    if not changes.code:
        known = changes.code_from
        return [known if known.startswith(("not recorded", "both are")) else f"no change ({known})"]
    counted = [one for one in changes.code if one.added is not None]
    total = f"{len(changes.code)} {'files' if counted else 'parts'} changed ({changes.code_from})"
    if counted:
        total += f": +{sum(one.added or 0 for one in counted)} -{sum(one.removed or 0 for one in counted)} lines"
    shown = [_file(one) for one in changes.code[:most]]
    hidden = len(changes.code) - len(shown)
    return [total, *shown, *([f"and {hidden} more"] if hidden else [])]


def parameter_lines(changes: Changes, most: int | None = None) -> list[str]:
    """Return what changed in the parameters, at most `most` keys."""
    shown = [_parameter(one) for one in changes.parameters[:most]]
    hidden = len(changes.parameters) - len(shown)
    return [*(shown or ["no change"]), *([f"and {hidden} more"] if hidden else [])]


def real_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `MetricChanges.frame` by verdict, what is worse first; averages before single tasks."""
    order = [*REAL, SAME, UNKNOWN]
    place = frame["verdict"].map(order.index)
    ranked = frame.assign(place=place, single=frame["task"] != AVERAGE)
    return ranked.sort_values(["place", "single"], kind="stable").drop(columns=["place", "single"])


def number(value: float) -> str:
    """Return a number with two decimals below 10, one below 100 and none above; a dash for NaN."""
    if math.isnan(value):
        return "-"
    return f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}"


def signed(value: float) -> str:
    """Return a difference with its sign; one too small for two decimals keeps one digit that counts."""
    if math.isnan(value):
        return "-"
    if value == 0:
        return "0"
    return f"{value:+.2f}" if abs(value) >= 0.005 else f"{value:+.1g}"


def _source(change: SourceChange) -> str:
    name = f"{change.source}/{change.file}" if change.file else change.source
    before, after = (value[:12] if len(value) == 64 else value for value in (change.before, change.after))
    return f"source {name}: {before} -> {after}"


def _table(change: TableChange) -> str:
    if change.rows[0] is None or change.rows[1] is None:
        return f"{change.table}: {'added' if change.rows[0] is None else 'removed'}"
    rows = [f"{count:,} {word}" for word in ("added", "removed", "changed") if (count := getattr(change, word))]
    told = [f"rows {', '.join(rows)}, {change.rows[0]:,} -> {change.rows[1]:,}"] if rows else []
    for word in ("added", "removed"):
        if names := getattr(change, f"columns_{word}"):
            told.append(f"columns {word}: {_few(names)}")
    if change.columns_changed:
        by_count = Counter(change.columns_changed).most_common()
        told.append(f"values changed in {_few([f'{name} ({count:,})' for name, count in by_count])}")
    return f"{change.table}: {'; '.join(told) or 'same rows and values in other bytes'}"


def _rows(one: RowsCompared) -> str:
    told = []
    if one.only_before or one.only_after:
        told.append(
            f"compared on {one.shared:,} shared test rows; left out {one.only_before:,} only before, "
            f"{one.only_after:,} only after"
        )
    if one.remeasured:
        told.append(f"{one.remeasured:,} shared rows have another measured score, each side is judged by its own")
    return f"{one.dataset}/{one.split}: {'; '.join(told)}" if told else ""


def _file(one: CodeChange) -> str:
    return one.path if one.added is None else f"{one.path} +{one.added} -{one.removed}"


def _parameter(change: ParameterChange) -> str:
    if isinstance(change.before, list) and isinstance(change.after, list):
        told = [
            f"{word} {', '.join(map(str, names))}"
            for word, names in (
                ("added", [one for one in change.after if one not in change.before]),
                ("removed", [one for one in change.before if one not in change.after]),
            )
            if names
        ]
        return f"{change.key}: {'; '.join(told) or 'another order'} ({_where(change.where)})"
    return f"{change.key}: {_value(change.before)} -> {_value(change.after)} ({_where(change.where)})"


def _value(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _where(where: Sequence[str]) -> str:
    """Return runs in short: few by name, many by number, those of one predictor by its name."""
    if len(where) <= 2:
        return ", ".join(where)
    predictors = sorted({run.split("/")[-1] for run in where})
    if len(predictors) == 1:
        return f"{len(where)} runs of {predictors[0]}"
    return f"{len(where)} runs of {len(predictors)} predictors"


def _few(names: Sequence[str], most: int = 4) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
