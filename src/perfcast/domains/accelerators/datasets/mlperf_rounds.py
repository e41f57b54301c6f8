"""Parsers of the three forms in which rounds of MLPerf inference were published: entries, a summary, a pivot table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from perfcast.domains import read_table
from perfcast.domains.accelerators.sources.mlperf_inference import PIVOT, SOURCE, SUMMARY
from perfcast.sources.bounded_files import FETCH_AGAIN
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json_text

PUBLISHED = {
    "v2.0": "2022-04-06",
    "v2.1": "2022-09-08",
    "v3.0": "2023-04-05",
    "v3.1": "2023-09-11",
    "v4.0": "2024-03-27",
    "v4.1": "2024-08-28",
    "v5.0": "2025-04-02",
    "v5.1": "2025-09-09",
}
"""Round -> day of its publication."""
_FIELDS = read_table(__package__, "mlperf_fields.csv")
"""Field of a record, and its name or place in an entry, in an entry of the summary, and in the pivot table."""
ENTRY = {row["field"]: row["entry"] for row in _FIELDS if row["entry"]}
"""Field of a record -> its name in an entry."""
SUMMARY_ENTRY = {row["field"]: row["summary"] for row in _FIELDS}
"""Field of a record -> its name in an entry of the summary; a record has all of them as text, "" for none."""
PIVOT_FIELDS = {row["field"]: int(row["pivot"]) for row in _FIELDS if row["pivot"]}
"""Field of a record -> its column in the pivot table."""
_MODELS = 2
_SCENARIOS = 3
_UNITS = 4
_FIRST = 5
_LABEL = 15
"""Rows of the head of the pivot table, its first row of results, and the column that names the content of a row."""
CONTENTS = {
    "# of Accelerators": "per_node",
    "# of Nodes": "nodes",
    "Avg. Result at System Name": "result",
    "Sum of # of  Processors ": "sockets",
}
"""Content of a row of the pivot table -> field of a record."""
_LETTERS = 300


def read_entries(contents: Mapping[str, bytes]) -> pd.DataFrame:
    """Return one row of texts per published entry, with its `file` and `line`, the number of the entry in the file.

    Raises: UserError when a file is not of its form.
    """
    rows: list[dict[str, Any]] = []
    for path, content in contents.items():
        records = _read_pivot(content) if path.endswith(PIVOT) else _read_entries(path, content)
        rows += ({"file": path, "line": number, **record} for number, record in enumerate(records, 1))
    return pd.DataFrame(rows, columns=["file", "line", *SUMMARY_ENTRY]).fillna("").astype("str")


def _read_entries(path: str, content: bytes) -> Iterator[dict[str, str]]:
    entries = read_json_text(content, path)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{path} must be a list of entries", "it is something else", FETCH_AGAIN)
    names = SUMMARY_ENTRY if path.endswith(SUMMARY) else ENTRY
    for entry in entries:
        suite = "" if entry.get("Suite", "datacenter") == "datacenter" else f" {_text(entry['Suite'])}"
        record = {field: _text(entry.get(name)) for field, name in names.items()}
        yield {**record, "division": record["division"] + suite}


def _read_pivot(content: bytes) -> Iterator[dict[str, str]]:
    """Yield a record per result: each system has a row with the fields, and below them the same cells of others."""
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig", errors="replace"))))
    width = len(rows[_UNITS]) if len(rows) > _FIRST else 0
    if width <= _LABEL or any(len(row) != width for row in rows):
        raise UserError(
            f"{PIVOT} of {SOURCE} must be the pivot table",
            "rows have other fields",
            FETCH_AGAIN,
        )
    models = pd.Series(rows[_MODELS]).replace("", None).ffill()
    system: dict[str, str] = {}
    cells: dict[int, dict[str, str]] = {}
    for row in [*rows[_FIRST:], [*rows[_FIRST]]]:
        if row[0]:
            yield from (
                {
                    **system,
                    **cell,
                    "model": str(models[place]),
                    "scenario": rows[_SCENARIOS][place],
                    "unit": rows[_UNITS][place],
                }
                for place, cell in cells.items()
                if cell.get("result")
            )
            system = {"round": "v5.0"} | {name: _text(row[place]) for name, place in PIVOT_FIELDS.items()}
            cells = {}
        for place in range(_LABEL + 1, len(row)):
            if row[place].strip() and (name := CONTENTS.get(row[_LABEL])):
                cells.setdefault(place, {})[name] = _text(row[place]).replace(",", "")


def _text(value: object) -> str:
    """Return a value of a file as one line of text."""
    if not isinstance(value, (str, int, float)):
        return ""
    return " ".join(str(value).split())[:_LETTERS]
