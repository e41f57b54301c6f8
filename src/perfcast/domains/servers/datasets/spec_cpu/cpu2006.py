"""Published SPEC CPU2006 results: one row per result; the target is the base score (`Baseline`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame
from perfcast.domains.servers.datasets.spec_cpu import cpu2017_repairs as repair
from perfcast.domains.servers.datasets.spec_cpu.cpu2006_rows import (
    FIRST_TEST,
    RAW_COLUMNS,
    parse_coverage,
    parse_texts,
    screen_rows,
)
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import join_processors
from perfcast.domains.servers.datasets.spec_cpu.cpu2017_columns import COLUMNS as COLUMNS_2017
from perfcast.domains.servers.datasets.spec_cpu.dump_quality import summarize_quality
from perfcast.domains.servers.datasets.spec_cpu.quarantine import Quarantine
from perfcast.domains.servers.datasets.spec_cpu.spec_dump import (
    find_only_file,
    name_submissions,
    read_dump,
    reject_out_of_bounds,
)
from perfcast.domains.servers.processors.catalog import read_catalog, read_project_catalog
from perfcast.domains.servers.processors.cpu_names import cpu_model_id
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.utils.errors import UserError

_OMITTED = frozenset(
    {
        *("compiler_classic", "oneapi", "mixed_fortran", "has_amx", "upi_links", "storage_class", "storage_gb"),
        *("energy_base", "arrival_day", "xalanc_notice"),
    }
)
"""Columns that the dump lacks, or that are equal on every row."""

_BOUNDS: dict[str, tuple[float, float]] = {
    "base_mhz": (200, 6000),
    "max_turbo_mhz": (200, 6500),
    "tdp_w": (1, 1000),
    "l4_mb": (0, 1e7),
    "mem_max_mts_1dpc": (200, 12800),
    "mem_total_gb": (0.125, 131072),
    "dimm_gb": (0.125, 2048),
    "dimm_count": (0, 16384),
    "ddr_gen": (1, 6),
    "mem_rated_mts": (200, 12800),
    "mem_running_mts": (200, 12800),
    "mem_eff_mts": (200, 12800),
    "chips": (1, 4096),
    "cores_enabled_total": (1, 65536),
    "orderable_min": (1, 4096),
    "orderable_max": (1, 4096),
}
"""Bounds that differ from spec_cpu2017: DDR and DDR2, processors of a few watts, machines of many processors."""

_MEANINGS = {
    "result_id": "identifier of the result: its line, as the dump has no identifiers",
    "suite": "CINT or CFP, rate or speed; the dump's CINT2006 is CINT2006speed",
    "max_turbo_mhz": "highest clock of a core as stated, else of the catalog; the base clock where turbo is off",
    "isa": "instruction set architecture: x86, ia64, power, sparc",
    "dimm_type": "R registered, F fully buffered, L load-reduced, E or U unbuffered, S small",
    "line": "line of the file",
}

_ADDED = {
    "base_ptr": Column(
        "mixed_compilers",
        Kind.NUMERICAL,
        Role.FEATURE,
        "workload",
        "",
        "1 where the text names compilers of several vendors",
        0,
        1,
        (Tag.CONFIG,),
    ),
    "process_node": Column(
        "bus_mts",
        Kind.NUMERICAL,
        Role.FEATURE,
        "processor",
        "MT/s",
        "rate of the front-side bus as stated; missing without a bus",
        100,
        4000,
        (Tag.CONFIG,),
    ),
}
"""Name of a column -> the additional column that follows it."""


def _derive_columns() -> tuple[Column, ...]:
    columns: list[Column] = []
    for column in COLUMNS_2017:
        if column.name in _OMITTED:
            continue
        low, high = _BOUNDS.get(column.name, (column.low, column.high))
        columns.append(replace(column, low=low, high=high, meaning=_MEANINGS.get(column.name, column.meaning)))
        columns += [_ADDED[column.name]] if column.name in _ADDED else []
    return tuple(columns)


COLUMNS: tuple[Column, ...] = _derive_columns()
"""Standard columns in table order."""

SOURCE, CATALOG = "spec_cpu2006", "cpu_catalog"
_ENDINGS = (".csv", ".csv.gz", ".csv.xz")


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the dump, and join the processor catalog where that source is available. There are no options.

    Raises:
        UserError: The file is not a whole table with the dump's columns, or holds no usable result.
    """
    del options
    path = find_only_file(SOURCE, raw[SOURCE], _ENDINGS)
    rows = read_dump(SOURCE, path, RAW_COLUMNS)
    if rows.rows_in == 0:
        raise UserError(f"{path} must hold results", "it has a header and no row", "ingest the source again")
    quarantine = Quarantine(SOURCE, path.name, rows.rejections)
    frame = screen_rows(rows.frame, quarantine)
    if frame.empty:
        raise UserError(f"{path} must hold a usable result", f"none of {rows.rows_in} rows is usable", "check the file")

    merged = {"identical": int(frame["identical"].sum())}
    frame = parse_texts(frame[~frame["identical"]])
    catalog = read_catalog(raw[CATALOG]) if CATALOG in raw else read_project_catalog()
    stated = frame["cores_per_chip_stated"]
    frame = join_processors(frame, catalog).assign(cores_per_chip_stated=stated)
    repairs = _repair_rows(frame)
    frame = frame.assign(
        source=SOURCE,
        file=path.name,
        cpu_model_id=frame["cpu_model"].map(cpu_model_id),
        submission_id=name_submissions(frame),
    )
    frame = reject_out_of_bounds(frame, COLUMNS, quarantine)
    table = build_table(SOURCE, frame, COLUMNS)
    quality = summarize_quality(frame, table, repairs.counts, 0, parse_coverage(frame))
    return Standardized(table, build_rejected_frame(quarantine.rejections), rows.rows_in, merged, quality)


def _repair_rows(frame: pd.DataFrame) -> repair.Repairs:
    repairs = repair.Repairs()
    frame["cores_per_chip_of_cpu_model"] = repair.find_modal_cores(frame)
    _count_cores(frame, repairs)
    _complete_clocks(frame, repairs)
    whole = frame["l1_scope"] == "chip"
    for column in ("l1i_kb", "l1d_kb"):
        share = frame[column] / frame["cores_per_chip_of_cpu_model"]
        repairs.put(frame, column, whole & frame[column].notna(), share, f"{column}_chip_to_core")
    repair.repair_caches(frame, repairs)
    repair.repair_memory(frame, repairs)
    early = frame["test_month"] < FIRST_TEST
    repairs.put(frame, "test_month", early, pd.Series(pd.NaT, index=frame.index), "test_month_before_the_suite")
    repair.repair_dates(frame, repairs)
    frame["q_date"] = frame["q_date"].mask(early, 1.0)
    repair.repair_unstated(frame, repairs)
    repair.add_flags(frame)
    return repairs


def _count_cores(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Add the enabled cores: as stated, but at most the cores of the CPU model.

    A larger number counts threads or is a typing error. A smaller number stands, because firmware can disable cores.
    """
    usual, stated = frame["cores_per_chip_of_cpu_model"], frame["cores_per_chip_stated"]
    frame["q_cores_mismatch"] = (stated != usual).astype("float64")
    frame["cores_enabled_total"] = frame["cores"]
    total = usual * frame["chips"]
    repairs.put(frame, "cores_enabled_total", frame["cores"] > total, total, "cores_above_cpu_model")


def _complete_clocks(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Set turbo and bus rate as stated, else to the CPU model's most frequent value, else from the catalog."""
    off = frame["turbo_off"] == 1
    for column in ("turbo_mhz", "bus_mts"):
        known = frame.groupby("cpu_model")[column].agg(lambda values: values.mode().min())
        usual = frame["cpu_model"].map(known)
        repairs.put(frame, column, frame[column].isna() & usual.notna() & ~off, usual, f"{column}_of_cpu_model")
    listed = frame["max_turbo_mhz"]
    frame["max_turbo_mhz"] = frame["turbo_mhz"].where(frame["turbo_mhz"].notna(), listed)
    repairs.put(frame, "max_turbo_mhz", off, frame["base_mhz"], "turbo_off")
