"""Parser of the text columns of the CPU2006 dump, and its coverage."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pandas as pd

from perfcast.datasets._spec_cpu2006_rows import TYPED
from perfcast.datasets._spec_cpu2017_text import extract_system_stems, map_texts, serialize_coverage
from perfcast.datasets._spec_cpu2017_vendors import canonical_company
from perfcast.parsing.cache import parse_l1, parse_l2, parse_l3, parse_other_cache
from perfcast.parsing.coverage import Parsed, measure, parse_column
from perfcast.parsing.older_compiler import parse_older_compiler
from perfcast.parsing.older_memory import parse_older_memory
from perfcast.parsing.older_system import (
    parse_characteristics,
    parse_older_operating_system,
    parse_older_orderable,
)
from perfcast.parsing.scalars import parse_flag, parse_month, parse_pointer_bits
from perfcast.processors.names import part_key

_MEMORY = (
    *("mem_total_gb", "mem_sum_gb", "hbm_gb", "dimm_count", "dimm_gb", "dimm_groups", "dimm_ranks", "dimm_width"),
    *("dimm_type", "ecc", "ddr_gen", "mem_rated_mts", "mem_running_mts", "mem_eff_mts"),
)
_FIELDS: dict[str, tuple[Callable[[str], Parsed], tuple[str, ...]]] = {
    "1st Level Cache": (parse_l1, ("l1i_kb", "l1d_kb", "l1_scope")),
    "2nd Level Cache": (parse_l2, ("l2_kb", "l2_scope", "l2_kb_per_core")),
    "3rd Level Cache": (parse_l3, ("l3_mb_per_chip", "l3_slice_mb", "l3_cores_per_slice", "l3_asymmetric")),
    "Other Cache": (parse_other_cache, ("l4_mb",)),
    "Memory": (parse_older_memory, _MEMORY),
    "Operating System": (parse_older_operating_system, ("os_name", "os_version", "kernel_series", "arch")),
    "Compiler": (parse_older_compiler, ("compiler_vendor", "compiler_major_minor", "mixed_compilers")),
    "CPU(s) Orderable": (parse_older_orderable, ("orderable_min", "orderable_max")),
    "Processor Characteristics": (parse_characteristics, ("turbo_mhz", "turbo_off", "bus_mts")),
}
"""Raw column -> its parser, and the parsed fields that become columns of the same name."""

_SINGLE: dict[str, tuple[Callable[[str], Parsed], str]] = {
    "Auto Parallelization": (parse_flag, "parallel"),
    "Base Pointer Size": (parse_pointer_bits, "base_ptr"),
    "Peak Pointer Size": (parse_pointer_bits, "peak_ptr"),
    "Test Date": (parse_month, "test_month"),
    "HW Avail": (parse_month, "hw_avail"),
    "SW Avail": (parse_month, "sw_avail"),
    "Updated": (parse_month, "updated"),
}
"""Raw column of a single value -> its parser and standard column."""

_DATES = ("test_month", "hw_avail", "sw_avail", "updated")
_SPELLINGS = (
    (re.compile(r"^(?:dual|quad)-core (?=intel|amd)"), ""),
    (re.compile(r"\bpentium dual core\b"), "pentium dual-core"),
    (re.compile(r"\be7- (?=\d)"), "e7-"),
    (re.compile(r" extreme edition$"), ""),
    (re.compile(r"^(xeon 5148) lv$"), r"\1"),
    (re.compile(r"\bultrasparc-"), "ultrasparc "),
    (re.compile(r"^(core 2) duo (?=x6800)"), r"\1 extreme "),
    (re.compile(r"^(core 2) quad (?=qx)"), r"\1 extreme "),
)
"""Spelling of a processor name -> the spelling of the catalog."""


def parse_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the standard columns of the text columns; every distinct text is parsed once."""
    parts: dict[str, pd.Series] = {}
    for column, (parse, names) in _FIELDS.items():
        parsed = parse_column(frame[column], parse)
        parts |= {name: parsed[name] for name in names}
    parts |= {name: parse_column(frame[column], parse)["value"] for column, (parse, name) in _SINGLE.items()}
    parts |= {name: pd.to_datetime(parts[name]) for name in _DATES}
    return frame.assign(
        **parts,
        metric=frame["suite"].str.extract("(rate|speed)$", expand=False),
        domain=frame["suite"].str.startswith("CINT").map({True: "int", False: "fp"}),
        part_key=map_texts(frame["Processor"], older_part_key),
        hw_vendor=map_texts(frame["Hardware Vendor"], canonical_company),
        tester=map_texts(frame["Tested By"], canonical_company),
        sponsor=map_texts(frame["Test Sponsor"], canonical_company),
        file_system=map_texts(frame["File System"], _parse_file_system),
        system_stem=extract_system_stems(frame),
    )


def older_part_key(name: str) -> str:
    """Return the join key of a processor name in a spelling of 2006 to 2014 (see `names.part_key`)."""
    folded = " ".join(name.casefold().split())
    for pattern, replacement in _SPELLINGS[:1]:
        folded = pattern.sub(replacement, folded)
    key = part_key(folded)
    for pattern, replacement in _SPELLINGS[1:]:
        key = pattern.sub(replacement, key)
    return key


def _parse_file_system(text: str) -> str | None:
    """Return the first word of a file system text, without the remarks that follow."""
    words = text.strip().casefold().replace(",", " ").split()
    return words[0] if words and not words[0].startswith("(") else None


def parse_coverage(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the coverage of each raw column: rows, stated rows, completely parsed rows, their share, examples."""
    parsers: dict[str, Callable[[str], Parsed]] = {column: parse for column, (parse, _) in _FIELDS.items()}
    parsers |= {column: parse for column, (parse, _) in _SINGLE.items()}
    parsers |= dict(TYPED.values())
    return serialize_coverage({column: measure(frame[column], parse) for column, parse in parsers.items()})
