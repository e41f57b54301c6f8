"""The data quality section: row accounting, columns, and whatever a data set tells of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_TOLD_BY_COLUMNS = frozenset({"missing", "ranges"})
"""Details that the table of columns shows already."""
_SHARES = ("coverage", "share", "missing")


def accounting(quality: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Return (what, reason, rows) for every row that came in: kept, merged by rule, rejected by reason."""
    lines = [("read", "", int(quality["rows_in"])), ("kept", "", int(quality["rows_kept"]))]
    if unjudged := int(quality.get("rows_unjudged", 0)):
        lines.append(("of them", "no forecast is judged by: the score cannot be the machine's own", unjudged))
    lines += [("merged", _words(rule), int(count)) for rule, count in sorted(quality.get("merged", {}).items())]
    return lines + [("rejected", _words(why), int(count)) for why, count in sorted(quality.get("rejected", {}).items())]


def columns(quality: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one line per column: name, unit, share missing, distinct values, smallest and largest."""
    lines = []
    for name, entry in quality.get("columns", {}).items():
        low, high = entry.get("min"), entry.get("max")
        lines.append(
            {
                "name": name,
                "unit": str(entry.get("unit", "")),
                "missing": f"{100 * entry['missing']:.1f} %",
                "unique": f"{entry['unique']:,}",
                "range": "" if low is None else f"{_plain(low)} … {_plain(high)}",
            }
        )
    return lines


def details(quality: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the data set's own quality facts as titled two-column tables, nested names joined."""
    tables = []
    facts = []
    for name, value in quality.get("details", {}).items():
        if name in _TOLD_BY_COLUMNS:
            continue
        lines = [(_words(path), _value(path, leaf)) for path, leaf in _leaves(value, name)]
        if isinstance(value, Mapping):
            if lines:
                tables.append(
                    (_words(name), [(label.removeprefix(_words(name)).strip(" ·"), text) for label, text in lines])
                )
        else:
            facts += lines
    return [("facts", facts), *tables] if facts else tables


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path} · {key}")
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


def _words(name: str) -> str:
    return name.replace("_", " ")
