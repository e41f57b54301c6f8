"""Reader of the processor samples: clocks by instruction set, caches and limits, by sample code."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.domains.servers.data_tables import read_table
from perfcast.sources.bounded_files import check_zip
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

CODE = "QDF/SSPEC"
FIRST_ROWS = 5
"""Number of first rows searched for the header; a row of group titles precedes it."""

MAX_ROWS, MAX_COLUMNS = 20_000, 128
"""Limits of the rows and columns read; all used columns are among the first 100."""

_REMEDY = "ingest the source again"
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*(GHz|MHz|MB|W)?", re.ASCII)
_GHZ = {"GHz": 1000.0, "MHz": 1.0, None: 1000.0}
_COUNT: dict[str | None, float] = {None: 1.0, "MB": 1.0, "W": 1.0}

FIELDS: dict[str, tuple[str, dict[str | None, float]]] = {
    row["name"]: (row["stated"], _GHZ if row["reader"] == "sku_ghz" else _COUNT)
    for row in read_table(__package__, "columns.csv")
    if row["reader"].startswith("sku_")
}
"""Standard name -> beginning of the title in the sheet, and unit of the text -> factor."""


def read_skus(path: Path) -> pd.DataFrame:
    """Read the sheet by code: columns FIELDS, float64; skip blank rows and use the first row of each code.

    Units: clocks MHz, cache MB per processor, power W. A 0 marks an absent mode and becomes missing.

    Raises:
        UserError: The file is absent, is not such a workbook, or lacks a column.
    """
    rows = _read_sheet(Path(path))
    code, positions = _find_header(path, rows)
    skus: dict[str, dict[str, float | None]] = {}
    for row in rows:
        if (key := _read_cell(row, code)) and key not in skus:
            skus[key] = {name: parse_quantity(_read_cell(row, positions[name]), FIELDS[name][1]) for name in FIELDS}
    return pd.DataFrame.from_dict(skus, orient="index", columns=list(FIELDS)).astype("float64")


def parse_quantity(text: str, factors: dict[str | None, float]) -> float | None:
    """Return the number of a text such as `2.2 GHz` times the factor of its unit; None for 0 and for other texts."""
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in factors:
        return None
    return float(match[1]) * factors[match[2]] or None


def _read_sheet(path: Path) -> Iterable[Sequence[Any]]:
    """Return an iterator over the rows of the first sheet, within the size limits."""
    import openpyxl

    if not path.is_file():
        raise UserError("source 'perfcastdb' must have the processor table", f"{path} is not there", _REMEDY)
    check_zip(path, "an Excel workbook", lambda name: name == "xl/workbook.xml", size_limits.WORKBOOK, remedy=_REMEDY)
    try:
        with warnings.catch_warnings(action="ignore"):
            workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            sheet = workbook.worksheets[0]
            return iter(list(sheet.iter_rows(max_row=MAX_ROWS, max_col=MAX_COLUMNS, values_only=True)))
        finally:
            workbook.close()
    except Exception as error:  # openpyxl and its parsers raise many kinds of errors
        problem = str(error)[:200] or type(error).__name__
        raise UserError(f"{path} must be an Excel workbook", f"it cannot be read ({problem})", _REMEDY) from None


def _find_header(path: Path, rows: Iterable[Sequence[Any]]) -> tuple[int, dict[str, int]]:
    """Return the position of the code and of every field: its exact title, else the first that begins with it."""
    titles: list[str] = []
    for _, row in zip(range(FIRST_ROWS), rows, strict=False):
        titles = [str(value or "").strip() for value in row]
        if CODE in titles:
            break
    else:
        raise UserError(f"{path} must have the column {CODE!r}", f"it is not in the first {FIRST_ROWS} rows", _REMEDY)
    positions = {}
    for name, (title, _) in FIELDS.items():
        begins = [i for i, text in enumerate(titles) if text.startswith(title)]
        if not begins:
            raise UserError(f"{path} must have the column {title!r}", "no title begins with it", _REMEDY)
        positions[name] = titles.index(title) if title in titles else begins[0]
    return titles.index(CODE), positions


def _read_cell(row: Sequence[Any], position: int) -> str:
    return str(row[position]).strip() if position < len(row) and row[position] is not None else ""
