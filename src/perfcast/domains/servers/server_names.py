"""Names of servers: CPU models, products, tasks and fields, and what a name tells."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any

import pandas as pd

from perfcast.domains.servers.processors import cloud_instances
from perfcast.domains.servers.processors.cpu_names import (
    cpu_model_key,
    drop_tier_number,
    find_family,
    shorten_key,
    typed_cpu_key,
)
from perfcast.domains.servers.server_fields import SERVER_FIELDS
from perfcast.inference.machine_fields import Cell
from perfcast.inference.rules.names import NamedEntity, Names

_JOINED_LINE = re.compile(r"^(xeon|epyc|ryzen|altra)[ -]?(bronze|silver|gold|platinum|max)?[ -]?(?=\w*\d)")
"""Line and tier without the blanks around them: `XeonGold6544Y`, `EPYC-9575F`."""
_CORES_AND_CLOCK = re.compile(r"\b(?:altra|ampereone)\b.* [a-z](\d{2,3})-(\d{2})")
"""Names of Ampere tell the cores and the clock in tenths of a GHz: Q80-30."""
_VENDORS = (
    (re.compile(r"\b(?:xeon|core|pentium|celeron|atom)\b"), "Intel", "x86"),
    (re.compile(r"\b(?:epyc|ryzen|opteron|threadripper|athlon)\b"), "AMD", "x86"),
    (re.compile(r"\b(?:altra|ampereone)\b"), "Ampere", "arm"),
    (re.compile(r"^power ?\d"), "IBM", "power"),
)
"""Word of a line -> vendor and instruction set."""


def find_vendor(key: str) -> tuple[str, str] | None:
    """Return vendor and instruction set of a CPU model by its name, None for an unknown line."""
    return next(((vendor, isa) for pattern, vendor, isa in _VENDORS if pattern.search(key)), None)


class ServerWords(Names):
    """Words of servers, without knowledge about them."""

    entity_name = "CPU model"
    named_field = "processor"
    naming_columns = ("chips", "system_stem", "cores_per_chip_stated", "cores_per_chip_of_cpu_model", "cpu_model_id")
    read_key = staticmethod(typed_cpu_key)
    shorten_key = staticmethod(shorten_key)

    def name_machine(self, entity: str, cells: Mapping[str, Any]) -> str:
        """Return a name made of product and processors."""
        name = "a new CPU model" if pd.isna(cells[entity]) else str(cells[entity])
        if cloud_instances.is_instance({"cpu_model": name, "cpu_model_id": cells.get("cpu_model_id")})[0]:
            return name  # its processors are not its number: an instance is one machine
        chips, stem = cells.get("chips"), cells.get("system_stem")
        name = name if chips is None or pd.isna(chips) else f"{chips:g} x {name}"
        enabled, whole = cells.get("cores_per_chip_stated"), cells.get("cores_per_chip_of_cpu_model")
        if enabled is not None and whole is not None and enabled < whole:
            name += f" with {enabled:g} of {whole:g} cores"
        return name if stem is None or pd.isna(stem) else f"{stem}, {name}"

    def model_number(self, key: str) -> str:
        """Return the letters and digits of the model, without line and tier."""
        return super().model_number(drop_tier_number(key))


class ServerNames(ServerWords):
    """Names of servers that SPEC measured; `task_aliases` maps SPEC's metrics, which answers name, to tasks."""

    fields = SERVER_FIELDS
    new_entity_fields: Mapping[str, tuple[str, ...]] = {
        "cores": ("cores_per_chip_stated", "cores_per_chip_of_cpu_model", "cores_enabled_total"),
        "clock": ("base_mhz",),
    }
    new_entity_hints = ("cores", "clock", "family", "turbo", "tdp", "l3")
    group_columns = ("family", "series", "cpu_vendor")
    design_column = "family"
    description_levels = (
        ("cpu_model",),
        ("chips",),
        ("dimm_count", "dimm_gb", "ddr_gen", "mem_rated_mts"),
        ("cores_per_chip_stated", "base_mhz", "max_turbo_mhz", "l3_mb_per_chip", "tdp_w"),
    )
    named_columns = ("cpu_model_id", "family", "series", "tier", "suffix")

    def __init__(self, task_aliases: Mapping[str, str]) -> None:
        self.task_aliases = task_aliases
        self.task_titles = {task: metric for metric, task in task_aliases.items()}

    def alias_tasks(self, tasks: list[str]) -> Mapping[str, str]:
        """Return SPEC's metrics, and short names such as int_rate, of tasks."""
        return {**{re.sub(r"^c(int|fp)\d+", r"\1_", task.lower()): task for task in tasks}, **self.task_aliases}

    def read_entity_name(self, name: str) -> NamedEntity:
        """Return the family of a name that matches a naming rule, its vendor, and cores and clock that it contains."""
        key = cpu_model_key(name)
        spellings = (key, " ".join(_JOINED_LINE.sub(r"\1 \2 ", key).split()))
        normalized, family = next(((each, ruled) for each in spellings if (ruled := find_family(each))), (name, ""))
        cells: dict[str, Cell] = {}
        if match := _CORES_AND_CLOCK.search(key):
            cells |= {"cores_per_chip_of_cpu_model": float(match[1]), "base_mhz": float(match[2]) * 100}
        vendor = find_vendor(spellings[1])
        if vendor and not family:
            cells |= {"cpu_vendor": vendor[0], "isa": vendor[1]}
        return NamedEntity(normalized, family, cells)

    def read_this_machine(self, given: Container[str]) -> tuple[dict[str, object], str]:
        """Read the hardware."""
        from perfcast.domains.servers.hardware_info import read_hardware

        hardware = read_hardware().without(given)
        return {reading.column: reading.value for reading in hardware.readings}, hardware.as_text()
