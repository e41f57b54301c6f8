"""SPEC CPU2017 results by benchmark: one row per result; the targets are the base scores of its suite.

The detail files lack dates and memory texts, and truncate the texts of compiler and operating system, so the dump of
published results is joined by the result's identifier. The dump's scores are only compared with the benchmarks'
geometric mean for quality.json; they reach no feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame
from perfcast.domains.servers.datasets.spec_cpu import repairs as repair
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import DUMP
from perfcast.domains.servers.datasets.spec_cpu.detail_files import (
    COLUMNS,
    OMITTED,
    SOURCE,
    TARGETS,
    TEXTS,
    read_detail,
    refuse_leaks,
)
from perfcast.domains.servers.datasets.spec_cpu.dump_file import find_only_file, read_dump
from perfcast.domains.servers.datasets.spec_cpu.dump_quality import summarize_quality
from perfcast.domains.servers.datasets.spec_cpu.spec_dump import describe_out_of_bounds, name_submissions
from perfcast.domains.servers.parsing.distinct_texts import parse_column
from perfcast.domains.servers.parsing.memory import snap_to_grade
from perfcast.domains.servers.parsing.scalars import parse_month, parse_number
from perfcast.domains.servers.parsing.text_normalization import is_stated
from perfcast.domains.servers.processors.catalog import join_catalog
from perfcast.domains.servers.processors.cpu_names import cpu_model_id
from perfcast.schema.table import build_table
from perfcast.utils.errors import UserError

_SCORES = ("Base Result", "Peak Result", "Energy Base Result")
_IDENTIFIER = r"(cpu2017-\d{8}-\d{5})"
_ROUNDING = 0.005
"""Largest relative rounding error of published scores, which have three digits."""

_FROM_DETAIL = {"Hardware Vendor": "hardware_vendor", "Test Sponsor": "test_sponsor", "Parallel": "parallel"}
_LONGER_IN_DUMP = {"Operating System": "os", "Compiler": "compiler", "File System": "file_system"}
_FILLED = {
    "chips": "# Chips",
    "threads_per_core": "# Enabled Threads Per Core",
    "base_mhz": "Processor MHz",
    "cores": "# Cores",
}


@dataclass(frozen=True)
class Published:
    """Texts of the dump for every result. Shapes: `texts` has DUMP.raw_columns, "" for a result that the dump lacks."""

    texts: pd.DataFrame
    matched: pd.Series
    other_suite: int


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the four files, and join the dump of published results and the catalog where available.

    There are no options.

    Raises:
        UserError: A file is absent, is not a whole table or lacks a column, or no row is a result.
    """
    del options
    detail = read_detail(raw[SOURCE])
    if detail.frame.empty:
        raise UserError(
            f"{raw[SOURCE]} must hold a usable result",
            f"none of {detail.rows_in} rows is usable",
            "ingest the source again",
        )
    frame, joined = join_published(detail.frame, read_published(raw.get(DUMP.source), detail.frame))
    # The copy consolidates the blocks of a frame that grew by columns; later steps are slow without it.
    frame = join_catalog(frame, raw).copy()
    repairs = _repair_rows(frame)
    frame = frame.assign(
        source=SOURCE,
        file=frame["source_file"],
        cpu_model_id=frame["cpu_model"].map(cpu_model_id),
        submission_id=name_submissions(frame),
    )
    wrong, detail_of_value = describe_out_of_bounds(frame, COLUMNS)
    for name, quarantine in detail.quarantines.items():
        quarantine.reject(frame, wrong & (frame["source_file"] == name), "out_of_bounds", detail_of_value)
    frame = frame[~wrong]
    refuse_leaks(COLUMNS)
    table = build_table(SOURCE, frame, COLUMNS)
    return Standardized(
        table,
        build_rejected_frame(each for quarantine in detail.quarantines.values() for each in quarantine.rejections),
        detail.rows_in,
        {"identical_but_for_result_id": detail.identical},
        {
            **summarize_quality(frame, table, repairs.counts),
            "joined": joined,
            "columns_left_out": OMITTED,
            "columns_unknown": {name: columns for name, columns in detail.unknown.items() if columns},
        },
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


def read_published(folder: Path | None, frame: pd.DataFrame) -> Published:
    """Look up every result in the dump; without a dump no result matches. A row of another suite does not match.

    Raises:
        UserError: The folder does not hold exactly one dump, or the dump is not a whole table.
    """
    if folder is None:
        none = pd.DataFrame("", index=frame.index, columns=list(DUMP.raw_columns), dtype="str")
        return Published(none, pd.Series(False, index=frame.index), 0)
    dump = read_dump(DUMP.source, find_only_file(DUMP.source, folder), DUMP.raw_columns).frame
    dump["result_id"] = dump["Disclosure"].str.extract(_IDENTIFIER, expand=False)
    dump = dump.dropna(subset="result_id").drop_duplicates("result_id").set_index("result_id")
    texts = dump[list(DUMP.raw_columns)].reindex(frame["result_id"]).set_axis(frame.index, axis=0)
    suite = texts["Benchmark"].str.strip().map(DUMP.suites)
    other = suite.notna() & (suite != frame["suite"])
    matched = suite.notna() & ~other
    texts.loc[~matched] = ""
    return Published(texts.astype("str"), matched, int(other.sum()))


def join_published(frame: pd.DataFrame, published: Published) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Add the standard columns of the texts, from the dump where it has the result; return the join's counts too.

    The detail file wins where both state a quantity: its values were read from the machine, and differing core counts
    of the dump are typing errors.
    """
    texts = published.texts
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
    filled = {name: joined[name].isna() & values.notna() for name, values in stated.items()}
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
    account = _count_matches(published, base, frame)
    return joined, {
        **account,
        "date_of_arrival_for_publication": int(month.isna().sum()),
        "filled_where_detail_is_empty": {name: int(rows.sum()) for name, rows in filled.items()},
    }


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


def _count_matches(published: Published, base: pd.Series, frame: pd.DataFrame) -> dict[str, Any]:
    """Return the number of matched results, and of scores that equal the geometric mean of the benchmarks."""
    mean = pd.Series(np.exp(np.log(frame[list(TARGETS)]).mean(axis=1)), index=frame.index)
    scored = base > 0
    agrees = scored & ((mean / base - 1).abs() < _ROUNDING)
    return {
        "source": DUMP.source,
        "by": "result_id",
        "rows": len(frame),
        "matched": int(published.matched.sum()),
        "found_in_another_suite": published.other_suite,
        "published_score_is_geometric_mean": int(agrees.sum()),
        "published_score_differs": int((scored & ~agrees).sum()),
        "published_score_withdrawn": int((base == 0).sum()),
        "taken_for_every_result_found": [
            *("dates", "memory text", "operating system", "compiler", "file system", "system name", "storage class"),
            *("pointer size", "processors orderable", "last-level cache slices"),
        ],
    }
