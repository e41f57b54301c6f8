"""Parser of the `Storage` column: class and raw capacity of the storage of the benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.domains.servers.parsing.text_normalization import compile_pattern, find_kind, normalize, read_rules

_CLASSES = read_rules("storage classes")
_GB_PER = {"G": 1.0, "T": 1000.0}
_NUMBER = r"(\d{1,6}(?:\.\d{1,3})?)"
_SIZE = compile_pattern(rf"(?:(?<![\w.])|(?<=\dx)|(?<= x)){_NUMBER} ?([GT])B(?![a-z/])")
_SHORT_SIZE = compile_pattern(rf"(?:(?<![\w.])|(?<=\dx)|(?<= x)){_NUMBER} ?([GT])(?![a-z0-9/])")
_COUNT = compile_pattern(r"^(\d{1,4}) ?[xz] ?(?=\w)")
_MIN_GB = 16
"""Smaller numbers of Gb are the speed of a link (SATA 6Gb, SAS 12Gb)."""


@dataclass(frozen=True)
class Storage:
    """Storage as stated.

    Units: `storage_gb` is 10^9 bytes, number of devices times size, whatever the RAID level leaves of it.
    `storage_class` is ram, nvme, ssd or hdd; a SATA or SAS device of unstated kind counts as hdd.
    Vendors and models are free text, so complete means that class and capacity are stated.
    """

    storage_class: str | None = None
    storage_gb: float | None = None
    complete: bool = False


def parse_storage(text: str) -> Storage:
    """Parse values such as `1 x 960 GB SATA SSD`, `2 x SAS HDD, 600GB, 10K RPM` or `800 GB tmpfs`."""
    value = normalize(text)
    kind = find_kind(_CLASSES, value)
    matches = _SIZE.findall(value) or _SHORT_SIZE.findall(value)
    sizes = [float(number) * _GB_PER[unit.upper()] for number, unit in matches]
    size = next((gb for gb in sizes if gb >= _MIN_GB), None)
    count = _COUNT.match(value)
    devices = int(count[1]) if count else 1
    capacity = size * devices if size is not None and devices else None
    return Storage(kind, capacity, complete=kind is not None and capacity is not None)
