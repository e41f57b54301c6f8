"""Tables of the data quality of a dataset: rows, columns and details."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perfcast.schema.display_names import replace_underscores

_SHOWN_BY_COLUMNS = frozenset({"missing", "ranges"})
"""Details that the table of columns shows."""
_SHARES = ("coverage", "share", "missing")


def quality_section(quality: Mapping[str, Any]) -> dict[str, object]:
    """Return the counts of rows, the columns, and the details of a dataset."""
    return {"rows": row_counts(quality), "columns": column_lines(quality), "details": detail_tables(quality)}


def row_counts(quality: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Return (state, reason, rows) of all input rows: kept, merged by rule, rejected by reason."""
    lines = [("read", "", int(quality["rows_in"])), ("kept", "", int(quality["rows_kept"]))]
    if excluded := int(quality.get("rows_excluded", 0)):
        lines.append(("of these", "excluded from the evaluation: the score cannot be that of the machine", excluded))
    lines += [
        ("merged", replace_underscores(rule), int(count)) for rule, count in sorted(quality.get("merged", {}).items())
    ]
    return lines + [
        ("rejected", replace_underscores(why), int(count)) for why, count in sorted(quality.get("rejected", {}).items())
    ]


def column_lines(quality: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one line per column: name, unit, share missing, distinct values, smallest and largest."""
    lines = []
    for name, entry in quality.get("columns", {}).items():
        low, high = entry.get("min"), entry.get("max")
        lines.append(
            {
                "name": name,
                "unit": str(entry.get("unit", "")),
                "missing": f"{100 * entry['missing']:.1f} %",
                "unique": f"{entry['unique']:,}" if "unique" in entry else f"{entry['steps']} steps",
                "range": "" if low is None else f"{_plain(low)} … {_plain(high)}",
            }
        )
    return lines


def detail_tables(quality: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return quality facts of the dataset as titled two-column tables, nested names joined."""
    tables = []
    facts = []
    for name, value in quality.get("details", {}).items():
        if name in _SHOWN_BY_COLUMNS:
            continue
        lines = [(replace_underscores(path), _value(path, leaf)) for path, leaf in _leaf_values(value, name)]
        if isinstance(value, Mapping):
            if lines:
                tables.append(
                    (
                        replace_underscores(name),
                        [(label.removeprefix(replace_underscores(name)).strip(" ·"), text) for label, text in lines],
                    )
                )
        else:
            facts += lines
    return [("facts", facts), *tables] if facts else tables


def _leaf_values(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaf_values(inner, f"{path} · {key}")
    else:
        yield path, value


def _value(path: str, value: Any) -> str:
    if isinstance(value, float) and 0 <= value <= 1 and any(word in path for word in _SHARES):
        return f"{100 * value:.1f} %"
    if isinstance(value, list | tuple):
        return ", ".join(_plain(item) for item in value)
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return "" if value is None else str(value)
