"""Decoder of part numbers of memory modules; a property that the number does not determine is missing.

Micron DDR5 numbers were checked against the stated sizes and against DRAM devices = ranks x 80 bits / width. SK hynix
and Samsung codes were checked against the stated sizes; their ranks and widths need the vendor's tables and stay
missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

_MICRON = re.compile(
    r"MTC(?P<devices>\d{1,2})F(?P<ranks>[1248])0(?P<width>[48])(?P<log2_gb>\d)S\d(?P<type>[A-Z])C(?P<rate>\d{2})B[A-Z0-9]*",
    re.ASCII,
)
_HYNIX = re.compile(r"HMCG(?P<size>\d{2})[A-Z]{5}\d{3}[A-Z]", re.ASCII)
_SAMSUNG = re.compile(r"M321R(?P<depth>\d)GA\dB[A-Z0-9]\d?-(?P<bin>[A-Z]{3})[A-Z0-9]{0,3}", re.ASCII)
_HYNIX_GB = {"84": 32.0, "94": 64.0}
_SAMSUNG_MTS = {"CQK": 4800.0}
_RDIMM_BITS = 80
"""A DDR5 RDIMM has two sub-channels of 32 data and 8 check bits."""
_DATA_BITS = 64


@dataclass(frozen=True)
class DimmModule:
    """Memory module; a property is None where the part number does not give it for certain.

    Units: `capacity_gb` GiB, `density_gbit` Gibit per DRAM device, `width` bits per device, `rated_mts` MT/s. Only
    means over different modules are fractional.
    """

    vendor: str | None = None
    dimm_type: str | None = None
    ddr_gen: float | None = None
    capacity_gb: float | None = None
    ranks: float | None = None
    width: float | None = None
    density_gbit: float | None = None
    devices: float | None = None
    rated_mts: float | None = None


def decode_part_number(part_number: str) -> DimmModule:
    """Decode one part number, such as `MTC10F1084S1RC48BA1`. An unknown number has no properties."""
    text = part_number.strip().upper()
    if match := _MICRON.fullmatch(text):
        return _decode_micron(match)
    if match := _HYNIX.fullmatch(text):
        return DimmModule(vendor="SK hynix", ddr_gen=5, capacity_gb=_HYNIX_GB.get(match["size"]))
    if match := _SAMSUNG.fullmatch(text):
        return DimmModule(
            vendor="Samsung",
            dimm_type="R",
            ddr_gen=5,
            # The digit is the depth in Gi words of 64 data bits.
            capacity_gb=float(match["depth"]) * _DATA_BITS / 8 or None,
            rated_mts=_SAMSUNG_MTS.get(match["bin"]),
        )
    return DimmModule()


def _decode_micron(match: re.Match[str]) -> DimmModule:
    devices, ranks, width = int(match["devices"]), int(match["ranks"]), int(match["width"])
    capacity = 2.0 ** int(match["log2_gb"])
    if match["type"] != "R" or devices != ranks * _RDIMM_BITS // width:
        return DimmModule(vendor="Micron", ddr_gen=5)
    return DimmModule(
        vendor="Micron",
        dimm_type="R",
        ddr_gen=5,
        capacity_gb=capacity,
        ranks=ranks,
        width=width,
        density_gbit=capacity * 8 / (ranks * _DATA_BITS / width),
        devices=devices,
        rated_mts=100.0 * int(match["rate"]),
    )


def pool_modules(modules: Sequence[DimmModule]) -> DimmModule:
    """Summarize the modules of one system: numbers by their mean, texts by the common value or "mixed".

    A property that one of the modules lacks is missing; without modules all are missing.
    """
    pooled: dict[str, str | float | None] = {}
    for field in fields(DimmModule):
        values = [getattr(module, field.name) for module in modules]
        if not values or None in values:
            pooled[field.name] = None
        elif isinstance(values[0], str):
            pooled[field.name] = values[0] if len(set(values)) == 1 else "mixed"
        else:
            pooled[field.name] = sum(values) / len(values)
    return DimmModule(**pooled)  # type: ignore[arg-type]
