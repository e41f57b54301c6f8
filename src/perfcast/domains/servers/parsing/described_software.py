"""Parsers of compilers, operating systems and storage as people, tools and publishers of results write them.

The forms of published results are tried first, then those of version commands, of `/etc/os-release` and of price lists.
"""

from __future__ import annotations

from dataclasses import replace

from perfcast.domains.servers.parsing.compiler import Compiler, parse_compiler, parse_older_compiler
from perfcast.domains.servers.parsing.operating_system import (
    OperatingSystem,
    parse_older_operating_system,
    parse_operating_system,
)
from perfcast.domains.servers.parsing.storage import Storage, parse_storage
from perfcast.domains.servers.parsing.text_normalization import (
    compile_pattern,
    find_kind,
    normalize,
    read_rules,
    rewrite,
)

_COMPILERS = read_rules("described compilers")
"""Vendor -> names of its compilers and of their commands."""

_VERSION = compile_pattern(r"(?<![\w.])v?(\d{1,4})(?:\.(\d{1,4}))?(?:\.\d{1,8}){0,3}(?![\w%])")
_SYSTEM_REWRITES = read_rules("described systems")
"""Wordings of systems -> those of published results, applied in order."""

_STORAGE_CLASSES = read_rules("described storage classes")
_STORAGE_REWRITES = read_rules("described storage")


def parse_described_compiler(text: str) -> Compiler:
    """Parse a compiler such as `AOCC 5.0`, `gcc (GCC) 11.4.1 20230605`, `icx 2024.1` or the texts of publishers.

    Complete where vendor and version are known.
    """
    parsed = parse_compiler(text)
    if parsed.compiler_vendor is not None:
        return replace(parsed, complete=True)
    value = normalize(text.replace("_", " "))
    # the order of the list decides: AOCC is built on LLVM, and the commands of oneAPI name Intel
    matches = [(vendor, match) for pattern, vendor in _COMPILERS if (match := pattern.search(value))]
    vendor = matches[0][0] if matches else None
    version = _VERSION.search(value, matches[0][1].end()) if matches else None
    if vendor is not None and version is not None:
        versioned = parse_compiler(f"C/C++: Version {version[0].lstrip('vV')} of {vendor.replace('classic', 'C++')}")
        if versioned.compiler_vendor is not None:
            return replace(versioned, complete=True)
    older = parse_older_compiler(text)
    if older.compiler_vendor is None:
        return Compiler(compiler_vendor=vendor)
    return Compiler(
        compiler_vendor=older.compiler_vendor, compiler_major_minor=older.compiler_major_minor, complete=older.complete
    )


def parse_described_operating_system(text: str) -> OperatingSystem:
    """Parse a system such as `rhel9.4`, `Linux host 5.14.0-427.el9.x86_64`, or the texts of publishers of results."""
    parsed = parse_operating_system(text)
    if parsed.complete and parsed.os_name != "Windows":
        return parsed
    value = rewrite(text, _SYSTEM_REWRITES)
    readings = (parse_operating_system(value), parsed, parse_older_operating_system(value))
    best = max(readings, key=_count_known)
    return best if best.os_name is not None else replace(best, os_version=None)


def parse_described_storage(text: str) -> Storage:
    """Parse devices such as `two 960 GB NVMe drives` or `1 x 960 GB`; class or capacity alone is complete, too."""
    value = rewrite(text, _STORAGE_REWRITES)
    parsed = parse_storage(value)
    kind = parsed.storage_class or find_kind(_STORAGE_CLASSES, value)
    return Storage(kind, parsed.storage_gb, complete=kind is not None or parsed.storage_gb is not None)


def _count_known(system: OperatingSystem) -> tuple[bool, int]:
    fields = (system.os_name, system.os_version, system.kernel_series, system.arch)
    return system.complete, sum(value is not None for value in fields)
