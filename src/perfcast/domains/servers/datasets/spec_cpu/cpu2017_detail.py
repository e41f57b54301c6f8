"""SPEC CPU2017 results by benchmark: one row per result; the targets are the base scores of its suite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame
from perfcast.domains.servers.datasets.spec_cpu import cpu2017_repairs as repair
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import CATALOG, join_processors
from perfcast.domains.servers.datasets.spec_cpu.cpu2017_detail_columns import COLUMNS, OMITTED, refuse_leaks
from perfcast.domains.servers.datasets.spec_cpu.cpu2017_detail_join import SOURCE as PUBLISHED
from perfcast.domains.servers.datasets.spec_cpu.cpu2017_detail_join import join_published, read_published
from perfcast.domains.servers.datasets.spec_cpu.cpu2017_detail_rows import SOURCE, read_detail
from perfcast.domains.servers.datasets.spec_cpu.cpu2017_rows import parse_coverage
from perfcast.domains.servers.datasets.spec_cpu.dump_quality import summarize_quality
from perfcast.domains.servers.datasets.spec_cpu.quarantine import Quarantine
from perfcast.domains.servers.datasets.spec_cpu.spec_dump import describe_out_of_bounds
from perfcast.domains.servers.processors.catalog import read_catalog, read_project_catalog
from perfcast.domains.servers.processors.cpu_names import cpu_model_id
from perfcast.schema.table import Table, build_table
from perfcast.utils.errors import UserError


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
    frame, joined = join_published(detail.frame, read_published(raw.get(PUBLISHED), detail.frame))
    catalog = read_catalog(raw[CATALOG]) if CATALOG in raw else read_project_catalog()
    # The copy consolidates the blocks of a frame that grew by columns; later steps are slow without it.
    frame = join_processors(frame, catalog).copy()
    repairs = _repair_rows(frame)
    frame = frame.assign(
        source=SOURCE,
        file=frame["source_file"],
        cpu_model_id=frame["cpu_model"].map(cpu_model_id),
        submission_id=_name_submissions(frame),
    )
    frame = _reject_out_of_bounds(frame, detail.quarantines)
    refuse_leaks(COLUMNS)
    table = build_table(SOURCE, frame, COLUMNS)
    rejections = [rejection for quarantine in detail.quarantines.values() for rejection in quarantine.rejections]
    return Standardized(
        table,
        build_rejected_frame(rejections),
        detail.rows_in,
        {"identical_but_for_result_id": detail.identical},
        {
            **_summarize_quality(frame, table, repairs),
            "joined": joined,
            "columns_left_out": OMITTED,
            "columns_unknown": {name: columns for name, columns in detail.unknown.items() if columns},
        },
    )


def _repair_rows(frame: pd.DataFrame) -> repair.Repairs:
    """Repair as spec_cpu2017 does, without the rules on peak and energy results, which these files lack."""
    repairs = repair.Repairs()
    stated = frame["max_turbo_mhz"].isna() & frame["max_mhz"].notna()
    repairs.put(frame, "max_turbo_mhz", stated, frame["max_mhz"], "turbo_as_stated")
    repairs.put(
        frame, "max_turbo_mhz", frame["max_turbo_mhz"] < frame["base_mhz"], frame["base_mhz"], "turbo_below_base"
    )
    frame["cores_per_chip_of_cpu_model"] = repair.find_modal_cores(frame)
    repair.repair_cores(frame, repairs)
    frame["q_cores_mismatch"] = frame["q_cores_mismatch"].where(frame["cores_per_chip_stated"].notna(), 0.0)
    repair.repair_caches(frame, repairs)
    repair.repair_memory(frame, repairs)
    repair.repair_dates(frame, repairs)
    unstated = frame["arch"].isna() & (frame["isa"] == "x86")
    repairs.put(frame, "arch", unstated, pd.Series("x86_64", index=frame.index), "arch_from_isa")
    return repairs


def _name_submissions(frame: pd.DataFrame) -> pd.Series:
    """Return vendor, system, CPU model, chips and month; without the dump, "?" replaces the system name."""
    month = frame["published_month"].dt.strftime("%Y-%m")
    chips = frame["chips"].map("{:.0f}".format, na_action="ignore").fillna("?")
    parts = [frame["hw_vendor"].fillna("?"), frame["system_stem"].fillna("?"), frame["cpu_model"], chips, month]
    joined: pd.Series = parts[0].str.cat(parts[1:], sep=" | ")
    return joined


def _reject_out_of_bounds(frame: pd.DataFrame, quarantines: Mapping[str, Quarantine]) -> pd.DataFrame:
    """Quarantine rows with a value outside its column's bounds, each in the quarantine of its file."""
    wrong, detail = describe_out_of_bounds(frame, COLUMNS)
    for name, quarantine in quarantines.items():
        quarantine.reject(frame, wrong & (frame["source_file"] == name), "out_of_bounds", detail)
    return frame[~wrong]


def _summarize_quality(frame: pd.DataFrame, table: Table, repairs: repair.Repairs) -> dict[str, Any]:
    """Return the quality facts of spec_cpu2017, with coverage only of texts that a source states."""
    coverage = parse_coverage(frame.assign(disclosure_parsed=True))
    stated = {column: column_coverage for column, column_coverage in coverage.items() if column_coverage["stated"]}
    quality = summarize_quality(frame, table, repairs.counts, 0, stated)
    del quality["after_published_until"]
    return quality
