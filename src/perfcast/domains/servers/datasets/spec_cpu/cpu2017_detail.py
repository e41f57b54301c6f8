"""SPEC CPU2017 results by benchmark: one row per result; the targets are the base scores of its suite.

The detail files lack dates and memory texts, and truncate the texts of compiler and operating system, so the dump of
published results is joined by the result's identifier; its scores reach no feature. The memory visible to the system
identifies a single machine by its last digits, like a serial number, so it is no feature either.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame, read_rows
from perfcast.domains.servers.data_tables import read_columns, read_table
from perfcast.domains.servers.datasets.spec_cpu import repairs as repair
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import DUMP
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine, find_only_file, read_dump
from perfcast.domains.servers.datasets.spec_cpu.spec_dump import (
    MAX_CORES_PER_CHIP,
    THREADS_PER_CORE,
    describe_out_of_bounds,
    name_submissions,
    summarize_quality,
)
from perfcast.domains.servers.parsing.distinct_texts import parse_column
from perfcast.domains.servers.parsing.memory import snap_to_grade
from perfcast.domains.servers.parsing.scalars import parse_disclosure, parse_month, parse_number
from perfcast.domains.servers.parsing.text_normalization import is_stated
from perfcast.domains.servers.processors.cpu_models import join_processors
from perfcast.domains.servers.processors.cpu_names import cpu_model_id
from perfcast.schema.table import Column, Kind, Role, build_table
from perfcast.utils.errors import UserError

_LISTED = read_table(__package__, "benchmarks.csv")
SUITES = {row["file"]: row["suite"] for row in _LISTED}
"""File -> suite, as spec_cpu2017 names it."""

BENCHMARKS = {file: tuple(row["benchmark"] for row in _LISTED if row["file"] == file) for file in SUITES}
"""File -> score columns. The `t_` columns of the file, not listed here, are the same scores in seconds."""

TARGETS = tuple(benchmark for file in SUITES for benchmark in BENCHMARKS[file])

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
_read_number = partial(parse_number, low=0)
_SCORES = ("Base Result", "Peak Result", "Energy Base Result")
_IDENTIFIER = r"(cpu2017-\d{8}-\d{5})"
_FROM_DETAIL = {"Hardware Vendor": "hardware_vendor", "Test Sponsor": "test_sponsor", "Parallel": "parallel"}
_LONGER_IN_DUMP = {"Operating System": "os", "Compiler": "compiler", "File System": "file_system"}
_FILLED = {
    "chips": "# Chips",
    "threads_per_core": "# Enabled Threads Per Core",
    "base_mhz": "Processor MHz",
    "cores": "# Cores",
}


def read_detail(folder: Path) -> tuple[pd.DataFrame, dict[str, Quarantine], int, int]:
    """Read the four files.

    Returns:
        Results, with TEXTS as text, the typed columns of NUMBERS, TARGETS (NaN outside the row's suite), suite,
        result_id, arrival_day, source_file, line and line_in_file, ordered by result_id; the rejected rows of each
        file; the number of rows; and of those folded into a row that differs in its identifier alone.

    Raises:
        UserError: A file is absent, not a whole table, or lacks a column.
    """
    frames, quarantines, rows_in = [], {}, 0
    for name in SUITES:
        columns = [*TEXTS, *NUMBERS, *BENCHMARKS[name]]
        rows = read_rows(SOURCE, folder / name, columns)
        rows_in += rows.rows_in
        quarantines[name] = Quarantine(SOURCE, name, rows.rejections)
        frames.append(_screen_rows(rows.frame, name, quarantines[name]))
    frame = pd.concat(frames, ignore_index=True).sort_values("result_id", kind="stable", ignore_index=True)
    twice = frame["result_id"].duplicated()
    for name, quarantine in quarantines.items():
        quarantine.reject(frame, twice & (frame["source_file"] == name), "duplicate_result_id", frame["result_id"])
    frame = frame[~twice]
    measured = ["suite", *TEXTS, *NUMBERS.values(), *TARGETS]
    identical = frame.duplicated([column for column in measured if column != "file"])
    return frame[~identical].reset_index(drop=True), quarantines, rows_in, int(identical.sum())


def _screen_rows(raw: pd.DataFrame, name: str, quarantine: Quarantine) -> pd.DataFrame:
    """Parse the typed columns of one file, and quarantine rows that are not results."""
    benchmarks = list(BENCHMARKS[name])
    disclosure = parse_column(
        raw["file"].str.strip().str.removesuffix(".csv"), parse_disclosure, ["result_id", "arrival_day"]
    )
    frame = raw[list(TEXTS)].assign(
        **{to: parse_column(raw[column], _read_number)["value"] for column, to in NUMBERS.items()},
        **{score: parse_column(raw[score], _read_number)["value"] for score in benchmarks},
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

    scoreless = ~(frame[benchmarks] > 0).all(axis=1)
    frame = quarantine.reject(frame, scoreless, "no_score", frame["file"])
    # a missing count is possible
    counts = frame[[NUMBERS[column] for column in _COUNTS]]
    bad = counts.notna() & ~((counts % 1 == 0) & (counts > 0))
    bad["cores_per_socket"] |= counts["cores_per_socket"] > MAX_CORES_PER_CHIP
    bad["threads_per_core"] |= counts["threads_per_core"].notna() & ~counts["threads_per_core"].isin(THREADS_PER_CORE)
    return quarantine.reject(frame, bad.any(axis=1), "impossible_counts", frame["file"])


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the four files, and join the dump of published results where available.

    There are no options.

    Raises:
        UserError: A file is absent, is not a whole table or lacks a column, or no row is a result.
    """
    del options
    frame, quarantines, rows_in, identical = read_detail(raw[SOURCE])
    if frame.empty:
        raise UserError(
            f"{raw[SOURCE]} must hold a usable result",
            f"none of {rows_in} rows is usable",
            "ingest the source again",
        )
    texts, counts = read_published(raw.get(DUMP.source), frame)
    joined = {"rows": len(frame), **counts}
    # The copy consolidates the blocks of a frame that grew by columns; later steps are slow without it.
    frame = join_processors(join_published(frame, texts)).copy()
    repairs = _repair_rows(frame)
    frame = frame.assign(
        source=SOURCE,
        file=frame["source_file"],
        cpu_model_id=frame["cpu_model"].map(cpu_model_id),
        submission_id=name_submissions(frame),
    )
    wrong, detail_of_value = describe_out_of_bounds(frame, COLUMNS)
    for name, quarantine in quarantines.items():
        quarantine.reject(frame, wrong & (frame["source_file"] == name), "out_of_bounds", detail_of_value)
    frame = frame[~wrong]
    table = build_table(SOURCE, frame, COLUMNS)
    return Standardized(
        table,
        build_rejected_frame(each for quarantine in quarantines.values() for each in quarantine.rejections),
        rows_in,
        {"identical_but_for_result_id": identical},
        {**summarize_quality(frame, table, repairs.counts), "joined": joined},
    )


def _repair_rows(frame: pd.DataFrame) -> repair.Repairs:
    """Repair as spec_cpu2017 does; these files lack peak and energy results."""
    repairs = repair.Repairs()
    stated = frame["max_turbo_mhz"].isna() & frame["max_mhz"].notna()
    repairs.put(frame, "max_turbo_mhz", stated, frame["max_mhz"], "turbo_as_stated")
    frame["cores_per_chip_of_cpu_model"] = repair.find_modal_cores(frame)
    repair.repair_cores(frame, repairs)
    frame["q_cores_mismatch"] = frame["q_cores_mismatch"].where(frame["cores_per_chip_stated"].notna(), 0.0)
    repair.repair_caches(frame, repairs)
    repair.repair_memory(frame, repairs)
    repair.repair_dates(frame, repairs)
    repair.repair_unstated(frame, repairs)
    return repairs


def read_published(folder: Path | None, frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """Look up every result in the dump; without a dump no result matches. A row of another suite does not match.

    Returns:
        Texts of DUMP.raw_columns, "" for a result that the dump lacks; and how many results match, and how many do not
        because of their suite.

    Raises:
        UserError: The folder does not hold exactly one dump, or the dump is not a whole table.
    """
    if folder is None:
        none = pd.DataFrame("", index=frame.index, columns=list(DUMP.raw_columns), dtype="str")
        return none, {"matched": 0, "found_in_another_suite": 0}
    dump = read_dump(DUMP.source, find_only_file(DUMP.source, folder), DUMP.raw_columns).frame
    dump["result_id"] = dump["Disclosure"].str.extract(_IDENTIFIER, expand=False)
    dump = dump.dropna(subset="result_id").drop_duplicates("result_id").set_index("result_id")
    texts = dump[list(DUMP.raw_columns)].reindex(frame["result_id"]).set_axis(frame.index, axis=0)
    suite = texts["Benchmark"].str.strip().map(DUMP.suites)
    other = suite.notna() & (suite != frame["suite"])
    matched = suite.notna() & ~other
    texts.loc[~matched] = ""
    return texts.astype("str"), {"matched": int(matched.sum()), "found_in_another_suite": int(other.sum())}


def join_published(frame: pd.DataFrame, texts: pd.DataFrame) -> pd.DataFrame:
    """Add the standard columns of the texts, from the dump where it has the result.

    The detail file wins where both state a quantity: its values were read from the machine, and differing core counts
    of the dump are typing errors.
    """
    base = parse_column(texts["Base Result"], parse_number)["value"]
    stated = {name: parse_column(texts[column], parse_number)["value"] for name, column in _FILLED.items()}
    month = pd.to_datetime(parse_column(texts["Published"], parse_month)["value"])
    merged_texts = texts.assign(
        **dict.fromkeys(_SCORES, ""),
        **{column: frame[name] for column, name in _FROM_DETAIL.items()},
        **{
            column: texts[column].where(texts[column].map(is_stated), frame[name])
            for column, name in _LONGER_IN_DUMP.items()
        },
        Processor=frame["vendor"] + " " + frame["model_name"],
    )
    parsed = DUMP.parse(merged_texts.assign(suite=frame["suite"]))
    others = frame.drop(columns=list(TEXTS))
    # The copy consolidates the blocks of a frame that grew by columns; later steps are slow without it.
    joined = pd.concat([others, parsed[[column for column in parsed if column not in others]]], axis=1).copy()
    joined = joined.assign(cores=frame["chips"] * frame["cores_per_socket"])
    joined = joined.assign(
        **{name: joined[name].fillna(values) for name, values in stated.items()},
        published_month=month.fillna(frame["arrival_day"].dt.to_period("M").dt.to_timestamp()),
        system_stem=parsed["system_stem"].where(parsed["system_stem"] != ""),
        q_withdrawn=(base == 0).astype("float64"),
        **_combine_memory(frame, parsed),
        l3_mb_per_chip=frame["l3_kb"].div(1024).fillna(parsed["l3_mb_per_chip"]),
        **{
            name: frame[name].fillna(parsed[name]) for name in ("l1d_kb", "l1i_kb", "l2_kb_per_core", "storage_gb")
        },
    )  # fmt: skip
    return joined


def _combine_memory(frame: pd.DataFrame, parsed: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the published capacity, else DIMMs x size; DIMMs as counted on the machine; rates as JEDEC grades."""
    dimm_gb = (frame["dimm_kb"] / 1024**2).fillna(parsed["dimm_gb"])
    count = frame["dimm_count"].fillna(parsed["dimm_count"])
    graded = frame["mem_data_rate"].map(snap_to_grade, na_action="ignore").astype("float64")
    rated = graded.fillna(parsed["mem_rated_mts"])
    return {
        "dimm_gb": dimm_gb,
        "dimm_count": count,
        "mem_sum_gb": count * dimm_gb + parsed["hbm_gb"].fillna(0),
        "mem_total_gb": parsed["mem_total_gb"].fillna(count * dimm_gb),
        "mem_os_gb": frame["mem_os_kb"] / 1024**2,
        "mem_rated_mts": rated,
        "mem_eff_mts": parsed["mem_running_mts"].fillna(rated),
    }
