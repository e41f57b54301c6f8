"""The four files of spec_cpu2017_detail: their columns, typed rows, and the reasons to quarantine a row.

The memory visible to the system identifies a single machine by its last digits, like a serial number, so it is no
feature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from perfcast.data.strict_csv import read_rows
from perfcast.domains.servers.data_tables import read_columns, read_table
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine
from perfcast.domains.servers.datasets.spec_cpu.spec_dump import MAX_CORES_PER_CHIP, THREADS_PER_CORE
from perfcast.domains.servers.parsing.distinct_texts import parse_column
from perfcast.domains.servers.parsing.scalars import parse_disclosure, parse_number
from perfcast.domains.servers.parsing.text_normalization import is_stated
from perfcast.schema.table import Column, Kind, Role

_LISTED = read_table(__package__, "benchmarks.csv")
SUITES = {row["file"]: row["suite"] for row in _LISTED}
"""File -> suite, as spec_cpu2017 names it."""

BENCHMARKS = {file: tuple(row["benchmark"] for row in _LISTED if row["file"] == file) for file in SUITES}
"""File -> score columns. The `t_` columns of the file, not listed here, are the same scores in seconds."""

TARGETS = tuple(benchmark for file in SUITES for benchmark in BENCHMARKS[file])

_SECONDS = "seconds of the base run: reference seconds x copies / score, equivalent to the score"
_AGGREGATE = "a mean, peak result, energy or time: computed from the scores or measured with them"
ENCODE_THE_RESULT = (
    (r"^t_", _SECONDS),
    (r"^\d{3}\.", "score of a benchmark: a target, or a peak score measured with it"),
    (r"score|result|mean|peak|energy|watt|second|runtime|specrate|specspeed", _AGGREGATE),
)
"""Pattern of a name in lower case -> the reason why such a column must not be a feature."""

OMITTED = {
    "os_name": "parsed from the operating system text, as in spec_cpu2017",
    "os_vid": "parsed from the operating system text, as in spec_cpu2017",
    "arch": "parsed from the operating system or processor text, as in spec_cpu2017",
    **{f"t_{benchmark}": _SECONDS for benchmark in TARGETS},
}
"""Column of the files that the table omits -> the reason. Other unused columns are reported as unknown."""

_SCORE = "base score of the benchmark: reference seconds x copies / seconds"
_TARGETS = tuple(
    Column(name, Kind.NUMERICAL, Role.TARGET, "workload", "ratio to reference", _SCORE, 0.01, 1e6) for name in TARGETS
)
COLUMNS = (*read_columns(__package__, "columns.csv", "detail"), *_TARGETS)
"""Standard columns in table order: those of spec_cpu2017 that do not describe its score, further ones, the targets."""

SOURCE = "spec_cpu2017_detail"
TEXTS = (
    *("vendor", "hardware_vendor", "model_name", "test_sponsor", "os", "compiler"),
    *("parallel", "file_system", "file"),
)
NUMBERS = {row["raw"]: row["names"] for row in read_table(__package__, "dump_columns.csv") if row["tables"] == "detail"}
"""Column of the files -> typed column; `mem_channels` counts DIMMs, `channel_kb` is the size of a DIMM."""

_COUNTS = ("threads_per_core", "cores_per_socket", "sockets", "mem_channels", "threads_or_copies")
_NOT_FINITE = ("inf", "infinity", "nan")
_parse_number = partial(parse_number, low=0)


@dataclass(frozen=True)
class Detail:
    """Results of the four files.

    Shapes: `frame` has TEXTS as text, the typed columns of NUMBERS, TARGETS (NaN outside the row's suite), suite,
    result_id, arrival_day, source_file, line and line_in_file, ordered by result_id. `quarantines` maps each file to
    its rejected rows, `unknown` maps it to its unknown columns. `identical` counts rows folded into a row that differs
    in its identifier alone.
    """

    frame: pd.DataFrame
    quarantines: dict[str, Quarantine]
    unknown: dict[str, list[str]]
    rows_in: int
    identical: int


def read_detail(folder: Path) -> Detail:
    """Read the four files. Raises: UserError when a file is absent, not a whole table, or lacks a column."""
    frames, quarantines, unknown, rows_in = [], {}, {}, 0
    for name in SUITES:
        columns = [*TEXTS, *NUMBERS, *BENCHMARKS[name]]
        rows = read_rows(SOURCE, folder / name, columns)
        rows_in += rows.rows_in
        quarantines[name] = Quarantine(SOURCE, name, rows.rejections)
        unknown[name] = [column for column in rows.header if column not in {*columns, *OMITTED}]
        frames.append(_screen_rows(rows.frame, name, quarantines[name]))
    frame = pd.concat(frames, ignore_index=True).sort_values("result_id", kind="stable", ignore_index=True)
    twice = frame["result_id"].duplicated()
    for name, quarantine in quarantines.items():
        quarantine.reject(frame, twice & (frame["source_file"] == name), "duplicate_result_id", frame["result_id"])
    frame = frame[~twice]
    measured = ["suite", *TEXTS, *NUMBERS.values(), *TARGETS]
    identical = frame.duplicated([column for column in measured if column != "file"])
    return Detail(frame[~identical].reset_index(drop=True), quarantines, unknown, rows_in, int(identical.sum()))


def _screen_rows(raw: pd.DataFrame, name: str, quarantine: Quarantine) -> pd.DataFrame:
    """Parse the typed columns of one file, and quarantine rows that are not results."""
    benchmarks = list(BENCHMARKS[name])
    disclosure = parse_column(
        raw["file"].str.strip().str.removesuffix(".csv"), parse_disclosure, ["result_id", "arrival_day"]
    )
    frame = raw[list(TEXTS)].assign(
        **{to: parse_column(raw[column], _parse_number)["value"] for column, to in NUMBERS.items()},
        **{score: parse_column(raw[score], _parse_number)["value"] for score in benchmarks},
        **{other: float("nan") for other in TARGETS if other not in benchmarks},
        suite=SUITES[name],
        result_id=disclosure["result_id"],
        arrival_day=pd.to_datetime(disclosure["arrival_day"]),
        source_file=name,
        line=raw["line"],
        line_in_file=raw["line"],
    )
    frame = quarantine.reject(frame, frame["result_id"].isna(), "no_result_id", frame["file"])
    frame = quarantine.reject(frame, ~frame["model_name"].map(is_stated), "no_processor", frame["file"])

    texts = raw[benchmarks]
    infinite = texts.apply(lambda column: column.str.strip().str.lstrip("+-").str.casefold().isin(_NOT_FINITE))
    frame = _reject_cells(frame, infinite, "score_not_finite", texts, quarantine)
    frame = _reject_cells(frame, frame[benchmarks].isna(), "score_not_numeric", texts, quarantine)
    frame = _reject_cells(frame, frame[benchmarks] == 0, "no_score", texts, quarantine)

    stated = raw[list(NUMBERS)].apply(lambda column: column.map(is_stated))
    missing = frame[list(NUMBERS.values())].isna().set_axis(list(NUMBERS), axis=1)
    frame = _reject_cells(frame, missing & stated.loc[frame.index], "count_not_numeric", raw[list(NUMBERS)], quarantine)
    return _reject_cells(frame, _mark_impossible_counts(frame), "impossible_counts", raw[list(_COUNTS)], quarantine)


def _reject_cells(
    frame: pd.DataFrame, bad: pd.DataFrame, reason: str, texts: pd.DataFrame, quarantine: Quarantine
) -> pd.DataFrame:
    """Quarantine the rows with a bad cell; the detail names the first one."""
    bad = bad.loc[frame.index]
    wrong = bad.any(axis=1)
    detail = pd.Series("", index=frame.index, dtype="str")
    first = bad[wrong].idxmax(axis=1)
    for row in first.index:
        column = str(first[row])
        detail[row] = f"{column}={texts.at[row, column]!r}"
    return quarantine.reject(frame, wrong, reason, detail)


def _mark_impossible_counts(frame: pd.DataFrame) -> pd.DataFrame:
    """Mark the impossible counts; a missing count is possible."""
    counts = frame[[NUMBERS[column] for column in _COUNTS]].set_axis(list(_COUNTS), axis=1)
    bad = counts.notna() & ~((counts % 1 == 0) & (counts > 0))
    bad["cores_per_socket"] |= counts["cores_per_socket"] > MAX_CORES_PER_CHIP
    bad["threads_per_core"] |= counts["threads_per_core"].notna() & ~counts["threads_per_core"].isin(THREADS_PER_CORE)
    return bad


def explain_forbidden(name: str) -> str:
    """Return the reason why a column of this name must not be a feature, "" for an allowed name."""
    return next((why for pattern, why in ENCODE_THE_RESULT if re.search(pattern, name.casefold())), "")


def refuse_leaks(columns: Iterable[Column]) -> None:
    """Reject features named like a result. Raises: ValueError with the first such column and the reason."""
    for column in columns:
        if column.role is Role.FEATURE and (why := explain_forbidden(column.name)):
            raise ValueError(f"column {column.name!r} must not be a feature: {why}")
