"""Screening of the CPU2017 dump: text rows to typed rows, and the reasons to quarantine a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from perfcast.data.parsing.distinct_texts import Parsed, map_distinct, parse_column
from perfcast.data.parsing.scalars import Scalar, parse_disclosure, parse_month, parse_number
from perfcast.data.parsing.text_normalization import is_stated, normalize
from perfcast.data.strict_csv import CsvRows, Rejection

RAW_COLUMNS = (
    "Benchmark",
    "Hardware Vendor",
    "System",
    "Peak Result",
    "Base Result",
    "Energy Base Result",
    "# Cores",
    "# Chips",
    "# Enabled Threads Per Core",
    "Processor",
    "Processor MHz",
    "CPU(s) Orderable",
    "Parallel",
    "Base Pointer Size",
    "Peak Pointer Size",
    "1st Level Cache",
    "2nd Level Cache",
    "3rd Level Cache",
    "Other Cache",
    "Memory",
    "Storage",
    "Operating System",
    "File System",
    "Compiler",
    "HW Avail",
    "SW Avail",
    "Tested By",
    "Test Sponsor",
    "Test Date",
    "Published",
    "Updated",
    "Disclosure",
)
"""Required columns of the dump; the others (license number, peak energy) are unused."""

SUITES = {
    "CINT2017rate": "CINT2017rate",
    "CFP2017rate": "CFP2017rate",
    "CINT2017": "CINT2017speed",
    "CFP2017": "CFP2017speed",
    "CINT2017speed": "CINT2017speed",
    "CFP2017speed": "CFP2017speed",
}
"""The dump's `Benchmark` -> suite; the dump omits the word speed."""

FIRST_MONTH = pd.Timestamp(2017, 6, 1)
"""Month in which SPEC released CPU2017; no result is older."""

MAX_CORES_PER_CHIP = 512
THREADS_PER_CORE = (1, 2, 4, 8)
_MANY_DEFECTS = 2
_SHOWN = 120


class Quarantine:
    """Collector of the rejected rows of one file; its frames have the column `line_in_file` and a unique index."""

    def __init__(self, source: str, file: str, rejections: tuple[Rejection, ...] = ()) -> None:
        self.source, self.file, self.rejections = source, file, list(rejections)

    def reject(self, frame: pd.DataFrame, bad: pd.Series, reason: str, detail: pd.Series) -> pd.DataFrame:
        """Quarantine the rows where `bad` holds, and return the others.

        Shapes: `bad` has the frame's index; the index of `detail` contains at least the bad rows.
        """
        if not bad.any():  # also without rows: then `bad` is not boolean and would select columns
            return frame
        lines = frame.loc[bad, "line_in_file"]
        self.rejections += [
            Rejection(self.source, self.file, int(line), reason, str(text)[:_SHOWN])
            for line, text in zip(lines, detail.loc[lines.index], strict=True)
        ]
        return frame[~bad]


@dataclass(frozen=True)
class Screened:
    """Results published until the last month, in file order.

    Shapes: `frame` has RAW_COLUMNS as text and the typed columns suite, base_score, peak_score, cores, chips,
    threads_per_core, base_mhz, result_id, arrival_day, published_month, disclosure_parsed, line_in_file, line.
    `after` counts rows published later.
    """

    frame: pd.DataFrame
    after: int


def _parse_suite(text: str) -> Scalar[str]:
    return Scalar(SUITES.get(normalize(text)))


def _parse_required(raw: pd.DataFrame) -> pd.DataFrame:
    """Add the typed required columns to the raw frame; a value is missing where its text is invalid."""
    number = partial(parse_number, low=0)
    parsers: dict[str, tuple[str, Callable[[str], Parsed]]] = {
        "suite": ("Benchmark", _parse_suite),
        "base_score": ("Base Result", number),
        "peak_score": ("Peak Result", number),
        "cores": ("# Cores", number),
        "chips": ("# Chips", number),
        "threads_per_core": ("# Enabled Threads Per Core", number),
        "base_mhz": ("Processor MHz", number),
        "published_month": ("Published", parse_month),
    }
    values = {name: parse_column(raw[column], parse, ["value"])["value"] for name, (column, parse) in parsers.items()}
    disclosure = parse_column(raw["Disclosure"], parse_disclosure, ["result_id", "arrival_day", "complete"])
    values["published_month"] = pd.to_datetime(values["published_month"])
    return raw.assign(
        **values,
        result_id=disclosure["result_id"],
        arrival_day=pd.to_datetime(disclosure["arrival_day"]),
        disclosure_parsed=disclosure["complete"],
    )


_DEFECTS = {
    "suite": ("Benchmark", "unknown_suite"),
    "base_score": ("Base Result", "score_not_numeric"),
    "peak_score": ("Peak Result", "score_not_numeric"),
    "cores": ("# Cores", "count_not_numeric"),
    "chips": ("# Chips", "count_not_numeric"),
    "threads_per_core": ("# Enabled Threads Per Core", "count_not_numeric"),
    "base_mhz": ("Processor MHz", "count_not_numeric"),
    "published_month": ("Published", "date_impossible"),
    "result_id": ("Disclosure", "no_result_id"),
}
"""Typed column -> its raw column, and the reason where only that column is invalid."""


def screen_rows(rows: CsvRows, quarantine: Quarantine, until: pd.Timestamp) -> Screened:
    """Return the results published until the month `until`, and quarantine rows that are not results.

    `line` counts the lines of the file without the rows published later, so every snapshot gives the same lines.
    """
    frame = _parse_required(rows.frame.rename(columns={"line": "line_in_file"}))
    after = frame["published_month"] > until
    frame = frame.assign(line=frame["line_in_file"] - after.cumsum())[~after]
    frame = reject_untyped(frame, quarantine, _DEFECTS)

    early = frame["published_month"] < FIRST_MONTH
    frame = quarantine.reject(frame, early, "date_impossible", "Published " + _to_texts(frame[early], "Published"))
    scoreless = frame["base_score"] == 0
    frame = quarantine.reject(frame, scoreless, "no_score", _to_texts(frame[scoreless], "result_id"))
    impossible = ~_mark_possible_counts(frame)
    frame = quarantine.reject(frame, impossible, "impossible_counts", _describe_counts(frame[impossible]))
    repeated = _mark_repeated(frame)
    frame = quarantine.reject(frame, repeated, "duplicate_result_id", _to_texts(frame[repeated], "result_id"))
    return Screened(frame, int(after.sum()))


def _mark_repeated(frame: pd.DataFrame) -> pd.Series:
    """Mark rows that repeat an earlier identifier without being whole copies of that row."""
    # Copies share their identifier, so only rows with a repeated one are compared.
    shared = frame[frame["result_id"].duplicated(keep=False)]
    again = shared["result_id"].duplicated() & ~shared.duplicated(list(RAW_COLUMNS))
    return again.reindex(frame.index, fill_value=False)


def reject_untyped(frame: pd.DataFrame, quarantine: Quarantine, reasons: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """Quarantine rows that lack a required value; several missing values mean shifted columns.

    A peak score that is not stated is no defect.

    Args:
        frame: Rows with raw and typed columns.
        quarantine: Collector of the rejected rows.
        reasons: Typed column -> its raw column, and the reason where only that column is invalid.
    """
    missing = pd.DataFrame({name: frame[name].isna() for name in reasons}, index=frame.index)
    missing["peak_score"] &= map_distinct(frame[reasons["peak_score"][0]], is_stated)
    return reject_defects(frame, quarantine, missing, reasons)


def reject_defects(
    frame: pd.DataFrame, quarantine: Quarantine, missing: pd.DataFrame, reasons: Mapping[str, tuple[str, str]]
) -> pd.DataFrame:
    """Quarantine rows with an invalid required text; two such texts mean shifted columns.

    `reasons` maps a typed column to its raw column, and to the reason where only that column is invalid.

    Shapes: `missing` has a boolean column per key of `reasons`, on the frame's index.
    """
    defects = missing.sum(axis=1)
    raw_columns = [column for column, _ in reasons.values()]
    detail = pd.Series("", index=frame.index[defects > 0], dtype="object")
    for row in detail.index:
        wrong = [column for column, bad in zip(raw_columns, missing.loc[row], strict=True) if bad]
        detail[row] = ", ".join(f"{column}={normalize(str(frame.at[row, column]))!r}" for column in wrong)
    shifted = defects >= _MANY_DEFECTS
    single = {reason: pd.Series(False, index=frame.index) for _, reason in reasons.values()}
    for name, (_, reason) in reasons.items():
        single[reason] |= missing[name] & ~shifted
    valid_rows = quarantine.reject(frame, shifted, "shifted_columns", detail)
    for reason, bad in single.items():
        valid_rows = quarantine.reject(valid_rows, bad[valid_rows.index], reason, detail)
    return valid_rows


def _mark_possible_counts(frame: pd.DataFrame) -> pd.Series:
    cores, chips = frame["cores"], frame["chips"]
    per_chip = cores / chips.replace(0, np.nan)
    whole = (per_chip % 1 == 0) & (chips % 1 == 0)
    return whole & per_chip.between(1, MAX_CORES_PER_CHIP) & frame["threads_per_core"].isin(THREADS_PER_CORE)


def _describe_counts(frame: pd.DataFrame) -> pd.Series:
    cores, chips, threads = (_to_texts(frame, name) for name in ("# Cores", "# Chips", "# Enabled Threads Per Core"))
    text: pd.Series = cores + " cores, " + chips + " chips, " + threads + " threads per core"
    return text


def _to_texts(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return a column as plain text, not coded."""
    return frame[name].astype("str")
