"""Published SPEC CPU2017 results: one row per result; the target is the base score."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.datasets import _spec_cpu2017_repair as repair
from perfcast.datasets._spec_common import find_only_file, name_submissions, parse_last_month, reject_out_of_bounds
from perfcast.datasets._spec_cpu2017_columns import COLUMNS
from perfcast.datasets._spec_cpu2017_quality import summarize_quality
from perfcast.datasets._spec_cpu2017_read import read_dump
from perfcast.datasets._spec_cpu2017_rows import RAW_COLUMNS, Quarantine, screen_rows
from perfcast.datasets._spec_cpu2017_text import parse_coverage, parse_texts
from perfcast.datasets._strict_csv import build_rejected_frame
from perfcast.datasets.base import Standardized
from perfcast.errors import UserError
from perfcast.parsing.distinct import by_distinct, codes_of, is_coded, spread
from perfcast.processors.catalogue import Catalogue, read_catalogue, read_project_catalog
from perfcast.processors.families import facts_of
from perfcast.processors.names import part_id
from perfcast.schema import build_table

SOURCE, CATALOGUE = "spec_cpu2017", "cpu_catalog"
_ALL_DIFFERENT = ("Disclosure",)
_FROM_CATALOGUE = ("tdp_w", "max_turbo_mhz", "launch_quarter", "upi_links", "max_sockets")
_CATALOGUE_FIRST = ("fma_units", "pcie_gen", "process_node")
_FROM_FAMILY = {
    "cpu_vendor": "cpu_vendor",
    "family": "family",
    "series": "series",
    "tier": "tier",
    "suffix": "suffix",
    "isa": "isa",
    "simd_bits": "simd_bits",
    "has_amx": "amx",
    "mem_max_mts_1dpc": "max_mts_1dpc",
    "family_ddr_gen": "ddr_gen",
}


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the dump, and join the processor catalog where that source is available.

    Options: `published_until`, the last month of publication as YYYY-MM. Rows published later are dropped, so every
    snapshot of the dump gives the same table. None keeps all rows.

    Raises:
        UserError: The file is not a whole table with the dump's columns, holds no usable result, or the option is not a
            month.
    """
    until = parse_last_month(options.get("published_until"))
    path = find_only_file(SOURCE, raw[SOURCE])
    rows = read_dump(SOURCE, path, RAW_COLUMNS, plain=_ALL_DIFFERENT)
    if rows.rows_in == 0:
        raise UserError(f"{path} must hold results", "it has a header and no row", "ingest the source again")
    quarantine = Quarantine(SOURCE, path.name, rows.rejections)
    screened = screen_rows(rows, quarantine, until)
    if screened.frame.empty:
        raise UserError(
            f"{path} must hold a usable result",
            f"of {rows.rows_in} rows {len(quarantine.rejections)} are unusable, {screened.after} after {until:%Y-%m}",
            "check the file, or set published_until later",
        )

    frame, rows_in, after = screened.frame, rows.rows_in, screened.after
    # These hold as much memory as the remaining frame of a large dump.
    del rows, screened
    frame = frame.drop(columns="Disclosure").sort_values("result_id", kind="stable")
    identical = frame.duplicated([column for column in RAW_COLUMNS if column != "Disclosure"])
    frame = parse_texts(frame[~identical])

    catalogue = read_catalogue(raw[CATALOGUE]) if CATALOGUE in raw else read_project_catalog()
    frame = join_processors(frame, catalogue)
    repairs = _repair_rows(frame)
    same = np.zeros(len(frame), dtype=np.int8)
    frame = frame.assign(
        source=spread([SOURCE], same, frame.index),
        file=spread([path.name], same, frame.index),
        part_id=by_distinct(frame["part_key"], part_id),
        submission_id=name_submissions(frame),
    )

    frame = reject_out_of_bounds(frame, COLUMNS, quarantine)
    table = build_table(SOURCE, frame, COLUMNS, {"published_until": options.get("published_until")}, copy=False)
    merged = {"identical_but_for_disclosure": int(identical.sum())}
    return Standardized(
        table,
        build_rejected_frame(quarantine.rejections),
        rows_in - after,
        merged,
        summarize_quality(frame, table, repairs.counts, after, parse_coverage(frame)),
    )


def join_processors(frame: pd.DataFrame, catalogue: Catalogue) -> pd.DataFrame:
    """Add the facts of each row's part from the family tables and the catalog; unknown facts are missing."""
    keys = frame["part_key"].drop_duplicates().astype("str")
    families = pd.DataFrame([facts_of(key) for key in keys], index=pd.Index(keys, name="part_key"))
    listed = catalogue.lookup(keys)
    parts = {name: families[fact] for name, fact in _FROM_FAMILY.items()}
    parts |= {name: listed[name] for name in _FROM_CATALOGUE}
    parts |= {name: _fill_missing(listed[name], families[name]) for name in _CATALOGUE_FIRST}
    # The family table lists the channels of more parts than the catalog; the two agree wherever both do.
    parts["mem_channels_per_chip"] = _fill_missing(families["channels_per_chip"], listed["mem_channels_per_chip"])
    parts |= {"catalogue_cores": listed["cores_per_chip"], "catalogue_table": listed["table"]}
    if is_coded(frame["part_key"]):
        codes, names = codes_of(frame["part_key"])
        joined = frame.assign(
            **{name: spread(values.loc[names].tolist(), codes, frame.index) for name, values in parts.items()}
        )
    else:
        joined = frame.join(pd.DataFrame(parts), on="part_key")
    return joined.assign(cores_per_chip_stated=joined["cores"] / joined["chips"])


def _fill_missing(first: pd.Series, second: pd.Series) -> pd.Series:
    return first.astype(object).where(first.notna(), second).infer_objects()


def _repair_rows(frame: pd.DataFrame) -> repair.Repairs:
    repairs = repair.Repairs()
    frame["cores_per_chip_part"] = repair.find_modal_cores(frame)
    repair.repair_cores(frame, repairs)
    repair.repair_caches(frame, repairs)
    repair.repair_memory(frame, repairs)
    repair.repair_dates(frame, repairs)
    repair.repair_unstated(frame, repairs)
    repair.add_flags(frame)
    return repairs
