"""Steps that datasets of measurements share: numbers, quarantine, the description of a measured machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.strict_csv import Rejection
from perfcast.schema.declare import number
from perfcast.schema.table import Column, Kind, Role, Table, build_table, out_of_bounds
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object

FACTS = ("architecture", "cpu_model", "cpu_vendor", "flags", "kernel", "sockets", "versions", "virtual")
"""Facts of the machine's description besides MACHINE_COLUMNS."""


MACHINE_COLUMNS = (
    Column("cpu_model", Kind.CATEGORICAL, Role.FEATURE, "machine", meaning="processor name as the system reports it"),
    number("cores", "machine", "logical processors"),
    number("threads_per_core", "machine", "hardware threads of one core"),
    number("l1d_kib", "machine", "first-level data caches, summed over the machine", unit="KiB"),
    number("l2_kib", "machine", "second-level caches, summed over the machine", unit="KiB"),
    number("l3_kib", "machine", "last-level caches, summed over the machine", unit="KiB"),
    number("memory_gib", "machine", "memory visible to the system", unit="GiB", low=0),
)


def parse_numbers(text: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the frame with texts parsed as finite numbers, else missing; `<name>_text` keeps the text."""
    numbers = {name: pd.to_numeric(text[name], errors="coerce").astype("float64") for name in names}
    finite = {name: values.where(np.isfinite(values)) for name, values in numbers.items()}
    return text.assign(**finite, **{f"{name}_text": text[name] for name in names})


def describe_first_bad(bad: pd.DataFrame, texts: pd.DataFrame, suffix: str = "_text") -> pd.Series:
    """Return '<column>: <text>' of the first bad cell of each row, missing for a row without one.

    Shapes: `bad` has a boolean column per number; `texts` has its text in the column `<name><suffix>`.
    """
    marked = bad.to_numpy(dtype=bool)
    rows = np.flatnonzero(marked.any(axis=1))
    names = bad.columns[marked[rows].argmax(axis=1)]
    cells = [texts[f"{name}{suffix}"].iloc[row] for row, name in zip(rows, names, strict=True)]
    described = [np.nan if pd.isna(cell) else f"{name}: {cell}" for name, cell in zip(names, cells, strict=True)]
    return pd.Series(described, index=bad.index[rows], dtype="str").reindex(texts.index)


def quarantine(
    source: str, file: str, frame: pd.DataFrame, rules: Mapping[str, pd.Series]
) -> tuple[pd.DataFrame, list[Rejection]]:
    """Quarantine each row under the first rule that it breaks; return the other rows and the rejections.

    Shapes: `frame` has the column `line`. `rules` maps a reason to one detail per row of `frame`, missing where the row
    satisfies the rule.
    """
    rejections = []
    good = pd.Series(True, index=frame.index)
    for reason, detail in rules.items():
        hit = good & detail.notna()
        good &= ~hit
        rejections += [
            Rejection(source, file, int(line), reason, str(text)[:200])
            for line, text in zip(frame.loc[hit, "line"], detail[hit], strict=True)
        ]
    return frame[good], rejections


def reject_outside(table: Table, source: str, file: str = "") -> tuple[Table, list[Rejection]]:
    """Return the rows with every value inside its bounds, and the rejections of the others, by their `source_line`.

    Args: `file` is that of the rows; without one it is in `source_file`.
    """
    outside = out_of_bounds(table)
    wrong = outside.any(axis=1)
    if not wrong.any():
        return table, []
    rows = table.frame[wrong].assign(column=outside[wrong].idxmax(axis=1)).to_dict("records")
    rejections = [
        Rejection(source, file or str(row["source_file"]), int(row["source_line"]), "out_of_bounds", str(row["column"]))
        for row in rows
    ]
    return build_table(table.dataset, table.frame[~wrong], table.columns), rejections


def read_machine(source: str, path: Path, remedy: str) -> dict[str, Any]:
    """Return the machine's description, None in place of an unusable number. Raises: UserError."""
    if not path.is_file():
        raise UserError(f"source {source!r} must have the file {path.name}", f"{path} is not there", remedy)
    content = read_object(path)
    for column in MACHINE_COLUMNS:
        value = content.get(column.name)
        numerical = isinstance(value, int | float) and not isinstance(value, bool) and value >= (column.low or 0)
        if column.kind is Kind.NUMERICAL and not numerical:
            content[column.name] = None
    return content
