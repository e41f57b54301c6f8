"""The parsers of SPEC's texts: any text gives a result; the first byte selects the parser."""

from __future__ import annotations

from dataclasses import is_dataclass
from datetime import date
from importlib import import_module

_MODULES = ("cache", "memory", "scalars", "software")
PARSERS = [
    parse
    for module in _MODULES
    for name, parse in sorted(vars(import_module(f"perfcast.domains.servers.parsing.{module}")).items())
    if name.startswith("parse_") and parse.__module__ == f"perfcast.domains.servers.parsing.{module}"
]
_TEXTS = (
    "416 GB (9 x 32 GB 2Rx4 PC4-2933Y-R; 2 x 64 GB 4Rx4 PC4-3200AA-L, running at 2666)",
    "48 KB I + 24 KB D on chip per core",
    "72 MB I+D on chip per chip, 48 MB shared / 5 cores + 24 MB shared / 5 cores",
    "SUSE Linux Enterprise Server 15 SP3 (x86_64), Kernel 5.3.18-99-default",
    "C/C++: Version 2.3.0 of AOCC;, Fortran: Version 9.2.0 of GCC",
    "1, 3 to 6 chip(s)",
    "3 x 450 GB SATA SSD, RAID 0",
    "Mar-2031",
    "Oracle Java HotSpot 64-bit Server VM 1.8.0_25 on Linux",
    "8 x 16 GB 2Rx4 PC3L-12800R ECC",
)
SEEDS = [bytes([number]) + text.encode() for text in _TEXTS for number in range(len(PARSERS))]


def check(data: bytes) -> None:
    """Parse a text."""
    if not data:
        return
    parse = PARSERS[data[0] % len(PARSERS)]
    text = data[1:].decode("utf-8", errors="surrogateescape" if data[0] & 128 else "replace")
    value = parse(text)
    if not (is_dataclass(value) or value is None or isinstance(value, str | float | date)):
        raise AssertionError(f"{parse.__name__} gave {value!r}")
    if parse(text) != value and value == value:
        raise AssertionError(f"{parse.__name__} gave two answers")
