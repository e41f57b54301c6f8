"""Machine columns of the Java benchmarks: parsed texts, joined processors, repaired errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame
from perfcast.domains.servers.datasets.spec_cpu import cpu2017_repairs as repair
from perfcast.domains.servers.datasets.spec_cpu import dump_texts
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import CATALOG, join_processors
from perfcast.domains.servers.datasets.spec_cpu.dump_quality import summarize_quality
from perfcast.domains.servers.datasets.spec_cpu.dump_texts import (
    L3_FIELDS,
    SYSTEM_FIELDS,
    Fields,
    map_texts,
    measure_coverages,
)
from perfcast.domains.servers.datasets.spec_cpu.quarantine import THREADS_PER_CORE
from perfcast.domains.servers.datasets.spec_cpu.spec_dump import name_submissions, reject_out_of_bounds
from perfcast.domains.servers.datasets.spec_java.java_rows import MEMORY, PROCESSOR, Results
from perfcast.domains.servers.parsing.cache import parse_l1, parse_l2, parse_l3, rewrite_cache_text
from perfcast.domains.servers.parsing.jvm import normalize_jvm_vendor, parse_jvm
from perfcast.domains.servers.parsing.memory_modules import parse_dimms, parse_module
from perfcast.domains.servers.parsing.operating_system import parse_any_operating_system
from perfcast.domains.servers.parsing.scalars import parse_month
from perfcast.domains.servers.parsing.storage import parse_storage
from perfcast.domains.servers.processors.catalog import read_catalog, read_project_catalog
from perfcast.domains.servers.processors.cpu_names import cpu_model_id
from perfcast.inference.name_lookup import cpu_model_key
from perfcast.schema.table import Column, Kind, build_table

_FIELDS: Fields = {
    "l1": (lambda text: parse_l1(rewrite_cache_text(text)), ("l1i_kb", "l1d_kb")),
    "l2": (lambda text: parse_l2(rewrite_cache_text(text)), ("l2_kb", "l2_scope", "l2_kb_per_core")),
    "l3": (lambda text: parse_l3(rewrite_cache_text(text)), L3_FIELDS),
    "dimms": (parse_dimms, ("dimm_count", "dimm_gb", "dimm_groups", "mem_sum_gb")),
    "module": (
        parse_module,
        (
            *("dimm_ranks", "dimm_width", "dimm_type", "ecc", "ddr_gen"),
            *("mem_rated_mts", "mem_running_mts", "mem_eff_mts"),
        ),
    ),
    "jvm": (parse_jvm, ("jvm_name", "jvm_release", "jvm_update")),
    "os": (parse_any_operating_system, SYSTEM_FIELDS),
    "disk": (parse_storage, ("storage_class",)),
}
"""Common name of a text column -> its parser, and the parsed fields that become columns of the same name."""

_MONTHS = ("hw_avail", "sw_avail", "updated")
_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"[®™]", " "),
        (r"\((?:r|tm)\)", " "),
        (r"\bprocessors?\b|\b(?:dual|quad|six|eight|twelve)-core\b|\b64-bit multi-core\b", " "),
        # Clocks, order numbers and turbo modes follow a bracket or comma; a clock also stands at either end.
        (r"\s*[(\[,].*$", ""),
        (r"^\d(?:\.\d+)? ?ghz\s+(?=\w)", ""),
        (r"(?<=\d)((?:\S*\s+(?:v\d\s+)?)(?:cpu\s+)?)@?\s*\d(?:\.\d+)? ?ghz$", r"\1"),
        (r"(?<=\d)(he|ee)$", r" \1"),
        (r"\bcortex[ -]a53\b.*", "cortex-a53"),
        (r"\bplatunum\b", "platinum"),
        (r"\bxeon-d\b\s*", "xeon d-"),
        (r"\bcpu\b", " "),
        (r"^intel (?=(?:e\d-|[elwx]\d{4}))", "intel xeon "),
    )
)
_MISTYPED = {
    "xeon 5675": "xeon x5675",
    "xeon 8480+": "xeon platinum 8480+",
    "xeon 8490h": "xeon platinum 8490h",
    "xeon platinum 6252": "xeon gold 6252",
}
"""Key with a missing or wrong series -> the only CPU model of that number."""

_LARGEST_L3_MB, _LARGEST_L3_OF_A_CORE_MB = 2048, 32
_MIN_L2_PER_CORE_KB = 128
_OLDEST_TEST = pd.DateOffset(months=24)
_VENDORS = {"xeon": "Intel", "core": "Intel", "pentium": "Intel", "opteron": "AMD", "epyc": "AMD"}
_HEIGHT = re.compile(r"\b(\d{1,2}) ?R?U\b")
_SHAPES = (("tower", "tower"), ("blade", "blade"), ("module", "blade"), ("node", "blade"))
_CACHES = ("l1i_kb", "l1d_kb", "l2_kb_per_core", "l3_mb_per_chip", "l3_slice_mb")


def parse_machine(frame: pd.DataFrame, texts: Mapping[str, str]) -> pd.DataFrame:
    """Add the standard columns of a dump's texts; `texts` maps common names of _FIELDS to raw columns."""
    fields = {texts[name]: spec for name, spec in _FIELDS.items()}
    months = {texts[f"{name}_text"]: (parse_month, name) for name in _MONTHS}
    return dump_texts.parse_texts(frame, fields, months, texts["vendor"]).assign(
        cpu_model=map_texts(frame[texts["processor"]], java_cpu_model_key),
        jvm_vendor=map_texts(frame["JVM Vendor"], normalize_jvm_vendor),
        file_system=map_texts(frame["File System"], lambda text: text.strip().casefold() or None),
        form_factor=map_texts(frame[texts["form"]], parse_form_factor),
        # The texts of these benchmarks never state memory in the package, which the memory features need.
        hbm_gb=0.0,
        Memory=frame[texts["module"]],
        # All cores work in these benchmarks, as in a rate run; fewer cores than the CPU model has are typing errors.
        metric="rate",
    )


def build_machines(
    frame: pd.DataFrame,
    results: Results,
    *,
    columns: Sequence[Column],
    texts: Mapping[str, str],
    raw: Mapping[str, Path],
    options: Mapping[str, Any],
) -> Standardized:
    """Build the dataset from parsed rows: join and repair, quarantine values out of bounds, summarize the quality."""
    quarantine = results.quarantine
    frame, repairs = _join_and_repair(frame, raw.get(CATALOG))
    frame = frame.assign(source=quarantine.source, file=quarantine.file)
    frame = reject_out_of_bounds(frame, columns, quarantine)
    facts = {"published_until": options.get("published_until")}
    table = build_table(quarantine.source, frame, columns, facts)
    parsers = {texts[name]: parse for name, (parse, _) in _FIELDS.items()}
    parsers |= {texts[f"{name}_text"]: parse_month for name in _MONTHS}
    return Standardized(
        table,
        build_rejected_frame(quarantine.rejections),
        results.rows_in,
        {"identical_but_for_disclosure": results.identical},
        summarize_quality(frame, table, repairs, results.after, measure_coverages(frame, parsers)),
    )


def java_cpu_model_key(name: str) -> str:
    """Return the join key of a processor name such as `Xeon E5-2660 v2, 2.20 GHz (Turbo up to 3.00 GHz)`."""
    text = " ".join(name.casefold().split())
    for pattern, replacement in _REWRITES:
        text = " ".join(pattern.sub(replacement, text).split())
    key = cpu_model_key(text or name)
    return _MISTYPED.get(key, key)


def parse_form_factor(text: str) -> str | None:
    """Return the height of an enclosure such as 2U, else blade or tower, or None for another text."""
    height = _HEIGHT.search(text)
    folded = text.casefold()
    return f"{height[1]}U" if height else next((shape for word, shape in _SHAPES if word in folded), None)


def _join_and_repair(frame: pd.DataFrame, catalog: Path | None) -> tuple[pd.DataFrame, dict[str, int]]:
    """Join the processor catalog and repair known errors; return the frame and the changed rows by rule.

    Shapes: `frame` comes from `parse_machine`. It also has cores, chips, threads_stated, threads_total_stated and
    mem_total_gb of one node, and test_month.
    """
    facts = read_catalog(catalog) if catalog is not None else read_project_catalog()
    # The copy consolidates the blocks of a frame that grew by columns; later steps are slow without it.
    frame = join_processors(frame, facts).copy()
    # Without any known CPU model a column of facts holds no numbers, and comparisons with it would fail.
    numbers = [column.name for column in PROCESSOR if column.kind is Kind.NUMERICAL and column.name in frame]
    for name in (*numbers, "family_ddr_gen", "catalog_cores"):
        frame[name] = pd.to_numeric(frame[name]).astype("float64")
    repairs = repair.Repairs()
    # Some CPU models of SPECpower are older than the family tables; the first word of the name gives the vendor.
    vendor = frame["cpu_model"].str.partition(" ")[0].map(_VENDORS)
    unnamed = frame["cpu_vendor"].isna() & vendor.notna()
    repairs.put(frame, "cpu_vendor", unnamed, vendor, "vendor_from_name")
    frame["isa"] = frame["isa"].mask(unnamed, "x86")
    below = frame["max_turbo_mhz"] < frame["base_mhz"]
    repairs.put(frame, "max_turbo_mhz", below, frame["base_mhz"], "turbo_below_base")
    frame["cores_per_chip_of_cpu_model"] = repair.find_modal_cores(frame)
    repair.repair_cores(frame, repairs)
    _repair_threads(frame, repairs)
    _repair_cache_units(frame, repairs)
    repair.repair_caches(frame, repairs)
    _remove_impossible(frame, repairs)
    repair.repair_memory(frame, repairs)
    early = frame["test_month"] < frame["arrival_day"] - _OLDEST_TEST
    repairs.put(frame, "test_month", early, pd.Series(pd.NaT, index=frame.index), "test_month_years_before_arrival")
    repair.repair_dates(frame, repairs)
    unstated = frame["arch"].isna() & (frame["isa"] == "x86")
    repairs.put(frame, "arch", unstated, pd.Series("x86_64", index=frame.index), "arch_from_isa")
    frame = frame.assign(cpu_model_id=frame["cpu_model"].map(cpu_model_id), submission_id=name_submissions(frame))
    return frame, repairs.counts


def _repair_threads(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Derive threads per core from the total where that is possible; some rows state the total instead."""
    counted = frame["threads_total_stated"] / frame["cores_enabled_total"]
    stated = frame["threads_stated"].where(frame["threads_stated"].isin(THREADS_PER_CORE))
    frame["threads_per_core"] = counted.where(counted.isin(THREADS_PER_CORE), stated)
    repairs.counts["threads_per_core_from_total"] = int((frame["threads_per_core"] != frame["threads_stated"]).sum())


def _repair_cache_units(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Correct MB written for KB, and caches of the chip that are stated per core."""
    for column in ("l3_mb_per_chip", "l3_slice_mb"):
        large = frame[column] > _LARGEST_L3_MB
        repairs.put(frame, column, large, frame[column] / 1024, f"{column}_mb_for_kb")
    wrong = frame["l3_mb_per_chip"].isna() & (frame["l3_cores_per_slice"] == 1)
    wrong &= frame["l3_slice_mb"] > _LARGEST_L3_OF_A_CORE_MB
    repairs.put(frame, "l3_mb_per_chip", wrong, frame["l3_slice_mb"], "l3_core_for_chip")
    frame["l3_cores_per_slice"] = frame["l3_cores_per_slice"].mask(wrong)
    frame["l3_slice_mb"] = frame["l3_slice_mb"].mask(wrong)
    slight = (frame["l2_scope"] == "chip") & (
        frame["l2_kb"] / frame["cores_per_chip_of_cpu_model"] < _MIN_L2_PER_CORE_KB
    )
    repairs.put(frame, "l2_kb_per_core", slight, frame["l2_kb"], "l2_chip_for_core")
    large = frame["l2_kb_per_core"] >= 256 * 1024
    repairs.put(frame, "l2_kb_per_core", large, frame["l2_kb_per_core"] / 1024, "l2_mb_for_kb")


def _remove_impossible(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Remove cache and memory values beyond their bounds: such a typing error does not invalidate a result."""
    bounds = {column.name: column for column in (*PROCESSOR, *MEMORY)}
    for name in (*_CACHES, "dimm_gb", "dimm_ranks", "dimm_width", "mem_rated_mts", "mem_running_mts", "mem_eff_mts"):
        beyond = (frame[name] < bounds[name].low) | (frame[name] > bounds[name].high)
        frame[name] = frame[name].mask(beyond)
        repairs.counts[f"{name}_impossible"] = int(beyond.sum())
