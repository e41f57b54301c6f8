"""Published SPECpower_ssj2008 results: one row per result, scaled to one node; the targets are operations and watts."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from perfcast.domains import read_columns
from perfcast.domains.servers.datasets.spec_cpu import repairs as repair
from perfcast.domains.servers.datasets.spec_cpu import spec_dump
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine
from perfcast.domains.servers.parsing.cache import parse_l1, parse_l2, parse_l3, rewrite_cache_text
from perfcast.domains.servers.parsing.distinct_texts import parse_column
from perfcast.domains.servers.parsing.memory import parse_dimms, parse_module
from perfcast.domains.servers.parsing.software import normalize_jvm_vendor, parse_any_operating_system, parse_jvm
from perfcast.domains.servers.parsing.text_normalization import compile_pattern, normalize, read_rules, rewrite
from perfcast.domains.servers.processors.cpu_names import cpu_model_key
from perfcast.domains.servers.processors.facts import THREADS_PER_CORE
from perfcast.schema.table import Kind

_COLUMNS = {column.name: column for column in read_columns(spec_dump.__package__, "columns.csv", "power")}
"""Standard columns by name."""

_REWRITES = read_rules("processors of Java results")
_MISTYPED = {
    "xeon 5675": "xeon x5675",
    "xeon 8480+": "xeon platinum 8480+",
    "xeon 8490h": "xeon platinum 8490h",
    "xeon platinum 6252": "xeon gold 6252",
}
"""Key with a missing or wrong series -> the only CPU model of that number."""

_NUMBER = compile_pattern(r"^\d{1,12}(?:\.\d{1,12})?(?:e\+?\d{1,2})?$")
_THOUSANDS = compile_pattern(r"(?<=\d),(?=\d{3}(?:\D|$))")
_MAX_CHIPS = 64
_LARGEST_L3_MB = 2048
_LARGEST_L3_OF_A_CORE_MB = 32
_MIN_L2_PER_CORE_KB = 128
_LARGEST_L2_PER_CORE_KB = 256 * 1024
_OLDEST_TEST = pd.DateOffset(months=24)
_VENDORS = {
    "xeon": "Intel",
    "core": "Intel",
    "pentium": "Intel",
    "opteron": "AMD",
    "epyc": "AMD",
}
_HEIGHT = re.compile(r"\b(\d{1,2}) ?R?U\b")
_SHAPES = (
    ("tower", "tower"),
    ("blade", "blade"),
    ("module", "blade"),
    ("node", "blade"),
)
_LIMITED = (
    "l1i_kb",
    "l1d_kb",
    "l2_kb_per_core",
    "l3_mb_per_chip",
    "l3_slice_mb",
    "dimm_gb",
    "dimm_ranks",
    "dimm_width",
    "mem_rated_mts",
    "mem_running_mts",
    "mem_eff_mts",
)


def parse_measured(text: str) -> float | None:
    """Parse a number without sign, such as `1.34723e+06` or `1,024`."""
    value = _THOUSANDS.sub("", normalize(text))
    return float(value) if _NUMBER.match(value) else None


def java_cpu_model_key(name: str) -> str:
    """Return the join key of a processor name such as `Xeon E5-2660 v2, 2.20 GHz (Turbo up to 3.00 GHz)`."""
    key = cpu_model_key(rewrite(name.casefold(), _REWRITES) or name)
    return _MISTYPED.get(key, key)


def parse_form_factor(text: str) -> str | None:
    """Return the height of an enclosure such as 2U, else blade or tower, or None for another text."""
    height = _HEIGHT.search(text)
    folded = text.casefold()
    return f"{height[1]}U" if height else next((shape for word, shape in _SHAPES if word in folded), None)


READERS: Mapping[str, spec_dump.Reader] = {
    "number": parse_measured,
    "l1": lambda text: parse_l1(rewrite_cache_text(text)),
    "l2": lambda text: parse_l2(rewrite_cache_text(text)),
    "l3": lambda text: parse_l3(rewrite_cache_text(text)),
    "dimms": parse_dimms,
    "module": parse_module,
    "virtual machine": parse_jvm,
    "operating system": parse_any_operating_system,
    "cpu model": java_cpu_model_key,
    "JVM vendor": normalize_jvm_vendor,
    "form factor": parse_form_factor,
}
"""Readers of `dump_columns.csv`."""


def reject_impossible_counts(frame: pd.DataFrame, quarantine: Quarantine) -> pd.DataFrame:
    """Quarantine rows with impossible counts. Shapes: `frame` has the columns cores, chips and nodes."""
    per_chip = frame["cores"] / frame["chips"].replace(0, np.nan)
    whole = (per_chip % 1 == 0) & (frame["chips"] % 1 == 0) & (frame["nodes"] % 1 == 0) & (frame["nodes"] >= 1)
    possible = whole & per_chip.between(1, spec_dump.MAX_CORES_PER_CHIP) & frame["chips"].between(1, _MAX_CHIPS)
    detail = spec_dump.describe_counts(frame, ["cores", "chips", "nodes"])
    return quarantine.reject(frame, ~possible, "impossible_counts", detail)


def repair_machines(frame: pd.DataFrame, repairs: repair.Repairs) -> pd.DataFrame:
    """Repair known errors of rows with joined facts.

    Shapes: `frame` has cores, chips, threads_stated and mem_total_gb of one node, and test_month.
    """
    # Without any known CPU model a column of facts holds no numbers, and comparisons with it would fail.
    facts = [
        column.name for column in _COLUMNS.values() if column.group == "processor" and column.kind is Kind.NUMERICAL
    ]
    listed = [name for name in facts if name in frame]
    for name in [*listed, "family_ddr_gen", "listed_cores"]:
        frame[name] = pd.to_numeric(frame[name]).astype("float64")
    # Some CPU models of SPECpower are older than the family tables; the first word of the name gives the vendor.
    vendor = frame["cpu_model"].astype("str").str.partition(" ")[0].map(_VENDORS)
    unnamed = frame["cpu_vendor"].isna() & vendor.notna()
    frame["cpu_vendor"] = frame["cpu_vendor"].astype("str")
    repairs.put(frame, "cpu_vendor", unnamed, vendor, "vendor_from_name")
    frame["isa"] = frame["isa"].astype("str").mask(unnamed, "x86")
    frame["cores_per_chip_of_cpu_model"] = repair.find_modal_cores(frame)
    repair.repair_cores(frame, repairs)
    _repair_threads(frame, repairs)
    _repair_cache_units(frame, repairs)
    repair.repair_caches(frame, repairs)
    for name in _LIMITED:  # such a typing error does not invalidate a result
        beyond = (frame[name] < _COLUMNS[name].low) | (frame[name] > _COLUMNS[name].high)
        repairs.put(frame, name, beyond, np.nan, f"{name}_impossible")
    repair.repair_memory(frame, repairs)
    early = frame["test_month"] < frame["arrival_day"] - _OLDEST_TEST
    repairs.put(frame, "test_month", early, pd.Series(pd.NaT, index=frame.index), "test_month_years_before_arrival")
    repair.repair_dates(frame, repairs)
    repair.repair_unstated(frame, repairs)
    return frame


def _repair_threads(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Take the threads of a core where the stated number is one of a core: some rows state the total instead."""
    stated = frame["threads_stated"]
    frame["threads_per_core"] = stated.where(stated.isin(THREADS_PER_CORE))
    repairs.counts["threads_per_core_from_total"] = int((frame["threads_per_core"] != stated).sum())


def _repair_cache_units(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Correct MB written for KB, and caches of the chip that are stated per core."""
    for column in ("l3_mb_per_chip", "l3_slice_mb"):
        large = frame[column] > _LARGEST_L3_MB
        repairs.put(frame, column, large, frame[column] / 1024, f"{column}_mb_for_kb")
    wrong = frame["l3_mb_per_chip"].isna() & (frame["l3_cores_per_slice"] == 1)
    wrong &= frame["l3_slice_mb"] > _LARGEST_L3_OF_A_CORE_MB
    repairs.put(frame, "l3_mb_per_chip", wrong, frame["l3_slice_mb"], "l3_core_for_chip")
    frame[["l3_cores_per_slice", "l3_slice_mb"]] = frame[["l3_cores_per_slice", "l3_slice_mb"]].mask(wrong)
    per_core = frame["l2_kb"] / frame["cores_per_chip_of_cpu_model"]
    slight = (frame["l2_scope"] == "chip") & (per_core < _MIN_L2_PER_CORE_KB)
    repairs.put(frame, "l2_kb_per_core", slight, frame["l2_kb"], "l2_chip_for_core")
    large = frame["l2_kb_per_core"] >= _LARGEST_L2_PER_CORE_KB
    repairs.put(frame, "l2_kb_per_core", large, frame["l2_kb_per_core"] / 1024, "l2_mb_for_kb")


SUITE = "SPECpower_ssj2008"
LOADS = tuple(range(100, 0, -10))
OPERATIONS = tuple(f"ssj_ops @ {load}% of target load" for load in LOADS)
_LOADED_WATTS = [f"Average watts @ {load}% of target load" for load in LOADS[:-1]]
WATTS = (*_LOADED_WATTS, "Average watts@10% of target load", "Average watts @ active idle")
"""Columns as published, including their blanks.

Levels below 100 % only check the overall result. They are measured with the targets, so they are no features."""

_CORES_IN_NAME = r"(?i)\b(\d{1,3}) Cores\b"
_ROUNDING = 0.01
"""Largest relative rounding error of the sums of published levels."""


def _screen(frame: pd.DataFrame, quarantine: Quarantine) -> pd.DataFrame:
    """Quarantine withdrawn results, inconsistent results, and impossible counts; divide the counts by the nodes."""
    # SPEC replaces a non-compliant result by 0; its levels are not valid measurements.
    withdrawn = frame["ssj_ops_per_watt"] == 0
    frame = quarantine.reject(frame, withdrawn, "no_score", frame["result_id"].astype("str"))
    operations, watts = (frame[[f"level {name}" for name in names]].sum(axis=1) for names in (OPERATIONS, WATTS))
    ratio = (operations / watts.where(watts > 0) / frame["ssj_ops_per_watt"]).fillna(0.0)
    text = "levels give " + ratio.map("{:.4g}".format).astype("str") + " of the overall result"
    frame = quarantine.reject(frame, (ratio - 1).abs() > _ROUNDING, "inconsistent_result", text)
    # One row lacks chips; they follow from cores and cores per chip.
    per_chip = parse_column(frame["# Cores Per Chip"], parse_measured)["value"]
    frame = frame.assign(chips=frame["chips"].mask(frame["chips"] == 0, frame["cores"] / per_chip))
    # Two rows count every core of a 24-core chip as a chip; the processor's name gives its cores.
    implied = frame["cores"] / frame["Processor"].str.extract(_CORES_IN_NAME, expand=False).astype("float64")
    frame = frame.assign(chips=frame["chips"].mask(implied < frame["chips"], implied))
    nodes = frame["nodes"].where(frame["nodes"] > 0)
    frame = frame.assign(
        chips=frame["chips"] / nodes,
        cores=frame["cores"] / nodes,
        os=frame["Operating System"].astype("str") + " " + frame["Operating System Version"].astype("str"),
        suite=SUITE,
    )
    return reject_impossible_counts(frame, quarantine)


def _derive(frame: pd.DataFrame) -> pd.DataFrame:
    """Divide operations, watts and memory by the nodes.

    A multi-node result publishes sums over equal machines in one enclosure. Divided by the nodes, it is comparable to
    single machines; a fifth of all results are of this kind. Shared fans and power supplies are divided too, so `nodes`
    stays a feature. Operations per watt do not change. Cores and chips are already per node.
    """
    nodes = frame["nodes"]
    # DIMMs are stated per node; on a few rows so is the capacity.
    memory = frame["mem_stated_gb"]
    stated_per_node = (memory == frame["mem_sum_gb"]) & (nodes > 1)
    return frame.assign(
        ssj_ops_100=frame[f"level {OPERATIONS[0]}"] / nodes,
        watts_100=frame[f"level {WATTS[0]}"] / nodes,
        watts_idle=frame[f"level {WATTS[-1]}"] / nodes,
        mem_total_gb=(memory / nodes).mask(stated_per_node, memory),
        # 0 marks power supplies shared in an enclosure.
        psu_count=frame["psu_count"].where(frame["psu_count"] > 0),
        psu_w=frame["psu_w"].where(frame["psu_w"] > 0),
        # The texts never state memory in the package. All cores work, as in a rate run.
        hbm_gb=0.0,
        Memory=frame["Memory Description"],
        metric="rate",
    )


DUMP = spec_dump.SpecDump(
    source="spec_power", readers=READERS, derived=("os",), screen=_screen, derive=_derive, repair=repair_machines
)

build = DUMP.build
pack = DUMP.pack
