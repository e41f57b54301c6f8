"""Steps that the self-measured datasets share: machine description, numbers, spread, quarantine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.strict_csv import Rejection
from perfcast.schema.declare import measured, number
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


PLACE_COLUMNS = (
    measured("order", "position in the sequence of measurements"),
    measured("pass", "0 for the first measurement, more for repetitions"),
    Column("source_file", Kind.CATEGORICAL, Role.PROVENANCE, "problem", meaning="file of the row"),
    measured("source_line", "line of that file"),
)


def read_max_spread(source: str, options: Mapping[str, Any]) -> float:
    """Return option `max_spread`. Raises: UserError when it is not a positive number."""
    value = options.get("max_spread", 0.5)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UserError(f"option 'max_spread' of {source} must be a positive number", f"found {value!r}")
    return float(value)


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


def mark_outside(dataset: str, frame: pd.DataFrame, columns: Sequence[Column], names: Collection[str]) -> pd.DataFrame:
    """Mark the numbers of the named columns that lie outside their declared bounds."""
    numbers = [column for column in columns if column.name in names]
    return out_of_bounds(build_table(dataset, frame, numbers)).set_axis(frame.index)


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


def keep_steadiest(frame: pd.DataFrame, configuration: Sequence[str]) -> tuple[pd.DataFrame, int]:
    """Return the measurement of smallest spread per configuration, the first on ties, and the number of others."""
    ordered = frame.sort_values([*configuration, "seconds_spread", "line"], kind="stable")
    best = ordered.drop_duplicates(list(configuration))
    return best.reset_index(drop=True), len(frame) - len(best)


def join_machine(
    source: str, folder: Path, frame: pd.DataFrame, columns: Sequence[Column], remedy: str
) -> tuple[Table, list[str]]:
    """Return the table of measurements with the facts of their machine, and the names of its unknown facts.

    Raises: UserError when the description of the machine is absent.
    """
    machine = read_machine(source, folder / f"{source}.json", remedy)
    known = {column.name: machine.get(column.name) for column in MACHINE_COLUMNS}
    frame = frame.assign(source_file=f"{source}.csv.gz", source_line=frame["line"], **known)
    facts = {"machine": {name: machine[name] for name in FACTS if machine.get(name) is not None}}
    return build_table(source, frame, columns, facts), [name for name, value in known.items() if value is None]


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
