"""Parser of the text columns of the CPU2017 dump, and its coverage."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import pandas as pd

from perfcast.data.datasets.spec_cpu.cpu2017_repairs import normalize_company
from perfcast.data.parsing.cache import parse_l1, parse_l2, parse_l3, parse_other_cache
from perfcast.data.parsing.compiler import is_under_xalanc_notice, parse_compiler
from perfcast.data.parsing.distinct_texts import (
    Coverage,
    Parsed,
    expand_codes,
    is_coded,
    map_distinct,
    measure_coverage,
    number_combinations,
    parse_column,
)
from perfcast.data.parsing.memory import parse_memory
from perfcast.data.parsing.operating_system import parse_operating_system
from perfcast.data.parsing.processor_texts import parse_orderable
from perfcast.data.parsing.scalars import parse_flag, parse_month, parse_number, parse_pointer_bits
from perfcast.data.parsing.storage import parse_storage
from perfcast.data.processors.cpu_names import part_key

_parse_number = partial(parse_number, low=0)
_FIELDS: dict[str, tuple[Callable[[str], Parsed], dict[str, str]]] = {
    "1st Level Cache": (parse_l1, {"l1i_kb": "l1i_kb", "l1d_kb": "l1d_kb"}),
    "2nd Level Cache": (
        parse_l2,
        {"l2_kb": "l2_kb", "l2_scope": "l2_scope", "l2_kb_per_core": "l2_kb_per_core"},
    ),
    "3rd Level Cache": (
        parse_l3,
        {
            "l3_mb_per_chip": "l3_mb_per_chip",
            "l3_slice_mb": "l3_slice_mb",
            "l3_cores_per_slice": "l3_cores_per_slice",
            "l3_asymmetric": "l3_asymmetric",
        },
    ),
    "Other Cache": (parse_other_cache, {"l4_mb": "l4_mb"}),
    "Memory": (
        parse_memory,
        {
            "mem_total_gb": "mem_total_gb",
            "mem_sum_gb": "mem_sum_gb",
            "hbm_gb": "hbm_gb",
            "dimm_count": "dimm_count",
            "dimm_gb": "dimm_gb",
            "dimm_groups": "dimm_groups",
            "dimm_ranks": "dimm_ranks",
            "dimm_width": "dimm_width",
            "dimm_type": "dimm_type",
            "ecc": "ecc",
            "ddr_gen": "ddr_gen",
            "mem_rated_mts": "mem_rated_mts",
            "mem_running_mts": "mem_running_mts",
            "mem_eff_mts": "mem_eff_mts",
        },
    ),
    "Storage": (parse_storage, {"storage_class": "storage_class", "storage_gb": "storage_gb"}),
    "Operating System": (
        parse_operating_system,
        {"os_name": "os_name", "os_version": "os_version", "kernel_series": "kernel_series", "arch": "arch"},
    ),
    "Compiler": (
        parse_compiler,
        {
            "compiler_vendor": "compiler_vendor",
            "compiler_major_minor": "compiler_major_minor",
            "compiler_classic": "compiler_classic",
            "oneapi": "oneapi",
            "mixed_fortran": "mixed_fortran",
        },
    ),
    "CPU(s) Orderable": (parse_orderable, {"orderable_min": "orderable_min", "orderable_max": "orderable_max"}),
    "Parallel": (parse_flag, {"value": "parallel"}),
    "Base Pointer Size": (parse_pointer_bits, {"value": "base_ptr"}),
    "Peak Pointer Size": (parse_pointer_bits, {"value": "peak_ptr"}),
    "Energy Base Result": (_parse_number, {"value": "energy_base"}),
    "Test Date": (parse_month, {"value": "test_month"}),
    "HW Avail": (parse_month, {"value": "hw_avail"}),
    "SW Avail": (parse_month, {"value": "sw_avail"}),
    "Updated": (parse_month, {"value": "updated"}),
}
"""Raw column -> its parser, and parsed field -> standard or intermediate column."""

_PARSED_ELSEWHERE: dict[str, Callable[[str], Parsed]] = {
    "Base Result": _parse_number,
    "Peak Result": _parse_number,
    "# Cores": _parse_number,
    "# Chips": _parse_number,
    "# Enabled Threads Per Core": _parse_number,
    "Processor MHz": _parse_number,
    "Published": parse_month,
}
_METRIC = re.compile("(rate|speed)$")
_DATES = ("test_month", "hw_avail", "sw_avail", "updated")
_CLOCK = re.compile(r"@?\s*\b\d+(?:\.\d+)?\s*[GM]Hz\b", re.IGNORECASE)
_CORE_WORDS = re.compile(r"\b\d+-Core\b|\bProcessors?\b|\bCPUs?\b|\(redacted\)", re.IGNORECASE)
_EMPTY_BRACKETS = re.compile(r"\(\s*[,;:/\s]*\)")
_STRAY = re.compile(r"\s*[,;]\s*(?=[,;)]|$)|(?<=\()\s*[,;]\s*")


def parse_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the standard columns of the text columns; every distinct text is parsed once."""
    parts: dict[str, pd.Series] = {}
    for column, (parse, names) in _FIELDS.items():
        parsed = parse_column(frame[column], parse, names)
        parts |= {name: parsed[field] for field, name in names.items()}
    parts |= {name: pd.to_datetime(parts[name]) for name in _DATES}
    noticed = map_distinct(frame["Compiler"], lambda text: is_under_xalanc_notice("CINT", parse_compiler(text)))
    integer = frame["suite"].str.startswith("CINT")
    return frame.assign(
        **parts,
        metric=map_texts(frame["suite"], lambda suite: match[0] if (match := _METRIC.search(suite)) else None),
        domain=map_texts(frame["suite"], lambda suite: "int" if suite.startswith("CINT") else "fp"),
        xalanc_notice=(integer & noticed).astype("float64"),
        part_key=map_texts(frame["Processor"], part_key),
        hw_vendor=map_texts(frame["Hardware Vendor"], normalize_company),
        tester=map_texts(frame["Tested By"], normalize_company),
        sponsor=map_texts(frame["Test Sponsor"], normalize_company),
        file_system=map_texts(frame["File System"], lambda text: text.strip().casefold() or None),
        system_stem=extract_system_stems(frame),
    )


def map_texts(texts: pd.Series, function: Callable[[str], str | None]) -> pd.Series:
    """Apply a function to each text, once per distinct text; the result of coded texts is coded."""
    if is_coded(texts):
        return map_distinct(texts, function)
    return texts.map({text: function(text) for text in texts.unique()})


def extract_system_stems(frame: pd.DataFrame) -> pd.Series:
    """Return the names of the machines without processor and clock, computed once per distinct pair of texts."""
    numbers, first = number_combinations(frame, ["System", "Processor"])
    pairs = frame[["System", "Processor"]].iloc[first].astype("str")
    stems = expand_codes([extract_system_stem(*pair) for pair in pairs.itertuples(index=False)], numbers, frame.index)
    return stems if is_coded(frame["System"]) else stems.astype("str")


def extract_system_stem(system: str, processor: str) -> str:
    """Return the name of a machine without processor and clock, and without their brackets."""
    text, name = " ".join(system.split()), " ".join(processor.split())
    text = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE) if name else text
    text = _CORE_WORDS.sub(" ", _CLOCK.sub(" ", text))
    before = None
    while text != before:
        before = text
        text = _EMPTY_BRACKETS.sub(" ", _STRAY.sub(" ", text)).strip()
    return " ".join(text.split()).replace("( ", "(").replace(" )", ")") or " ".join(system.split())


def parse_coverage(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the coverage of each raw column: rows, stated rows, completely parsed rows, their share, examples."""
    parsers = {column: parse for column, (parse, _) in _FIELDS.items()} | _PARSED_ELSEWHERE
    measured = {column: measure_coverage(frame[column], parse) for column, parse in parsers.items()}
    # Links differ on every row, so parsing them again would take longer than all other columns together.
    parsed = int(frame["disclosure_parsed"].sum())
    measured["Disclosure"] = Coverage(rows=len(frame), stated=len(frame), complete=parsed, examples=())
    return serialize_coverage(measured)


def serialize_coverage(measured: Mapping[str, Coverage]) -> dict[str, dict[str, Any]]:
    """Convert coverages to plain values for quality.json."""
    return {
        column: {**asdict(coverage), "examples": list(coverage.examples), "share": round(coverage.share, 6)}
        for column, coverage in measured.items()
    }
