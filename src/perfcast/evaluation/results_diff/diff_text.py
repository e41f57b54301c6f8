"""The comparison of two results as text for the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from textwrap import wrap
from typing import Any

import pandas as pd

from perfcast.evaluation import AVERAGE
from perfcast.evaluation.results_diff import Changes
from perfcast.evaluation.results_diff.input_changes import ParameterChange, SourceChange, TableChange
from perfcast.evaluation.results_diff.metric_changes import BETTER, REAL, SAME, UNKNOWN, WORSE, RowsCompared
from perfcast.schema.display_names import metric_label
from perfcast.utils.terminal_tables import format_table

_LONGEST = 60


def summary(changes: Changes) -> str:
    """Return the whole comparison in one line."""
    frame = changes.metrics.frame
    counts = [f"{changes.count(verdict)} {verdict}" for verdict in (BETTER, WORSE)]
    counts += [
        f"{changes.count(verdict)} {verdict}"
        for verdict in REAL
        if verdict not in (BETTER, WORSE) and changes.count(verdict)
    ]
    if not changes.real:
        identical = ((frame["difference"] == 0) | frame["difference"].isna()).all()
        text = "all metrics are the same" if identical else "no metric has a real change"
    else:
        text = f"real changes: {', '.join(counts)}"
    unknown = changes.count(UNKNOWN)
    undecided = f"; {unknown} without an interval" if unknown else ""
    return f"{text} (of {len(frame) - unknown} compared{undecided})"


def data_lines(changes: Changes) -> list[str]:
    """Return the changes of sources and tables."""
    lines = [_source(change) for change in changes.sources] + [_table(change) for change in changes.tables]
    if not changes.sources:
        lines.insert(0, "sources: the same files")
    if changes.same_tables:
        lines.append(f"{changes.same_tables} {'other ' if changes.tables else ''}tables have equal bytes")
    return lines


def row_lines(changes: Changes) -> list[str]:
    """Return the splits whose test rows differ, and what could not be compared."""
    return [line for change in changes.metrics.rows if (line := _rows(change))] + changes.metrics.left_out


def code_lines(changes: Changes, maximum: int | None = None) -> list[str]:
    """Return the changes of the code, at most `maximum` files."""
    if not changes.code:
        origin = changes.code_from
        return [origin if origin.startswith(("not recorded", "both are")) else f"no change ({origin})"]
    counted = [change for change in changes.code if change.added is not None]
    total = f"{len(changes.code)} {'files' if counted else 'parts'} changed ({changes.code_from})"
    if counted:
        total += (
            f": +{sum(change.added or 0 for change in counted)} -{sum(change.removed or 0 for change in counted)} lines"
        )
    shown = [
        change.path if change.added is None else f"{change.path} +{change.added} -{change.removed}"
        for change in changes.code[:maximum]
    ]
    hidden = len(changes.code) - len(shown)
    return [total, *shown, *([f"and {hidden} more"] if hidden else [])]


def parameter_lines(changes: Changes, maximum: int | None = None) -> list[str]:
    """Return the changes of the parameters, at most `maximum` keys."""
    shown = [_parameter(change) for change in changes.parameters[:maximum]]
    hidden = len(changes.parameters) - len(shown)
    return [*(shown or ["no change"]), *([f"and {hidden} more"] if hidden else [])]


def real_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `MetricChanges.frame` by verdict, what is worse first; averages before single tasks."""
    order = [*REAL, SAME, UNKNOWN]
    rank = frame["verdict"].map(order.index)
    ranked = frame.assign(rank=rank, single=frame["task"] != AVERAGE)
    return ranked.sort_values(["rank", "single"], kind="stable").drop(columns=["rank", "single"])


def number(value: float) -> str:
    """Return a number with two decimals below 10, one below 100 and none above; a dash for NaN."""
    if math.isnan(value):
        return "-"
    return f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}"


def signed(value: float) -> str:
    """Return a difference with its sign; one too small for two decimals keeps one significant digit."""
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
    parts = [f"rows {', '.join(rows)}, {change.rows[0]:,} -> {change.rows[1]:,}"] if rows else []
    for word in ("added", "removed"):
        if names := getattr(change, f"columns_{word}"):
            parts.append(f"columns {word}: {_join(names)}")
    if change.columns_changed:
        by_count = Counter(change.columns_changed).most_common()
        parts.append(f"values changed in {_join([f'{name} ({count:,})' for name, count in by_count])}")
    return f"{change.table}: {'; '.join(parts) or 'same rows and values in other bytes'}"


def _rows(rows: RowsCompared) -> str:
    parts = []
    if rows.only_before or rows.only_after:
        parts.append(
            f"compared on {rows.shared:,} shared test rows; left out {rows.only_before:,} only before, "
            f"{rows.only_after:,} only after"
        )
    if rows.remeasured:
        parts.append(
            f"{rows.remeasured:,} shared rows have another measured score; each side is evaluated with its own"
        )
    return f"{rows.dataset}/{rows.split}: {'; '.join(parts)}" if parts else ""


def _parameter(change: ParameterChange) -> str:
    if isinstance(change.before, list) and isinstance(change.after, list):
        parts = [
            f"{word} {', '.join(map(str, names))}"
            for word, names in (
                ("added", [value for value in change.after if value not in change.before]),
                ("removed", [value for value in change.before if value not in change.after]),
            )
            if names
        ]
        return f"{change.key}: {'; '.join(parts) or 'another order'} ({_where(change.where)})"
    return f"{change.key}: {_value(change.before)} -> {_value(change.after)} ({_where(change.where)})"


def _value(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _where(where: Sequence[str]) -> str:
    """Return up to two runs by name, more by number, and runs of one predictor by its name."""
    if len(where) <= 2:
        return ", ".join(where)
    predictors = sorted({run.split("/")[-1] for run in where})
    if len(predictors) == 1:
        return f"{len(where)} runs of {predictors[0]}"
    return f"{len(where)} runs of {len(predictors)} predictors"


def _join(names: Sequence[str], maximum: int = 4) -> str:
    hidden = len(names) - maximum
    return ", ".join(names[:maximum]) + (f" and {hidden} more" if hidden > 0 else "")


_MAX_LINES = 5
_WIDTH = 100
READING = (
    "Real: the 95 % interval of the paired difference on the same test rows, clustered by entity, excludes zero, and "
    "the change is significant after correction for the number of predictors. One seed does not average out chance."
)


def as_text(changes: Changes, *, everything: bool = False) -> str:
    """Return the comparison: one line of summary, the changes, and the metrics, real changes first.

    Without `everything` there is one line per predictor and split with a real change.
    """
    maximum = None if everything else _MAX_LINES
    lines = [f"{changes.before} -> {changes.after}: {summary(changes)}", ""]
    parts = {
        "data": data_lines(changes),
        "code": code_lines(changes, maximum),
        "parameters": parameter_lines(changes, maximum),
        "rows": row_lines(changes)[: None if everything else 2 * _MAX_LINES],
    }
    for name, part_lines in parts.items():
        lines += [f"{name if index == 0 else '':<12}{line}" for index, line in enumerate(part_lines)]
    lines.append("")
    lines += _all_metrics(changes) if everything else _real_metrics(changes)
    return "\n".join([*lines, *wrap(READING, _WIDTH)]) + "\n"


def _real_metrics(changes: Changes) -> list[str]:
    """Return a line per (dataset, split, predictor) with a real change, the largest changes of MAPE first."""
    frame = changes.metrics.frame
    keys = ["dataset", "split", "predictor"]
    lines, quiet = [], 0
    for dataset, rows in frame.groupby("dataset", sort=False):
        table = []
        for (_, split, predictor), part in rows.groupby(keys, sort=False):
            if not part["verdict"].isin(REAL).any():
                quiet += 1
                continue
            row = part[(part["task"] == AVERAGE) & (part["metric"] == "mape")].iloc[0]
            table.append((row, [split, predictor, *_numbers(row), row["verdict"], _also(part)]))
        table.sort(key=lambda pair: (pair[0]["verdict"] not in REAL, -abs(pair[0]["difference"] / pair[0]["before"])))
        if table:
            head = [str(dataset), "", "MAPE A", "B", "B - A [95 %]", "verdict", "other real changes"]
            lines += [*format_table(head, [cells for _, cells in table]), ""]
    if quiet:
        lines += [f"{quiet} further pairs of split and predictor: no real change (--all shows them)", ""]
    return lines


def _also(part: pd.DataFrame) -> str:
    """Return the other real changes of one predictor on one split: the average's metrics, and tasks by their MAPE."""
    several = part["task"].nunique() > 2  # with one task its metrics are those of the average
    parts, hidden = [], 0
    for row in part[part["verdict"].isin(REAL)].to_dict("records"):
        average, mape = row["task"] == AVERAGE, row["metric"] == "mape"
        if average != mape and (average or several):
            name = metric_label(row["metric"], short=True) if average else row["task"]
            parts.append(f"{name} {row['verdict']} {signed(row['difference'])}")
        elif several and not average and not mape:
            hidden += 1
    parts += [f"{hidden} further of single tasks"] if hidden and not parts else []
    return ", ".join(parts)


def _all_metrics(changes: Changes) -> list[str]:
    frame = changes.metrics.frame
    lines = []
    for dataset, rows in frame.groupby("dataset", sort=False):
        head = [str(dataset), "", "task", "metric", "A", "B", "B - A [95 %]", "p", "verdict"]
        table = [
            [
                row["split"],
                row["predictor"],
                row["task"],
                metric_label(row["metric"], short=True),
                *_numbers(row),
                *_end(row),
            ]
            for row in real_first(rows).to_dict("records")
        ]
        lines += [*format_table(head, table), ""]
    return lines


def _numbers(row: pd.Series | dict[Hashable, Any]) -> list[str]:
    bounds = f"[{signed(row['low'])}, {signed(row['high'])}]" if math.isfinite(row["low"]) else "[no interval]"
    difference = signed(row["difference"])
    return [number(row["before"]), number(row["after"]), f"{difference} {bounds}" if difference != "0" else "0"]


def _end(row: dict[Hashable, Any]) -> list[str]:
    p = row["p"]
    return ["-" if math.isnan(p) else f"{p:.3f}", row["verdict"]]
