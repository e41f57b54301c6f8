"""Rows of the Java benchmarks' dumps: what a row must have to be a result at all, else why it is quarantined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.datasets._spec_cpu2017_read import read_dump
from perfcast.datasets._spec_cpu2017_rows import MAX_CORES_PER_CHIP, Quarantine, reject_defects
from perfcast.errors import UserError
from perfcast.parsing.coverage import Parsed, parse_column
from perfcast.parsing.scalars import Scalar, parse_month
from perfcast.parsing.text import compile_pattern, normalize
from perfcast.schema import Column, build_table, out_of_bounds

_NUMBER = compile_pattern(r"^\d{1,12}(?:\.\d{1,12})?(?:e\+?\d{1,2})?$")
_THOUSANDS = compile_pattern(r"(?<=\d),(?=\d{3}(?:\D|$))")
_IDENTIFIER = compile_pattern(r"\b((?:power_ssj2008|jbb2015)-(\d{4})(\d{2})(\d{2})-\d{5})\b")
_MAX_CHIPS = 64


Typed = tuple[str, Callable[[str], Parsed], str]
"""The raw column that must give a value, its parser, and the reason when it does not."""


@dataclass(frozen=True)
class Identity:
    """The identifier of a published result and the day in it, when the result was handed in."""

    result_id: str | None = None
    arrival_day: date | None = None
    complete: bool = False


@dataclass(frozen=True)
class Results:
    """Results published until the last month, in the order of their identifiers.

    Shapes: `frame` has the raw columns as text, the typed columns asked for, result_id, arrival_day, published_month,
    line and line_in_file. `after` counts rows published later, `rows_in` all others.
    """

    frame: pd.DataFrame
    quarantine: Quarantine
    rows_in: int
    after: int
    identical: int

    def reject(self, frame: pd.DataFrame, bad: pd.Series, reason: str, detail: pd.Series) -> pd.DataFrame:
        """Quarantine the rows where `bad` holds and return the others. Raises: UserError when there are none."""
        remaining = self.quarantine.reject(frame, bad, reason, detail)
        self.refuse_none(remaining)
        return remaining

    def refuse_none(self, frame: pd.DataFrame) -> None:
        """Make sure that a row is left. Raises: UserError when none is."""
        if frame.empty:
            raise UserError(
                f"{self.quarantine.file} of {self.quarantine.source} must hold a usable result",
                f"of {self.rows_in + self.after} rows {len(self.quarantine.rejections)} are unusable, "
                f"{self.after} too late",
                "look at the file, or set published_until later",
            )


def parse_measured(text: str) -> Scalar[float]:
    """Parse a number without sign, in scientific notation where it is large: `1.34723e+06`, `1,024`."""
    value = _THOUSANDS.sub("", normalize(text))
    return Scalar(float(value)) if _NUMBER.match(value) else Scalar(reason=f"not a number: {value[:40]!r}")


def parse_identity(text: str) -> Identity:
    """Parse the first identifier in a text of links, such as `power_ssj2008-20301109-00042`."""
    match = _IDENTIFIER.search(normalize(text))
    if match is None:
        return Identity()
    try:
        day = date(int(match[2]), int(match[3]), int(match[4]))
    except ValueError:
        return Identity()
    return Identity(match[1].lower(), day, complete=True)


def month_of(text: object) -> pd.Timestamp:
    """Return the first day of a month written YYYY-MM; the end of time for None. Raises: UserError."""
    try:
        return pd.Timestamp.max if text is None else pd.Timestamp(pd.Period(str(text), freq="M").start_time)
    except ValueError:
        raise UserError(
            "published_until must be a month such as 2024-12", f"found {text!r}", "correct it in params.yaml"
        ) from None


def only_file(source: str, folder: Path) -> Path:
    """Return the only CSV file of a source's folder. Raises: UserError when there is none or there are several."""
    files = sorted(path for path in Path(folder).iterdir() if path.name.endswith((".csv", ".csv.gz")))
    if len(files) != 1:
        raise UserError(
            f"source {source!r} must be one file *.csv or *.csv.gz",
            f"{folder} has {', '.join(path.name for path in files) or 'none'}",
            "ingest the source again",
        )
    return files[0]


def read_results(
    source: str,
    folder: Path,
    columns: Sequence[str],
    typed: Mapping[str, Typed],
    until: pd.Timestamp,
) -> Results:
    """Read a dump and keep the rows that are results published until the month `until`.

    `typed` maps a name to what must give it. Rows that repeat another one in all but the identifier are folded into it.

    Raises: UserError when the file is not a whole table with these columns, or no row of it is a result.
    """
    path = only_file(source, folder)
    rows = read_dump(source, path, columns)
    quarantine = Quarantine(source, path.name, rows.rejections)
    wanted = {**typed, "published_month": ("Published", parse_month, "date_impossible")}
    values = {
        name: parse_column(rows.frame[column], parse)["value"].rename(name)
        for name, (column, parse, _) in wanted.items()
    }
    identity = parse_column(rows.frame["Disclosure"], parse_identity)
    frame = rows.frame.rename(columns={"line": "line_in_file"}).assign(
        **values, result_id=identity["result_id"], arrival_day=pd.to_datetime(identity["arrival_day"])
    )
    frame["published_month"] = pd.to_datetime(frame["published_month"])
    after = frame["published_month"] > until
    # Counted without the later rows, so that every snapshot of the dump gives the same lines.
    frame = frame.assign(line=frame["line_in_file"] - after.cumsum())[~after]

    reasons = {name: (column, reason) for name, (column, _, reason) in wanted.items()}
    reasons["result_id"] = ("Disclosure", "no_result_id")
    missing = pd.DataFrame({name: frame[name].isna() for name in reasons}, index=frame.index)
    frame = reject_defects(frame, quarantine, missing, reasons)
    texts = [column for column in columns if column != "Disclosure"]
    repeated = frame["result_id"].duplicated()
    frame = quarantine.reject(frame, repeated, "duplicate_result_id", frame["result_id"].astype("str"))
    frame = frame.sort_values("result_id", kind="stable")
    identical = frame.duplicated(texts)
    rows_in = rows.rows_in - int(after.sum())
    results = Results(frame[~identical].copy(), quarantine, rows_in, int(after.sum()), int(identical.sum()))
    results.refuse_none(frame)
    return results


def reject_impossible_counts(frame: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Quarantine rows whose cores, chips and nodes do not make machines. Shapes: columns cores, chips, nodes."""
    per_chip = frame["cores"] / frame["chips"].replace(0, np.nan)
    whole = (per_chip % 1 == 0) & (frame["chips"] % 1 == 0) & (frame["nodes"] % 1 == 0) & (frame["nodes"] >= 1)
    possible = whole & per_chip.between(1, MAX_CORES_PER_CHIP) & frame["chips"].between(1, _MAX_CHIPS)
    text = (
        frame["cores"].map("{:g} cores, ".format)
        + frame["chips"].map("{:g} chips, ".format)
        + frame["nodes"].map("{:g} nodes".format)
    )
    return results.reject(frame, ~possible, "impossible_counts", text)


def within_bounds(source: str, frame: pd.DataFrame, columns: Sequence[Column], quarantine: Quarantine) -> pd.DataFrame:
    """Quarantine rows with a value outside its column's bounds, naming the first such column."""
    bad = out_of_bounds(build_table(source, frame, columns)).set_axis(frame.index, axis=0)
    wrong = bad.any(axis=1)
    detail = pd.Series("", index=frame.index, dtype="str")
    first = bad[wrong].idxmax(axis=1)
    for row in first.index:
        name = str(first[row])
        detail[row] = f"{name}={frame.at[row, name]!s}"
    return quarantine.reject(frame, wrong, "out_of_bounds", detail)
