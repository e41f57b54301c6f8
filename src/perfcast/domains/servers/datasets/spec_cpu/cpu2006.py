"""Published SPEC CPU2006 results: one row per result; the target is the base score (`Baseline`)."""

from __future__ import annotations

import re
from functools import partial

import pandas as pd

from perfcast.domains.servers.datasets.spec_cpu import repairs as repair
from perfcast.domains.servers.datasets.spec_cpu import spec_dump
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import name_suites, screen_scores, split_suite
from perfcast.domains.servers.parsing.memory import parse_older_memory
from perfcast.domains.servers.parsing.scalars import parse_characteristics, parse_older_orderable
from perfcast.domains.servers.parsing.software import parse_older_compiler, parse_older_operating_system
from perfcast.domains.servers.parsing.text_normalization import read_rules, rewrite
from perfcast.domains.servers.processors.cpu_names import cpu_model_key

FIRST_TEST = pd.Timestamp(2006, 1, 1)
"""First possible test, on a release candidate; an older month is a typing error."""

_CORE_COUNT = re.compile(r"^(?:dual|quad)-core (?=intel|amd)")
_SPELLINGS = read_rules("processors of 2006 to 2014")
"""Spelling of a processor name -> the spelling of the tables of facts."""


def older_cpu_model_key(name: str) -> str:
    """Return the join key of a processor name in a spelling of 2006 to 2014 (see `cpu_model_key`)."""
    folded = " ".join(name.casefold().split())
    return rewrite(cpu_model_key(_CORE_COUNT.sub("", folded)), _SPELLINGS)


def _parse_file_system(text: str) -> str | None:
    """Return the first word of a file system text, without the remarks that follow."""
    words = text.strip().casefold().replace(",", " ").split()
    return words[0] if words and not words[0].startswith("(") else None


def _repair(frame: pd.DataFrame, repairs: repair.Repairs) -> pd.DataFrame:
    frame["cores_per_chip_stated"] = frame["stated"]
    frame["cores_per_chip_of_cpu_model"] = repair.find_modal_cores(frame)
    _count_cores(frame, repairs)
    _complete_clocks(frame, repairs)
    whole = frame["l1_scope"] == "chip"
    for column in ("l1i_kb", "l1d_kb"):
        share = frame[column] / frame["cores_per_chip_of_cpu_model"]
        repairs.put(frame, column, whole & frame[column].notna(), share, f"{column}_chip_to_core")
    repair.repair_caches(frame, repairs)
    repair.repair_memory(frame, repairs)
    early = frame["test_month"] < FIRST_TEST
    repairs.put(frame, "test_month", early, pd.Series(pd.NaT, index=frame.index), "test_month_before_the_suite")
    repair.repair_dates(frame, repairs)
    frame["q_date"] = frame["q_date"].mask(early, 1.0)
    repair.repair_unstated(frame, repairs)
    repair.add_flags(frame)
    return frame


def _count_cores(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Add the enabled cores: as stated, but at most the cores of the CPU model.

    A larger number counts threads or is a typing error. A smaller number stands, because firmware can disable cores.
    """
    usual, stated = frame["cores_per_chip_of_cpu_model"], frame["cores_per_chip_stated"]
    frame["q_cores_mismatch"] = (stated != usual).astype("float64")
    frame["cores_enabled_total"] = frame["cores"]
    total = usual * frame["chips"]
    repairs.put(frame, "cores_enabled_total", frame["cores"] > total, total, "cores_above_cpu_model")


def _complete_clocks(frame: pd.DataFrame, repairs: repair.Repairs) -> None:
    """Set turbo and bus rate as stated, else to the CPU model's most frequent value, else from the table of models."""
    off = frame["turbo_off"] == 1
    for column in ("turbo_mhz", "bus_mts"):
        known = frame.groupby("cpu_model")[column].agg(lambda values: values.mode().min())
        usual = frame["cpu_model"].map(known)
        repairs.put(frame, column, frame[column].isna() & usual.notna() & ~off, usual, f"{column}_of_cpu_model")
    listed = frame["max_turbo_mhz"]
    frame["max_turbo_mhz"] = frame["turbo_mhz"].where(frame["turbo_mhz"].notna(), listed)
    repairs.put(frame, "max_turbo_mhz", off, frame["base_mhz"], "turbo_off")


DUMP = spec_dump.SpecDump(
    source="spec_cpu2006",
    suites=name_suites(2006),
    readers={
        "memory": parse_older_memory,
        "operating system": parse_older_operating_system,
        "compiler": parse_older_compiler,
        "orderable": parse_older_orderable,
        "characteristics": parse_characteristics,
        "cpu model": older_cpu_model_key,
        "file system": _parse_file_system,
    },
    screen=partial(screen_scores, first="2006-08"),
    derive=lambda frame: frame.assign(**split_suite(frame["suite"]), stated=frame["cores_per_chip_stated"]),
    repair=_repair,
)

build = DUMP.build
"""Standardize the dump, which has no identifiers and no dates of arrival."""
