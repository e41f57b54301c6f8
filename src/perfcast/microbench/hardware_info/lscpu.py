"""Parser of the output of lscpu, which contains no name or identifier of a machine."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from typing import Any

from perfcast.microbench.hardware_info.system_access import Run

Fields = tuple[tuple[str, str], ...]
"""Fields and values in the printed order; a field is repeated for every kind of core."""

_UNIT_KIB = {"B": 1 / 1024, "KiB": 1.0, "K": 1.0, "MiB": 1024.0, "M": 1024.0, "GiB": 1024.0**2, "G": 1024.0**2}
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([KMG]i?B?|B)(?:\s*\((\d{1,6}) instances?\))?", re.ASCII)
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_MAX_DEPTH = 8


@dataclass(frozen=True)
class CacheSize:
    """Size of a cache in the output of lscpu.

    Units: KiB. `of_all` is true for the sum over `instances` (util-linux 2.34 and newer, which writes KiB and counts
    instances from 2.37 on), false for one instance (older, which writes K).
    """

    kib: float
    instances: int | None
    of_all: bool


def read_fields(run: Run) -> Fields:
    """Return the fields of lscpu; an empty tuple when it prints none.

    Raises: OSError or subprocess.SubprocessError when lscpu fails.
    """
    try:
        fields = parse_json_fields(run(["lscpu", "-J"]))
    except subprocess.CalledProcessError:
        fields = ()
    # util-linux before 2.30 does not know -J.
    return fields or parse_text_fields(run(["lscpu"]))


def parse_json_fields(text: str) -> Fields:
    """Return the fields of `lscpu -J`, flat; an empty tuple for any other text."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    fields: list[tuple[str, str]] = []

    def walk(entries: Any, depth: int) -> None:
        for entry in entries if isinstance(entries, list) and depth < _MAX_DEPTH else []:
            if isinstance(entry, dict) and isinstance(entry.get("field"), str):
                fields.append((entry["field"].rstrip(":"), str(entry.get("data") or "")))
                walk(entry.get("children"), depth + 1)

    walk(document.get("lscpu") if isinstance(document, dict) else None, 0)
    return tuple(fields)


def parse_text_fields(text: str) -> Fields:
    """Return the fields of plain `lscpu`: lines of a name, a colon and a value."""
    parts = (line.partition(":") for line in text.splitlines())
    return tuple((name.strip(), value.strip()) for name, colon, value in parts if colon and name.strip())


def first_value(fields: Fields, name: str) -> str:
    """Return the first value of a field that is neither empty nor '-'; "" if there is none."""
    return next((value.strip() for field, value in fields if field == name and value.strip() not in ("", "-")), "")


def parse_cache_size(text: str) -> CacheSize | None:
    """Return the size in '4 MiB (2 instances)', '1.5 MiB' or '32K'."""
    match = _SIZE.match(text)
    if match is None or match[2] not in _UNIT_KIB:
        return None
    of_all = match[2] == "B" or match[2].endswith("iB")
    return CacheSize(float(match[1]) * _UNIT_KIB[match[2]], int(match[3]) if match[3] else None, of_all)


def parse_count(text: str) -> int | None:
    """Return a whole number from decimal digits; None for any other text."""
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else None


def count_cpus(text: str) -> int:
    """Return the number of CPUs in a list such as '0-63,128'."""
    matches = (_RANGE.fullmatch(part.strip()) for part in text.split(","))
    return sum(max(0, int(match[2] or match[1]) - int(match[1]) + 1) for match in matches if match)
