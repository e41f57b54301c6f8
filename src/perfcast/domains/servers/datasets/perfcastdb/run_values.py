"""Parser of one run's stated texts: standard values with repaired units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from perfcast.domains import read_table
from perfcast.domains.servers.parsing.software import parse_operating_system
from perfcast.domains.servers.processors.cpu_names import cpu_model_key

CPU_MODEL = "SVR.CPU.CPU Model"
INSTALLED = "SVR.Memory.Installed"
SLOT_SIZES = "META.metadata.cscope.MEMINFO.SIZE"
SLOT_PARTS = "META.metadata.cscope.MEMINFO.PART_NO"
LISTED_PARTS = "Measure.DIMM.PartNo"
L1D, L1I, L2, L3 = (f"SVR.CPU.{level} Cache" for level in ("L1d", "L1i", "L2", "L3"))

ISA = "SVR.ISA"
DEVICES = "SVR.Accelerators"
OS = "SVR.System.OS"

_FACTORS = {
    "number": 1.0,
    "ghz": 1000.0,
    "kib": 1 / 1024**2,
}
"""Reader of a number -> factor to the standard unit."""

_SWITCH = {"enabled": 1, "disabled": 0}
_TABLE = read_table(__package__, "columns.csv")


def list_read(*readers: str) -> dict[str, str]:
    """Return the stated column of every standard column of these readers in `columns.csv`.

    For `instructions` and `devices` it is a key in the texts ISA and DEVICES.
    """
    return {row["name"]: row["stated"] for row in _TABLE if row["reader"] in readers}


NUMERICAL = [
    *list_read(*_FACTORS).values(),
    L1D,
    L1I,
    L2,
    L3,
]
"""Stated columns of numbers; a cell may be empty."""

STATED = [
    *NUMERICAL,
    *list_read("text", "switch").values(),
    CPU_MODEL,
    INSTALLED,
    SLOT_SIZES,
    SLOT_PARTS,
    LISTED_PARTS,
    ISA,
    DEVICES,
    OS,
]
"""All stated columns that are read, without names of hosts, clusters and namespaces."""

_GROUP = re.compile(
    r"(\d{1,4})\s*x\s*(\d{1,5})\s*GB\s+(DDR|HBM)(\d)[Ee]?\s+(\d{3,5})\s*MT/s(?:\s*\[(\d{3,5})\s*MT/s\])?", re.ASCII
)
_CAPACITY = re.compile(r"(\d{1,6})\s*GB\s*\(", re.ASCII)
_MICRON = re.compile(
    r"MTC(?P<devices>\d{1,2})F(?P<ranks>[1248])0(?P<width>[48])(?P<log2_gb>\d)S\d(?P<type>[A-Z])C(?P<rate>\d{2})B[A-Z0-9]*",
    re.ASCII,
)
_HYNIX = re.compile(r"HMCG\d{2}[A-Z]{5}\d{3}[A-Z]", re.ASCII)
_SAMSUNG = re.compile(r"M321R\dGA\dB[A-Z0-9]\d?-(?P<bin>[A-Z]{3})[A-Z0-9]{0,3}", re.ASCII)
_SAMSUNG_MTS = {"CQK": 4800.0}
_RDIMM_BITS = 80
_DATA_BITS = 64
"""A DDR5 RDIMM has two sub-channels of 32 data and 8 check bits."""
_OF_PART = (
    "dimm_vendor",
    "dimm_type",
    "dimm_ranks",
    "dimm_width",
    "dimm_density_gbit",
    "dimm_devices",
    "dimm_part_mts",
)
_SERIES = re.compile(r"\b(platinum|gold|silver|bronze|max)\b", re.IGNORECASE)
_ISA_RANK = ("AVX512", "AVX2", "AVX", "SSE")
_DDR_SLOTS = 32
_SLOTS_PER_CHANNEL = 2
_WHOLE_SYSTEM_BELOW = {"l1": 16.0, "l2": 256.0, "l3": 2048.0}
"""Smallest cache in KB of one core (L1, L2) or one processor (L3); a smaller number is the system's total in MB."""


def characterize_run(stated: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the standard values of one run, None where nothing is stated, and the rules of the repairs.

    Args:
        stated: Text by column of `STATED`; those of `NUMERICAL` are numbers or empty.
    """
    repairs: list[str] = []
    values: dict[str, Any] = {
        name: _scale(stated[column], factor)
        for reader, factor in _FACTORS.items()
        for name, column in list_read(reader).items()
    }
    values |= {name: " ".join(stated[column].split()) or None for name, column in list_read("text").items()}
    values |= {name: _SWITCH.get(stated[column].lower()) for name, column in list_read("switch").items()}
    values |= _parse_flags(stated)
    values |= _parse_processor(stated)
    if values["chips"] and values["cores_per_chip_of_cpu_model"]:
        values["cores_enabled_total"] = values["chips"] * values["cores_per_chip_of_cpu_model"]
    values |= _parse_caches(stated, values.get("cores_enabled_total"), values["chips"], repairs)
    values |= _parse_memory(stated[INSTALLED])
    values |= _parse_modules(stated)
    system = parse_operating_system(stated[OS])
    values |= {"os_name": system.os_name, "os_version": system.os_version}
    values["preset_isa"] = next((isa for isa in _ISA_RANK if isa in (values["preset"] or "").upper()), None)
    return values, repairs


def _scale(text: str, factor: float) -> float | None:
    return round(float(text) * factor, 6) if text.strip() else None


def _parse_flags(stated: Mapping[str, str]) -> dict[str, float | None]:
    """Parse instruction sets such as `AVX2:Yes AMX-TILE:No`, and accelerators such as `QAT:2 DSA:8`."""
    sets = _split_pairs(stated[ISA])
    devices = _split_pairs(stated[DEVICES])
    flags: dict[str, float | None] = {}
    for name, key in list_read("instructions").items():
        flags[name] = {"Yes": 1.0, "No": 0.0}.get(sets.get(key, ""))
    for name, key in list_read("devices").items():
        text = devices.get(key, "")
        flags[name] = float(text) if re.fullmatch(r"\d{1,3}", text, re.ASCII) else None
    return flags


def _split_pairs(text: str) -> dict[str, str]:
    """Return words of the form key:value as a mapping."""
    groups = (word.partition(":") for word in text.split())
    return {key: value for key, _, value in groups}


def _parse_processor(stated: Mapping[str, str]) -> dict[str, str | None]:
    key = cpu_model_key(stated[CPU_MODEL]) if stated[CPU_MODEL].strip() else None
    series = _SERIES.search(key or "")
    return {"cpu_model": key, "cpu_series": series[1].lower() if series else None}


def _parse_caches(
    stated: Mapping[str, str], cores: float | None, chips: float | None, repairs: list[str]
) -> dict[str, float | None]:
    """Return cache sizes; a total in MB over the system, as newer lscpu prints it, is divided by its shares."""

    def size(column: str, level: str, shares: float | None) -> float | None:
        value = _scale(stated[column], 1.0)
        if value is None or value >= _WHOLE_SYSTEM_BELOW[level]:
            return value
        repairs.append(f"{level}_whole_system_mb")
        return value * 1024 / shares if shares else None

    l3_kb = size(L3, "l3", chips)
    return {
        "l1d_kb": size(L1D, "l1", cores),
        "l1i_kb": size(L1I, "l1", cores),
        "l2_kb_per_core": size(L2, "l2", cores),
        "l3_mb_per_chip": None if l3_kb is None else l3_kb / 1024,
    }


def _parse_memory(text: str) -> dict[str, float | None]:
    """Parse `256GB (8x32GB DDR5 4400 MT/s [4000 MT/s]); 64GB (4x16GB HBM2 3200 MT/s)`; brackets: running rate."""
    groups = _GROUP.findall(text)
    # The sums differ where a group was not parsed; a partial total would be wrong.
    if not groups or sum(map(int, _CAPACITY.findall(text))) != sum(
        int(count) * int(size) for count, size, *_ in groups
    ):
        return {}
    dimms = [
        (
            int(n),
            float(gb),
            int(gen),
            int(mts),
            int(now or mts),
        )
        for n, gb, kind, gen, mts, now in groups
        if kind == "DDR"
    ]
    stacks = [(int(n), float(gb), int(now or mts)) for n, gb, kind, _, mts, now in groups if kind == "HBM"]
    count = sum(group[0] for group in dimms)
    stack_count = sum(group[0] for group in stacks)
    dimm_gb = sum(n * gb for n, gb, *_ in dimms)
    hbm_gb = sum(n * gb for n, gb, _ in stacks)
    return {
        "mem_total_gb": dimm_gb + hbm_gb,
        "hbm_gb": hbm_gb,
        "hbm_count": stack_count,
        "hbm_mts": min((mts for *_, mts in stacks), default=None),
        "dimm_count": count,
        "dimm_groups": len(dimms),
        "dimm_gb": dimm_gb / count if count else None,
        "ddr_gen": min((gen for _, _, gen, _, _ in dimms), default=None),
        "mem_rated_mts": min((mts for *_, mts, _ in dimms), default=None),
        "mem_running_mts": min((now for *_, now in dimms), default=None),
    }


def parse_slot_sizes(text: str) -> list[float]:
    """Return GB by slot of `64|0|16|...`, 0 for an empty slot; an invalid text gives an empty list."""
    sizes = text.split("|")
    return [float(size) for size in sizes] if all(re.fullmatch(r"\d{1,5}", size, re.ASCII) for size in sizes) else []


def list_part_numbers(stated: Mapping[str, str]) -> list[str]:
    """Return the part number of every DIMM by slot; without a list of slots, of every kind of DIMM."""
    by_slot = [part.strip() for part in stated[SLOT_PARTS].split("|")]
    listed = [part.strip() for part in stated[LISTED_PARTS].split("|")]
    return [part for part in by_slot if part not in {"", "NO DIMM"}] or [part for part in listed if part]


def _parse_modules(stated: Mapping[str, str]) -> dict[str, Any]:
    numbers = list_part_numbers(stated)
    ddr = parse_slot_sizes(stated[SLOT_SIZES])[:_DDR_SLOTS]
    channels = [any(ddr[i : i + _SLOTS_PER_CHANNEL]) for i in range(0, len(ddr), _SLOTS_PER_CHANNEL)]
    return {
        # 32 slots on two processors of eight channels each: adjacent slots share a channel.
        "mem_channels_filled": sum(channels) if len(ddr) == _DDR_SLOTS else None,
        **pool_modules([decode_part_number(number) for number in numbers]),
        "dimm_part": " ".join(sorted(set(numbers))) or None,
    }


def decode_part_number(part_number: str) -> dict[str, Any]:
    """Return what the part number of a module, such as `MTC10F1084S1RC48BA1`, gives for certain; None for the others.

    Units: Gibit per DRAM device, bits per device, MT/s. Micron's numbers were checked against the stated sizes and
    against DRAM devices = ranks x 80 bits / width; ranks and widths of the others need the vendor's tables.
    """
    text = part_number.strip().upper()
    decoded = dict[str, Any].fromkeys(_OF_PART)
    if _HYNIX.fullmatch(text):
        decoded["dimm_vendor"] = "SK hynix"
    elif match := _SAMSUNG.fullmatch(text):
        decoded |= {
            "dimm_vendor": "Samsung",
            "dimm_type": "R",
            "dimm_part_mts": _SAMSUNG_MTS.get(match["bin"]),
        }
    elif match := _MICRON.fullmatch(text):
        decoded["dimm_vendor"] = "Micron"
        devices = int(match["devices"])
        ranks = int(match["ranks"])
        width = int(match["width"])
        if match["type"] == "R" and devices == ranks * _RDIMM_BITS // width:
            density = 2.0 ** int(match["log2_gb"]) * 8 / (ranks * _DATA_BITS / width)
            decoded |= {
                "dimm_type": "R",
                "dimm_ranks": ranks,
                "dimm_width": width,
                "dimm_density_gbit": density,
            }
            decoded |= {"dimm_devices": devices, "dimm_part_mts": 100.0 * int(match["rate"])}
    return decoded


def pool_modules(modules: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarize the modules of one system: numbers by their mean, texts by the common value or "mixed".

    A property that one of the modules lacks is missing; without modules all are missing.
    """
    pooled = dict[str, Any].fromkeys(_OF_PART)
    for name in _OF_PART:
        values = [module[name] for module in modules]
        if values and None not in values:
            text = isinstance(values[0], str)
            pooled[name] = sum(values) / len(values) if not text else values[0] if len({*values}) == 1 else "mixed"
    return pooled
