"""Quality facts of PerfCastDB: parse and join coverage, and agreement of independent statements of one fact."""

from __future__ import annotations

from typing import Any

import pandas as pd

from perfcast.datasets._dimm_part_number import decode
from perfcast.datasets._perfcastdb_runs import READ_COLUMNS, Runs
from perfcast.datasets._perfcastdb_sku import Skus
from perfcast.datasets._perfcastdb_values import (
    CPU_MODEL,
    DEVICES,
    INSTALLED,
    ISA,
    LISTED_COUNT,
    LISTED_GB,
    LISTED_PARTS,
    LOGICAL_CPUS,
    OS,
    SLOT_SIZES,
    list_part_numbers,
    parse_slot_sizes,
)

_PARSED = {
    CPU_MODEL: "cpu_series",
    INSTALLED: "mem_total_gb",
    LISTED_PARTS: "dimm_vendor",
    ISA: "has_avx512",
    DEVICES: "dsa_count",
    OS: "os_version",
}
"""Stated text -> the standard column that is missing where the text was not parsed."""

_DECODED = ("vendor", "capacity_gb", "ranks", "width", "density_gbit", "rated_mts")


def list_stated_texts(runs: Runs) -> list[dict[str, str]]:
    """Return the stated texts of each run by column."""
    return [{name: str(row[name]) for name in READ_COLUMNS} for _, row in runs.frame.iterrows()]


def summarize_quality(frame: pd.DataFrame, runs: Runs, skus: Skus, repairs: dict[str, int]) -> dict[str, Any]:
    """Return the quality facts of the standard table `frame`; rows and counts are those of `runs`."""
    stated = runs.frame.reset_index(drop=True)
    numbers = sorted({number for texts in list_stated_texts(runs) for number in list_part_numbers(texts)})
    return {
        "repairs": repairs,
        "parse_coverage": {column: _measure_coverage(stated[column], frame[name]) for column, name in _PARSED.items()},
        "join_coverage": _measure_join_coverage(frame["sku_code"], skus),
        "part_numbers_undecoded": {
            name: [number for number in numbers if getattr(decode(number), name) is None] for name in _DECODED
        },
        "agreement": _measure_agreement(frame, stated),
    }


def _measure_coverage(texts: pd.Series, values: pd.Series) -> dict[str, Any]:
    stated = texts.str.strip() != ""
    parsed = stated & values.notna()
    return {
        "stated": int(stated.sum()),
        "complete": int(parsed.sum()),
        "share": round(float(parsed.sum() / stated.sum()), 6) if stated.any() else 1.0,
        "examples": sorted(set(texts[stated & ~parsed]))[:5],
    }


def _measure_join_coverage(codes: pd.Series, skus: Skus) -> dict[str, Any]:
    joined = codes.isin(skus.frame.index)
    return {
        "runs": int(joined.sum()),
        "share_of_rows": round(float(joined.mean()), 6) if len(joined) else 1.0,
        "codes_missing": sorted(set(codes[~joined].dropna())),
        "repeated_sheet_rows": skus.repeated,
        "conflicting_sheet_rows": skus.conflicts,
    }


def _measure_agreement(frame: pd.DataFrame, stated: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Count the runs with both statements of a fact, and the runs whose statements agree."""
    listed = {name: pd.to_numeric(stated[name]).astype("float64") for name in (LISTED_GB, LISTED_COUNT, LOGICAL_CPUS)}
    by_slot = stated[SLOT_SIZES].map(parse_slot_sizes)
    pairs = {
        "memory_total": (frame["mem_total_gb"], listed[LISTED_GB]),
        "memory_by_slot": (frame["mem_total_gb"], by_slot.map(lambda sizes: sum(sizes) if sizes else None)),
        "module_count": (frame["dimm_count"] + frame["hbm_count"], listed[LISTED_COUNT]),
        "module_size_of_part_number": (frame["dimm_gb"], frame["dimm_part"].map(_decode_capacity)),
        "logical_processors": (frame["cores_enabled_total"] * frame["threads_per_core"], listed[LOGICAL_CPUS]),
        "cores_of_sample": (frame["cores_per_chip_part"], frame["sku_cores"]),
        "base_clock_of_sample": (frame["base_mhz"], frame["sku_base_mhz"]),
        "l3_of_sample": (frame["l3_mb_per_chip"], frame["sku_l3_mb"]),
    }
    return {name: _compare(first.astype("float64"), other.astype("float64")) for name, (first, other) in pairs.items()}


def _decode_capacity(part_numbers: Any) -> float | None:
    """Return the capacity of a DIMM in GiB by its part number, None for several kinds or none."""
    return decode(part_numbers).capacity_gb if isinstance(part_numbers, str) else None


def _compare(first: pd.Series, other: pd.Series) -> dict[str, int]:
    return {"stated": int((first.notna() & other.notna()).sum()), "agree": int(((first - other).abs() < 1e-6).sum())}
