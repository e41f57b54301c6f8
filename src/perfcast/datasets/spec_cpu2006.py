"""Published SPEC CPU2006 results: one row per result; the target is the base score (`Baseline`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.datasets import _spec_cpu2017_repair as repair
from perfcast.datasets._spec_common import find_only_file, name_submissions, reject_out_of_bounds
from perfcast.datasets._spec_cpu2006_columns import COLUMNS
from perfcast.datasets._spec_cpu2006_rows import FIRST_TEST, RAW_COLUMNS, screen_rows
from perfcast.datasets._spec_cpu2006_text import parse_coverage, parse_texts
from perfcast.datasets._spec_cpu2017_quality import summarize_quality
from perfcast.datasets._spec_cpu2017_read import read_dump
from perfcast.datasets._spec_cpu2017_rows import Quarantine
from perfcast.datasets._strict_csv import build_rejected_frame
from perfcast.datasets.base import Standardized
from perfcast.datasets.spec_cpu2017 import join_processors
from perfcast.errors import UserError
from perfcast.processors.catalogue import read_catalogue, read_project_catalog
from perfcast.processors.names import part_id
from perfcast.schema import build_table

SOURCE, CATALOGUE = "spec_cpu2006", "cpu_catalog"
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
    catalogue = read_catalogue(raw[CATALOGUE]) if CATALOGUE in raw else read_project_catalog()
    stated = frame["cores_per_chip_stated"]
    frame = join_processors(frame, catalogue).assign(cores_per_chip_stated=stated)
    repairs = _repair_rows(frame)
    frame = frame.assign(
        source=SOURCE, file=path.name, part_id=frame["part_key"].map(part_id), submission_id=name_submissions(frame)
    )
    frame = reject_out_of_bounds(frame, COLUMNS, quarantine)
    table = build_table(SOURCE, frame, COLUMNS)
    quality = summarize_quality(frame, table, repairs.counts, 0, parse_coverage(frame))
    return Standardized(table, build_rejected_frame(quarantine.rejections), rows.rows_in, merged, quality)


def _repair_rows(frame: pd.DataFrame) -> repair.Repairs:
    repairs = repair.Repairs()
    frame["cores_per_chip_part"] = repair.find_modal_cores(frame)
    _count_cores(frame, repairs)
    _complete_clocks(frame, repairs)
    whole = frame["l1_scope"] == "chip"
    for column in ("l1i_kb", "l1d_kb"):
        share = frame[column] / frame["cores_per_chip_part"]
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
    """Add the enabled cores: as stated, but at most the cores of the part.

    A larger number counts threads or is a typing error. A smaller number stands, because firmware can disable cores.
    """
    part, stated = frame["cores_per_chip_part"], frame["cores_per_chip_stated"]
    frame["q_cores_mismatch"] = (stated != part).astype("float64")
    frame["cores_enabled_total"] = frame["cores"]
    repairs.put(
        frame, "cores_enabled_total", frame["cores"] > part * frame["chips"], part * frame["chips"], "cores_above_part"
    )


def _complete_clocks(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Set turbo and bus rate as stated, else to the part's most frequent value, else from the catalog."""
    off = frame["turbo_off"] == 1
    for column in ("turbo_mhz", "bus_mts"):
        known = frame.groupby("part_key")[column].agg(lambda values: values.mode().min())
        usual = frame["part_key"].map(known)
        repairs.put(frame, column, frame[column].isna() & usual.notna() & ~off, usual, f"{column}_of_part")
    listed = frame["max_turbo_mhz"]
    frame["max_turbo_mhz"] = frame["turbo_mhz"].where(frame["turbo_mhz"].notna(), listed)
    repairs.put(frame, "max_turbo_mhz", off, frame["base_mhz"], "turbo_off")
