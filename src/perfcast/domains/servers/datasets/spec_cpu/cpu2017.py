"""Published SPEC CPU2017 results: one row per result; the target is the base score."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame
from perfcast.domains.servers.datasets.spec_cpu import cpu2017_repairs as repair
from perfcast.domains.servers.datasets.spec_cpu.cpu2017_columns import COLUMNS
from perfcast.domains.servers.datasets.spec_cpu.cpu2017_rows import (
    RAW_COLUMNS,
    parse_coverage,
    parse_texts,
    screen_rows,
)
from perfcast.domains.servers.datasets.spec_cpu.dump_quality import summarize_quality
from perfcast.domains.servers.datasets.spec_cpu.quarantine import Quarantine
from perfcast.domains.servers.datasets.spec_cpu.spec_dump import (
    find_only_file,
    name_submissions,
    parse_last_month,
    read_dump,
    reject_out_of_bounds,
)
from perfcast.domains.servers.parsing.distinct_texts import encode_texts, expand_codes, is_coded, map_distinct
from perfcast.domains.servers.processors.catalog import Catalog, read_catalog, read_project_catalog
from perfcast.domains.servers.processors.cpu_names import cpu_model_id
from perfcast.domains.servers.processors.families import look_up_facts
from perfcast.schema.table import build_table
from perfcast.utils.errors import UserError

SOURCE, CATALOG = "spec_cpu2017", "cpu_catalog"
_ALL_DIFFERENT = ("Disclosure",)
_FROM_CATALOG = ("tdp_w", "max_turbo_mhz", "all_core_turbo_mhz", "launch_quarter", "upi_links", "max_sockets")
_CATALOG_FIRST = ("fma_units", "pcie_gen", "process_node")
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
    "mem_max_mts_2dpc": "max_mts_2dpc",
    "mem_mrdimm_mts": "mrdimm_mts",
    "family_ddr_gen": "ddr_gen",
    "family_l1i_kb": "l1i_kb",
    "family_l1d_kb": "l1d_kb",
    "family_l2_kb_per_core": "l2_kb_per_core",
}
COLUMNS_OF_FACTS = {
    **{fact: column for column, fact in _FROM_FAMILY.items()},
    **{name: name for name in (*_FROM_CATALOG, *_CATALOG_FIRST, "base_mhz", "l3_mb_per_chip")},
    **{name: name for name in ("l1i_kb", "l1d_kb", "l2_kb_per_core")},
    "cores_per_chip": "cores_per_chip_of_cpu_model",
    "channels_per_chip": "mem_channels_per_chip",
    "ddr_gen": "ddr_gen",
}
"""Standard column of every fact."""


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

    catalog = read_catalog(raw[CATALOG]) if CATALOG in raw else read_project_catalog()
    frame = join_processors(frame, catalog)
    repairs = _repair_rows(frame)
    same = np.zeros(len(frame), dtype=np.int8)
    frame = frame.assign(
        source=expand_codes([SOURCE], same, frame.index),
        file=expand_codes([path.name], same, frame.index),
        cpu_model_id=map_distinct(frame["cpu_model"], cpu_model_id),
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


def join_processors(frame: pd.DataFrame, catalog: Catalog, as_of: pd.Timestamp | None = None) -> pd.DataFrame:
    """Add the facts of each row's CPU model from the family tables and the catalog; unknown facts are missing.

    Only facts that were public before `as_of` count, all of them without a day.
    """
    keys = frame["cpu_model"].drop_duplicates().astype("str")
    families = pd.DataFrame([look_up_facts(key, as_of) for key in keys], index=pd.Index(keys, name="cpu_model"))
    listed = catalog.lookup(keys, as_of)
    facts = {name: families[fact] for name, fact in _FROM_FAMILY.items()}
    facts |= {name: listed[name] for name in _FROM_CATALOG}
    facts |= {name: _fill_missing(listed[name], families[name]) for name in _CATALOG_FIRST}
    # The family table lists the channels of more CPU models than the catalog; the two agree wherever both do.
    facts["mem_channels_per_chip"] = _fill_missing(families["channels_per_chip"], listed["mem_channels_per_chip"])
    facts |= {"catalog_cores": listed["cores_per_chip"], "catalog_table": listed["table"]}
    if is_coded(frame["cpu_model"]):
        codes, names = encode_texts(frame["cpu_model"])
        joined = frame.assign(
            **{name: expand_codes(values.loc[names].tolist(), codes, frame.index) for name, values in facts.items()}
        )
    else:
        joined = frame.join(pd.DataFrame(facts), on="cpu_model")
    return joined.assign(cores_per_chip_stated=joined["cores"] / joined["chips"])


def _fill_missing(first: pd.Series, second: pd.Series) -> pd.Series:
    return first.astype(object).where(first.notna(), second).infer_objects()


def _repair_rows(frame: pd.DataFrame) -> repair.Repairs:
    repairs = repair.Repairs()
    frame["cores_per_chip_of_cpu_model"] = repair.find_modal_cores(frame)
    repair.repair_cores(frame, repairs)
    repair.repair_caches(frame, repairs)
    repair.repair_memory(frame, repairs)
    repair.repair_dates(frame, repairs)
    repair.repair_unstated(frame, repairs)
    repair.add_flags(frame)
    return repairs
