"""The machine of a Java benchmark's row: its texts typed, its processor joined, its known errors repaired."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.datasets import _spec_cpu2017_repair as repair
from perfcast.datasets._spec_cpu2017_text import system_stem
from perfcast.datasets._spec_cpu2017_vendors import canonical_company
from perfcast.datasets._spec_java_columns import MEMORY, PROCESSOR
from perfcast.datasets._spec_java_names import java_part_key
from perfcast.datasets.spec_cpu2017 import join_processors
from perfcast.parsing.cache import L1Cache, L2Cache, L3Cache, parse_l1, parse_l2, parse_l3
from perfcast.parsing.coverage import Parsed, measure, parse_column
from perfcast.parsing.dimms import parse_dimms, parse_module
from perfcast.parsing.jvm import canonical_jvm_vendor, parse_jvm
from perfcast.parsing.scalars import parse_month
from perfcast.parsing.spelling import parse_any_operating_system, tidy_cache
from perfcast.parsing.storage import parse_storage
from perfcast.processors.catalogue import read_project_catalog, read_catalogue
from perfcast.processors.names import part_id
from perfcast.schema import Kind

CATALOGUE = "cpu_catalog"
_THREADS_PER_CORE = (1, 2, 4, 8)
_LARGEST_L3_MB, _LARGEST_L3_OF_A_CORE_MB = 2048, 32
_MIN_L2_PER_CORE_KB = 128
_OLDEST_TEST = pd.DateOffset(months=24)
_MAKERS = {"xeon": "Intel", "core": "Intel", "pentium": "Intel", "opteron": "AMD", "epyc": "AMD"}
_HEIGHT = re.compile(r"\b(\d{1,2}) ?R?U\b")
_SHAPES = (("tower", "tower"), ("blade", "blade"), ("module", "blade"), ("node", "blade"))
_CACHES = ("l1i_kb", "l1d_kb", "l2_kb_per_core", "l3_mb_per_chip", "l3_slice_mb")


def _l1(text: str) -> L1Cache:
    return parse_l1(tidy_cache(text))


def _l2(text: str) -> L2Cache:
    return parse_l2(tidy_cache(text))


def _l3(text: str) -> L3Cache:
    return parse_l3(tidy_cache(text))


_FIELDS: dict[str, tuple[Callable[[str], Parsed], dict[str, str]]] = {
    "l1": (_l1, {name: name for name in ("l1i_kb", "l1d_kb")}),
    "l2": (_l2, {name: name for name in ("l2_kb", "l2_scope", "l2_kb_per_core")}),
    "l3": (_l3, {name: name for name in ("l3_mb_per_chip", "l3_slice_mb", "l3_cores_per_slice", "l3_asymmetric")}),
    "dimms": (parse_dimms, {name: name for name in ("dimm_count", "dimm_gb", "dimm_groups", "mem_sum_gb")}),
    "module": (
        parse_module,
        {
            name: name
            for name in (
                *("dimm_ranks", "dimm_width", "dimm_type", "ecc", "ddr_gen"),
                *("mem_rated_mts", "mem_running_mts", "mem_eff_mts"),
            )
        },
    ),
    "jvm": (parse_jvm, {name: name for name in ("jvm_name", "jvm_release", "jvm_update")}),
    "os": (parse_any_operating_system, {name: name for name in ("os_name", "os_version", "kernel_series", "arch")}),
    "disk": (parse_storage, {"storage_class": "storage_class"}),
    "hw_avail_text": (parse_month, {"value": "hw_avail"}),
    "sw_avail_text": (parse_month, {"value": "sw_avail"}),
    "updated_text": (parse_month, {"value": "updated"}),
}
"""Text column by the name both dumps are brought to -> its parser, and field of the result -> standard column."""


def parse_machine(frame: pd.DataFrame, texts: Mapping[str, str]) -> pd.DataFrame:
    """Add the standard columns of a dump's texts. Shapes: `texts` maps this module's names to the raw columns."""
    parts: dict[str, pd.Series] = {}
    for name, (parse, fields) in _FIELDS.items():
        parsed = parse_column(frame[texts[name]], parse)
        parts |= {column: parsed[field] for field, column in fields.items()}
    parts |= {name: pd.to_datetime(parts[name]) for name in ("hw_avail", "sw_avail", "updated")}
    pairs = list(zip(frame["System"], frame[texts["processor"]], strict=True))
    stems = {pair: system_stem(*pair) for pair in set(pairs)}
    return frame.assign(
        **parts,
        part_key=_mapped(frame[texts["processor"]], java_part_key),
        hw_vendor=_mapped(frame[texts["vendor"]], canonical_company),
        tester=_mapped(frame["Tested By"], canonical_company),
        sponsor=_mapped(frame["Test Sponsor"], canonical_company),
        jvm_vendor=_mapped(frame["JVM Vendor"], canonical_jvm_vendor),
        file_system=_mapped(frame["File System"], lambda text: text.strip().casefold() or None),
        form_factor=_mapped(frame[texts["form"]], form_factor),
        system_stem=pd.Series([stems[pair] for pair in pairs], index=frame.index, dtype="str"),
        # no text of these benchmarks tells memory in the package; the features of the memory ask for it
        hbm_gb=0.0,
        Memory=frame[texts["module"]],
        # every core works in these benchmarks, as in a rate run: fewer cores than the part has are typing errors
        metric="rate",
    )


def parse_coverage(frame: pd.DataFrame, texts: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return per text column: rows, rows that state something, rows understood completely, their share, misses."""
    measured = {texts[name]: measure(frame[texts[name]], parse) for name, (parse, _) in _FIELDS.items()}
    return {
        column: {**asdict(coverage), "examples": list(coverage.examples), "share": round(coverage.share, 6)}
        for column, coverage in measured.items()
    }


def form_factor(text: str) -> str | None:
    """Return the height of an enclosure such as 2U, else blade or tower, None for anything else."""
    height = _HEIGHT.search(text)
    folded = text.casefold()
    return f"{height[1]}U" if height else next((shape for word, shape in _SHAPES if word in folded), None)


def join_and_repair(frame: pd.DataFrame, catalogue: Path | None) -> tuple[pd.DataFrame, dict[str, int]]:
    """Join the processor catalogue and repair known errors; return the frame and the rows changed by each rule.

    Shapes: `frame` from `parse_machine` with cores, chips, threads_stated, threads_total_stated, mem_total_gb,
    test_month, and for several nodes what the columns mean of one.
    """
    known = read_catalogue(catalogue) if catalogue is not None else read_project_catalog()
    # The copy joins the many blocks of a frame that grew by columns; without it every later step is slow.
    frame = join_processors(frame, known).copy()
    # Where no part is known a column of facts holds no numbers at all, and would not compare with them.
    numbers = [column.name for column in PROCESSOR if column.kind is Kind.NUMERICAL and column.name in frame]
    for name in (*numbers, "family_ddr_gen", "catalogue_cores"):
        frame[name] = pd.to_numeric(frame[name]).astype("float64")
    repairs = repair.Repairs()
    # Some of SPECpower's parts are older than the families that the tables know; the maker is in the name's first word.
    vendor = frame["part_key"].str.partition(" ")[0].map(_MAKERS)
    unnamed = frame["cpu_vendor"].isna() & vendor.notna()
    repairs.put(frame, "cpu_vendor", unnamed, vendor, "maker_from_name")
    frame["isa"] = frame["isa"].mask(unnamed, "x86")
    below = frame["max_turbo_mhz"] < frame["base_mhz"]
    repairs.put(frame, "max_turbo_mhz", below, frame["base_mhz"], "turbo_below_base")
    frame["cores_per_chip_part"] = repair.modal_cores(frame)
    repair.repair_cores(frame, repairs)
    _repair_threads(frame, repairs)
    _repair_cache_units(frame, repairs)
    repair.repair_caches(frame, repairs)
    _leave_out_impossible(frame, repairs)
    repair.repair_memory(frame, repairs)
    early = frame["test_month"] < frame["arrival_day"] - _OLDEST_TEST
    repairs.put(frame, "test_month", early, pd.Series(pd.NaT, index=frame.index), "test_month_years_before_arrival")
    repair.repair_dates(frame, repairs)
    unstated = frame["arch"].isna() & (frame["isa"] == "x86")
    repairs.put(frame, "arch", unstated, pd.Series("x86_64", index=frame.index), "arch_from_isa")
    frame = frame.assign(part_id=frame["part_key"].map(part_id), submission_id=_submission(frame))
    return frame, repairs.counts


def _repair_threads(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Take threads per core from the total where that gives a possible number: the other is the total on some rows."""
    counted = frame["threads_total_stated"] / frame["cores_enabled_total"]
    stated = frame["threads_stated"].where(frame["threads_stated"].isin(_THREADS_PER_CORE))
    frame["threads_per_core"] = counted.where(counted.isin(_THREADS_PER_CORE), stated)
    repairs.counts["threads_per_core_from_total"] = int((frame["threads_per_core"] != frame["threads_stated"]).sum())


def _repair_cache_units(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Correct MB for KB, and a last-level cache of the chip that is stated as a core's."""
    for column in ("l3_mb_per_chip", "l3_slice_mb"):
        large = frame[column] > _LARGEST_L3_MB
        repairs.put(frame, column, large, frame[column] / 1024, f"{column}_mb_for_kb")
    wrong = frame["l3_mb_per_chip"].isna() & (frame["l3_cores_per_slice"] == 1)
    wrong &= frame["l3_slice_mb"] > _LARGEST_L3_OF_A_CORE_MB
    repairs.put(frame, "l3_mb_per_chip", wrong, frame["l3_slice_mb"], "l3_core_for_chip")
    frame["l3_cores_per_slice"] = frame["l3_cores_per_slice"].mask(wrong)
    frame["l3_slice_mb"] = frame["l3_slice_mb"].mask(wrong)
    slight = (frame["l2_scope"] == "chip") & (frame["l2_kb"] / frame["cores_per_chip_part"] < _MIN_L2_PER_CORE_KB)
    repairs.put(frame, "l2_kb_per_core", slight, frame["l2_kb"], "l2_chip_for_core")
    large = frame["l2_kb_per_core"] >= 256 * 1024
    repairs.put(frame, "l2_kb_per_core", large, frame["l2_kb_per_core"] / 1024, "l2_mb_for_kb")


def _leave_out_impossible(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Leave out cache and memory values beyond their bounds: a typing error there is no reason to drop a result."""
    known = {column.name: column for column in (*PROCESSOR, *MEMORY)}
    for name in (*_CACHES, "dimm_gb", "dimm_ranks", "dimm_width", "mem_rated_mts", "mem_running_mts", "mem_eff_mts"):
        beyond = (frame[name] < known[name].low) | (frame[name] > known[name].high)
        frame[name] = frame[name].mask(beyond)
        repairs.counts[f"{name}_impossible"] = int(beyond.sum())


def _submission(frame: pd.DataFrame) -> pd.Series:
    month = frame["published_month"].dt.strftime("%Y-%m")
    chips = frame["chips"].astype("int64").astype("str")
    parts = [frame["hw_vendor"].fillna("?"), frame["system_stem"], frame["part_key"], chips, month]
    joined: pd.Series = parts[0].str.cat(parts[1:], sep=" | ")
    return joined


def _mapped(texts: pd.Series, function: Callable[[str], str | None]) -> pd.Series:
    return texts.map({text: function(text) for text in texts.unique()})
