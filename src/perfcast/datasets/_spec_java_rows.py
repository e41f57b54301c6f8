"""Screening of the Java benchmarks' dumps: typed results, and the reasons to quarantine a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.datasets._spec_common import find_only_file
from perfcast.datasets._spec_cpu2017_read import read_dump
from perfcast.datasets._spec_cpu2017_rows import MAX_CORES_PER_CHIP, Quarantine, reject_defects
from perfcast.errors import UserError
from perfcast.parsing.coverage import Parsed, parse_column
from perfcast.parsing.scalars import Scalar, parse_month
from perfcast.parsing.text import compile_pattern, normalize

_NUMBER = compile_pattern(r"^\d{1,12}(?:\.\d{1,12})?(?:e\+?\d{1,2})?$")
_THOUSANDS = compile_pattern(r"(?<=\d),(?=\d{3}(?:\D|$))")
_IDENTIFIER = compile_pattern(r"\b((?:power_ssj2008|jbb2015)-(\d{4})(\d{2})(\d{2})-\d{5})\b")
_MAX_CHIPS = 64


Typed = tuple[str, Callable[[str], Parsed], str]
"""Raw column that must give a value, its parser, and the reason where it does not."""


@dataclass(frozen=True)
class Identity:
    """Identifier of a published result, and the day of its submission from the identifier."""

    result_id: str | None = None
    arrival_day: date | None = None
    complete: bool = False


@dataclass(frozen=True)
class Results:
    """Results published until the last month, ordered by identifier.

    Shapes: `frame` has the raw columns as text, the typed columns, result_id, arrival_day, published_month, line and
    line_in_file. `after` counts the rows published later, `rows_in` all others.
    """

    frame: pd.DataFrame
    quarantine: Quarantine
    rows_in: int
    after: int
    identical: int

    def reject(self, frame: pd.DataFrame, bad: pd.Series, reason: str, detail: pd.Series) -> pd.DataFrame:
        """Quarantine the rows where `bad` holds, and return the others. Raises: UserError when none remains."""
        remaining = self.quarantine.reject(frame, bad, reason, detail)
        self.refuse_none(remaining)
        return remaining

    def refuse_none(self, frame: pd.DataFrame) -> None:
        """Reject an empty frame. Raises: UserError when the frame has no row."""
        if frame.empty:
            raise UserError(
                f"{self.quarantine.file} of {self.quarantine.source} must hold a usable result",
                f"of {self.rows_in + self.after} rows {len(self.quarantine.rejections)} are unusable, "
                f"{self.after} too late",
                "check the file, or set published_until later",
            )


def parse_measured(text: str) -> Scalar[float]:
    """Parse a number without sign, such as `1.34723e+06` or `1,024`."""
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


def read_results(
    source: str,
    folder: Path,
    columns: Sequence[str],
    typed: Mapping[str, Typed],
    until: pd.Timestamp,
) -> Results:
    """Read the results of a dump that were published until the month `until`.

    A row that differs from another in its identifier alone is folded into it. `typed` maps a typed column to its raw
    column, parser and reason.

    Raises:
        UserError: The file is not a whole table with these columns, or no row is a result.
    """
    path = find_only_file(source, folder)
    rows = read_dump(source, path, columns)
    quarantine = Quarantine(source, path.name, rows.rejections)
    required = {**typed, "published_month": ("Published", parse_month, "date_impossible")}
    values = {
        name: parse_column(rows.frame[column], parse)["value"].rename(name)
        for name, (column, parse, _) in required.items()
    }
    identity = parse_column(rows.frame["Disclosure"], parse_identity)
    frame = rows.frame.rename(columns={"line": "line_in_file"}).assign(
        **values, result_id=identity["result_id"], arrival_day=pd.to_datetime(identity["arrival_day"])
    )
    frame["published_month"] = pd.to_datetime(frame["published_month"])
    after = frame["published_month"] > until
    # Later rows are not counted, so every snapshot of the dump gives the same lines.
    frame = frame.assign(line=frame["line_in_file"] - after.cumsum())[~after]

    reasons = {name: (column, reason) for name, (column, _, reason) in required.items()}
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
    """Quarantine rows with impossible counts. Shapes: `frame` has the columns cores, chips and nodes."""
    per_chip = frame["cores"] / frame["chips"].replace(0, np.nan)
    whole = (per_chip % 1 == 0) & (frame["chips"] % 1 == 0) & (frame["nodes"] % 1 == 0) & (frame["nodes"] >= 1)
    possible = whole & per_chip.between(1, MAX_CORES_PER_CHIP) & frame["chips"].between(1, _MAX_CHIPS)
    text = (
        frame["cores"].map("{:g} cores, ".format)
        + frame["chips"].map("{:g} chips, ".format)
        + frame["nodes"].map("{:g} nodes".format)
    )
    return results.reject(frame, ~possible, "impossible_counts", text)
