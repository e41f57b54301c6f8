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
    compile_kinds,
    compile_pattern,
    compile_rewrites,
    find_kind,
    normalize,
    rewrite,
)

_COMPILERS = compile_kinds(
    ("AOCC", r"\bAOCC\b|\bAMD Optimizing\b"),
    ("Intel oneAPI", r"\boneAPI\b|\bicpx\b|\bicx\b|\bifx\b|\bDPC\+\+"),
    ("Intel classic", r"\bicc\b|\bicpc\b|\bifort\b|\bIntel\b"),
    ("BiSheng", r"\bBiSheng\b"),
    ("NVIDIA", r"\bNVIDIA\b|\bNVHPC\b|\bnvc(?:\+\+)?(?!\w)|\bPGI\b|\bpgcc\b"),
    ("Oracle", r"\bOracle\b|\bSolaris Studio\b"),
    ("IBM XL", r"\bIBM\b|\bXLC?\b"),
    ("Arm", r"\bArm\b|\bACfL\b|\barmclang\b"),
    ("LLVM", r"\bLLVM\b|\bclang(?:\+\+)?(?!\w)|\bflang\b"),
    ("GCC", r"\bGCC\b|\bGNU\b|\bg\+\+|\bgfortran\b"),
)
"""Vendor -> names of its compilers and of their commands."""

_VERSION = compile_pattern(r"(?<![\w.])v?(\d{1,4})(?:\.(\d{1,4}))?(?:\.\d{1,8}){0,3}(?![\w%])")
_SYSTEM_REWRITES = compile_rewrites(
    (r"\b(?:PRETTY_NAME|NAME|VERSION|ID) ?= ?|[\"'*]", " "),
    (r"\((?:R|TM)\)", " "),
    (r"\b(SLES|SLED|RHEL|Ubuntu|Debian|CentOS|Fedora|Rocky|AlmaLinux|Alma)[ _-]?v?(?=\d)", r"\1 "),
    (r"\bAlma (?=\d)", "AlmaLinux "),
    (r"\bSuSE ?SLES\b|\bSUES\b", "SLES"),
    (r"(?<=\d)[ _-]?sp[ _-]?(?=\d)", " SP"),
    (r"\bGNU/Linux\b", " "),
    (r"\bx64_64\b|\bx86-64\b|\bx64\b", "x86_64"),
    (r"\b(?:64|32)[ -]?bits?\b", " "),
    (r"\b(?:Datacenter|Standard|Essentials|Enterprise Edition)(?: Edition)?\b", " "),
    (r"\b(?:minimal|server edition|BaseOS)\b|#\d{1,4}.*$", " "),
    (r"^Linux (?:[\w-]{1,60} )?(?=\d{1,2}\.\d{1,3}\.)", "kernel "),
    (r"\bLinux kernel\b", "kernel"),
    (r"\bKernel ?[:=]", "kernel "),
    (r"\bWindows (?!Server\b)(?=20\d\d\b)", "Windows Server "),
    (r"\bHPUX11i\b", "HP-UX 11i "),
    (r"\bWin(?:dows)?[ -]?Srv\b|\bWin ?Server\b", "Windows Server"),
)
"""Wordings of systems -> those of published results, applied in order."""

_STORAGE_CLASSES = compile_kinds(
    ("nvme", r"\bU\.?[23]\b|\bE[13]\.[SL]\b|\bPCIe\b|\bEDSFF\b|\bBOSS(?:-\w+)?\b|\bOptane\b"),
    ("ssd", r"\bflash\b|\beMMC\b|\bmixed[ -]use\b|\bread[ -]intensive\b"),
    ("hdd", r"\bhard (?:disk|drive)s?\b|\bHDs?\b|\bspinning\b|\b(?:5400|7200|10000|15000)\b|\bdisks?\b"),
    ("ram", r"\b(?:shm|in memory)\b"),
)
_STORAGE_REWRITES = compile_rewrites(
    (r"[\u00d7\u2715*]", "x"),
    (r"(?<=\d) ?-? ?(?:giga?bytes?|gigs?|GiB)\b", " GB"),
    (r"(?<=\d) ?-? ?(?:tera?bytes?|TiB)\b", " TB"),
    (r"^(?:one|a|an) ", "1 x "),
    (r"^two ", "2 x "),
    (r"^(\d{1,3}) (?=\d{1,5}(?:\.\d{1,3})? ?[GT]B)", r"\1 x "),
    (r"(\d)\(", r"\1 ("),
    (r"(?<=GB)\(", " ("),
)


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
