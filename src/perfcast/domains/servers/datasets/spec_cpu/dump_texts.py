"""Standard columns from the text columns of a dump, and the coverage of the parsers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from perfcast.domains.servers.parsing.company_names import normalize_company
from perfcast.domains.servers.parsing.distinct_texts import (
    Coverage,
    Parsed,
    expand_codes,
    is_coded,
    map_distinct,
    measure_coverage,
    number_combinations,
    parse_column,
)

Parser = Callable[[str], Parsed]
Fields = Mapping[str, tuple[Parser, tuple[str, ...]]]
"""Raw column -> its parser, and the parsed fields that become columns of the same name."""

Values = Mapping[str, tuple[Parser, str]]
"""Raw column of a single value -> its parser and standard column."""

MEMORY_FIELDS = (
    *("mem_total_gb", "mem_sum_gb", "hbm_gb", "dimm_count", "dimm_gb", "dimm_groups", "dimm_ranks", "dimm_width"),
    *("dimm_type", "ecc", "ddr_gen", "mem_rated_mts", "mem_running_mts", "mem_eff_mts"),
)
L3_FIELDS = ("l3_mb_per_chip", "l3_slice_mb", "l3_cores_per_slice", "l3_asymmetric")
UNPARSED = ("Hardware Vendor", "System", "Processor", "File System", "Tested By", "Test Sponsor")
"""Raw columns of names, which `parse_texts` of the datasets maps without a parser."""

SYSTEM_FIELDS = ("os_name", "os_version", "kernel_series", "arch")
_DATES = ("test_month", "hw_avail", "sw_avail", "updated")
_CLOCK = re.compile(r"@?\s*\b\d+(?:\.\d+)?\s*[GM]Hz\b", re.IGNORECASE)
_CORE_WORDS = re.compile(r"\b\d+-Core\b|\bProcessors?\b|\bCPUs?\b|\(redacted\)", re.IGNORECASE)
_EMPTY_BRACKETS = re.compile(r"\(\s*[,;:/\s]*\)")
_STRAY = re.compile(r"\s*[,;]\s*(?=[,;)]|$)|(?<=\()\s*[,;]\s*")


def parse_texts(frame: pd.DataFrame, fields: Fields, values: Values, vendor: str = "Hardware Vendor") -> pd.DataFrame:
    """Add parsed columns, companies and the stem of the system; `vendor` is the raw column of the machine's vendor."""
    columns: dict[str, pd.Series] = {}
    for column, (parse, names) in fields.items():
        parsed = parse_column(frame[column], parse, names)
        columns |= {name: parsed[name] for name in names}
    columns |= {
        name: parse_column(frame[column], parse, ["value"])["value"] for column, (parse, name) in values.items()
    }
    columns |= {name: pd.to_datetime(columns[name]) for name in _DATES if name in columns}
    return frame.assign(
        **columns,
        hw_vendor=map_texts(frame[vendor], normalize_company),
        tester=map_texts(frame["Tested By"], normalize_company),
        sponsor=map_texts(frame["Test Sponsor"], normalize_company),
        system_stem=extract_system_stems(frame),
    )


def split_suite(suite: pd.Series) -> dict[str, pd.Series]:
    """Return the columns metric (rate or speed) and domain (int or fp) of suite names."""
    return {
        "metric": map_texts(suite, lambda name: "rate" if name.endswith("rate") else "speed"),
        "domain": map_texts(suite, lambda name: "int" if name.startswith("CINT") else "fp"),
    }


def measure_coverages(frame: pd.DataFrame, parsers: Mapping[str, Parser]) -> dict[str, dict[str, Any]]:
    """Return the coverage of each raw column: rows, stated rows, completely parsed rows, their share, examples."""
    return {column: describe_coverage(measure_coverage(frame[column], parse)) for column, parse in parsers.items()}


def describe_coverage(coverage: Coverage) -> dict[str, Any]:
    """Convert a coverage to plain values for quality.json."""
    return {**asdict(coverage), "examples": list(coverage.examples), "share": round(coverage.share, 6)}


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
