"""This machine: its processors, and its description by lscpu."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

_CACHES = {"L1d cache": "l1d_kib", "L1i cache": "l1i_kib", "L2 cache": "l2_kib", "L3 cache": "l3_kib"}

Run = Callable[[Sequence[str]], str]
"""Runs a command and returns its output. Raises: OSError or subprocess.SubprocessError when it fails."""

FAILURES = (OSError, subprocess.SubprocessError)
"""Exceptions of a command that is missing, fails or does not end."""

MAX_CHARACTERS = 4 * 1024 * 1024
"""The output of a machine with thousands of DIMMs and CPUs is shorter."""

_SECONDS = 20.0
_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")


def run_command(command: Sequence[str]) -> str:
    """Return the output of a command in English, cut after MAX_CHARACTERS.

    Raises: FileNotFoundError when the command does not exist; CalledProcessError when it fails; TimeoutExpired.
    """
    # ordinary users do not have the folder of dmidecode in PATH
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS])
    environment = {**os.environ, "LC_ALL": "C", "PATH": path}
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    done = subprocess.run(list(command), **options, env=environment, timeout=_SECONDS, check=True)
    return str(done.stdout[:MAX_CHARACTERS].decode("utf-8", errors="replace"))


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


def describe_machine() -> dict[str, Any]:
    """Return processor, caches, memory, instruction sets and library versions of this machine.

    Units: caches KiB summed over the machine, memory GiB. Unknown values are None. Host name, addresses
    and serial numbers are never read.
    """
    import numpy
    import psutil  # type: ignore[import-untyped]
    import torch

    fields: dict[str, str] = {}
    with suppress(*FAILURES):
        fields = dict(read_fields(run_command))
    sizes = {name: parse_cache_size(fields.get(label, "")) for label, name in _CACHES.items()}
    caches = {name: size.kib if size else None for name, size in sizes.items()}
    flags = sorted(
        flag for flag in fields.get("Flags", "").split() if re.match(r"(sse4|avx|amx|fma|neon|asimd|sve)", flag)
    )
    return {
        "cpu_model": fields.get("Model name", platform.machine()),
        "cpu_vendor": fields.get("Vendor ID"),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "threads_per_core": parse_count(fields.get("Thread(s) per core", "")),
        "sockets": parse_count(fields.get("Socket(s)", "")),
        "virtual": fields.get("Hypervisor vendor") or None,
        **caches,
        "memory_gib": round(psutil.virtual_memory().total / 1024**3, 1),
        "flags": flags,
        "kernel": platform.release().split("-")[0],
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": numpy.__version__,
            "onednn": _library_version(torch.__config__.show(), r"MKL-DNN v([\d.]+)"),
            "mkl": _library_version(torch.__config__.show(), r"oneMKL|Math Kernel Library Version ([\d.]+)"),
        },
    }


def _library_version(text: str, pattern: str) -> str | None:
    match = re.search(pattern, text)
    return match[1] if match and match.groups() and match[1] else None
