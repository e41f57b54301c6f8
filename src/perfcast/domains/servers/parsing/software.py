"""Parsers of columns about software and storage: compilers, operating systems, Java virtual machines, devices.

The forms of published results are tried first, then those of version commands, of `/etc/os-release` and of price lists,
as people and tools write them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from perfcast.domains.servers.parsing.text_normalization import (
    compile_pattern,
    extract_all,
    extract_first,
    find_kind,
    normalize,
    read_rules,
    rewrite,
)

_SEGMENT = compile_pattern(r"(?<![\w/])(?=(?:C/C\+\+(?:/Fortran)?|Fortran) ?: ?Version\b)")
_HEAD = compile_pattern(
    r"^(C/C\+\+/Fortran|C/C\+\+|Fortran) ?: ?Version (\d{1,4}(?:\.\d{1,8}){0,3})(?![\w.]) (?:of|for)\b"
)
_VENDORS = read_rules("compilers")
_COMPILERS = read_rules("described compilers")
"""Vendor -> pattern; the last one also has commands."""

_CLASSIC = compile_pattern(r"\bClassic\b")
_FIRST_YEAR_NAMED_RELEASE = 2021
_RELEASE = compile_pattern(r"(?<![\w.])v?(\d{1,4})(?:\.(\d{1,4}))?(?:\.\d{1,8}){0,3}(?![\w%])")


@dataclass(frozen=True)
class CompilerPart:
    """One compiler of a value: languages it is used for, vendor, full version."""

    languages: str
    vendor: str
    version: tuple[int, ...]
    classic: bool

    @property
    def brand(self) -> str:
        """Vendor with both Intel code bases as one: a release has both under one version."""
        return self.vendor.split(" ", maxsplit=1)[0]


@dataclass(frozen=True)
class Compiler:
    """Compilers as stated; None for what the text omits, complete where vendor and version are known.

    Vendor and version are those of the C/C++ compiler, the oneAPI one where there are two. `compiler_major_minor`
    is text. `compiler_classic`: an Intel compiler of the classic code base is among them; `oneapi`: one of oneAPI is;
    `mixed_fortran`: Fortran uses another vendor or version than C/C++.
    """

    compiler_vendor: str | None = None
    compiler_major_minor: str | None = None
    compiler_classic: bool | None = None
    oneapi: bool | None = None
    mixed_fortran: bool | None = None
    parts: tuple[CompilerPart, ...] = ()

    @property
    def complete(self) -> bool:
        """True where vendor and version are known."""
        return self.compiler_major_minor is not None


def parse_compiler(text: str) -> Compiler:
    """Parse values such as `C/C++: Version 3.1.0 of AOCC; Fortran: Version 9.2.0 of GCC`.

    Commas and semicolons are line breaks of the original that fall anywhere, so they have no meaning.
    """
    value = normalize(text.replace(",", " ").replace(";", " "))
    parts = tuple(part for segment in _SEGMENT.split(value)[1:] if (part := _parse_segment(segment)) is not None)
    if not parts:
        return Compiler()
    main = next((part for part in parts if part.vendor == "Intel oneAPI"), None) or next(
        (part for part in parts if part.languages != "Fortran"), parts[0]
    )
    major, minor = (*main.version, 0)[:2]
    return Compiler(
        compiler_vendor=main.vendor,
        compiler_major_minor=f"{major}.{minor}",
        compiler_classic=any(part.classic for part in parts),
        oneapi=any(part.vendor == "Intel oneAPI" for part in parts),
        mixed_fortran=any(
            part.languages == "Fortran" and (part.brand, part.version) != (main.brand, main.version) for part in parts
        ),
        parts=parts,
    )


def _parse_segment(segment: str) -> CompilerPart | None:
    head, product = extract_first(_HEAD, segment)
    vendor = find_kind(_VENDORS, product)
    if head is None or vendor is None:
        return None
    languages = {"c/c++": "C/C++", "fortran": "Fortran"}.get(head[1].lower(), "C/C++/Fortran")
    version = tuple(int(number) for number in head[2].split("."))
    classic = vendor == "Intel classic"
    if classic and languages == "Fortran" and version[0] >= _FIRST_YEAR_NAMED_RELEASE:
        # Fortran is not called oneAPI; from 2021 on only the word Classic marks the older compiler.
        classic = _CLASSIC.search(product) is not None
    return CompilerPart(languages, vendor, version, classic)


def is_under_xalanc_notice(suite: str, compiler: Compiler) -> bool:
    """Return whether a result is under SPEC's notice on 523/623.xalancbmk: an integer suite and oneAPI 2022.0-2023.0.

    `suite` is a suite's name, CINT2017... or CFP2017...; source: SPEC CPU2017 notice of January 2024.
    """
    if not suite.strip().upper().startswith("CINT"):
        return False
    releases = [(*part.version, 0)[:2] for part in compiler.parts if part.vendor == "Intel oneAPI"]
    return any(major == 2022 or (major, minor) == (2023, 0) for major, minor in releases)


def parse_described_compiler(text: str) -> Compiler:
    """Parse a compiler such as `AOCC 5.0`, `gcc (GCC) 11.4.1 20230605`, `icx 2024.1` or the texts of publishers."""
    parsed = parse_compiler(text)
    if parsed.complete:
        return parsed
    value = normalize(text.replace("_", " "))
    # the order of the list decides: AOCC is built on LLVM, and the commands of oneAPI name Intel
    matches = [(vendor, match) for pattern, vendor in _COMPILERS if (match := pattern.search(value))]
    vendor = matches[0][0] if matches else None
    version = _RELEASE.search(value, matches[0][1].end()) if matches else None
    if vendor is not None and version is not None:
        versioned = parse_compiler(f"C/C++: Version {version[0].lstrip('vV')} of {vendor.replace('classic', 'C++')}")
        if versioned.complete:
            return versioned
    return Compiler(compiler_vendor=vendor)


_NAMES = read_rules("systems")
_ARCHITECTURES = "x86_64|amd64|aarch64|arm64|ppc64le|ppc64|s390x|riscv64|loongarch64|sparcv9"
_ARCH = compile_pattern(rf"(?<![a-z0-9_])({_ARCHITECTURES})(?![a-z0-9_])")
_KERNEL = compile_pattern(
    r"\b(?:kernel|kerenl)(?: ?version)?[ ,:]{0,3}(?P<named>\d{1,2}(?:\.\d{1,4}){1,5}(?:[+.-][a-z0-9_.+-]{0,80})?)"
    r"|(?<![\w.-])(?P<bare>\d{1,2}(?:\.\d{1,4}){2,5}[+-][a-z0-9_.+-]{0,80})"
)
_KERNEL_SERIES = compile_pattern(r"^\d{1,2}\.\d{1,4}")
_SERVICE_PACK = compile_pattern(r"\bSP ?(\d{1,2})(?!\w)")
_VERSION = compile_pattern(r"(?<![\w.-])(?P<major>\d{1,4})(?:\.(?P<minor>\d{1,4}))?(?:\.\d{1,4}){0,3}(?![\w.+-])")
_WINDOWS = compile_pattern(r"\bWindows\b")
_YEAR = compile_pattern(r"\b(2003|2008|2012|2016|2019|2022|2025)\b")
_RELEASE_2 = compile_pattern(r"\bR2\b")
_REWRITES = read_rules("described systems")
"""Wordings of people and tools -> those of results, applied in order."""


@dataclass(frozen=True)
class OperatingSystem:
    """Operating system as stated; None for what the text omits.

    `os_version` is major.minor as text; SLES counts its service pack as minor, 0 for none. `kernel` is lower case
    without the architecture; `kernel_series` is its first two numbers.
    """

    os_name: str | None = None
    os_version: str | None = None
    kernel: str | None = None
    kernel_series: str | None = None
    arch: str | None = None
    complete: bool = False


def parse_operating_system(text: str) -> OperatingSystem:
    """Parse values such as `Ubuntu 22.04.1 LTS (x86_64), kernel 5.15.0-50-generic`."""
    value = normalize(text)
    architecture = _ARCH.search(value)
    name, remainder = _extract_name(value)
    # The kernel goes first: what is left of dotted numbers is then the release.
    kernels, remainder = extract_all(_KERNEL, remainder)
    _, remainder = extract_all(_ARCH, remainder)
    service_packs, remainder = extract_all(_SERVICE_PACK, remainder)
    versions = list(_VERSION.finditer(remainder))
    kernel = _format_kernel(kernels[0]) if kernels else None
    series = _KERNEL_SERIES.match(kernel) if kernel else None
    version = _format_version(name, versions[0], service_packs) if versions else None
    repeats = {_format_kernel(match) for match in kernels} | {kernel}
    return OperatingSystem(
        os_name=name,
        os_version=version,
        kernel=kernel,
        kernel_series=series[0] if series else None,
        arch=architecture[1].lower() if architecture else None,
        complete=name is not None
        and version is not None
        and len(repeats) == 1
        and len({match[0] for match in versions}) == 1,
    )


def parse_any_operating_system(text: str) -> OperatingSystem:
    """Parse an operating system and its version, Windows in any order of its words: `Windows 2008 Server R2 SP1`."""
    value = normalize(text)
    if not _WINDOWS.search(value):
        return parse_operating_system(value)
    year = _YEAR.search(value)
    version = f"{year[1]} R2" if year and _RELEASE_2.search(value) else year[1] if year else None
    return OperatingSystem("Windows Server", version, complete=version is not None)


def parse_described_operating_system(text: str) -> OperatingSystem:
    """Parse a system such as `rhel9.4`, `Linux host 5.14.0-427.el9.x86_64`, or the texts of publishers of results."""
    parsed = parse_operating_system(text)
    if parsed.complete and parsed.os_name != "Windows":
        return parsed
    rewritten = parse_operating_system(rewrite(text, _REWRITES))
    best = max((rewritten, parsed), key=_count_known)
    return best if best.os_name is not None else replace(best, os_version=None)


def _count_known(system: OperatingSystem) -> tuple[bool, int]:
    fields = (
        system.os_name,
        system.os_version,
        system.kernel_series,
        system.arch,
    )
    return system.complete, sum(value is not None for value in fields)


def _extract_name(text: str) -> tuple[str | None, str]:
    for pattern, name in _NAMES:
        if pattern.search(text):
            return name, pattern.sub(" ", text)
    return None, text


def _format_kernel(match: re.Match[str]) -> str:
    kernel = (match["named"] or match["bare"]).lower()
    return _ARCH.sub("", kernel).rstrip(".+-_")


def _format_version(name: str | None, match: re.Match[str], service_packs: list[re.Match[str]]) -> str:
    major = match["major"]
    minor = match["minor"]
    if name == "SLES" and minor is None:
        minor = service_packs[0][1] if service_packs else "0"
    return major if minor is None else f"{major}.{minor}"


_MACHINES = read_rules("virtual machines")
_RELEASES = tuple(
    compile_pattern(pattern)
    for pattern in (
        # Up to Java 8 the release is the second number: 1.7.0_80. It stands in JRockit's builds, too.
        r"(?<![\d.])1\.(?P<release>[5-8])\.0(?:_(?P<update>\d{1,3}))?",
        r"\bversion \"?(?P<release>9|[1-9]\d)(?:\.0\.(?P<update>\d{1,2}))?(?![\d_])",
        # "18.9 (build 11.0.9+7": the first number is the month of the release; "build 24.80" is HotSpot's own.
        r"\bbuild (?P<release>9|[1-9]\d)(?:\.0\.(?P<update>\d{1,2})|(?=\+))",
    )
)
_J9_RELEASE = compile_pattern(r"\bp\w{2}(?:32|64)(?P<release>[5-8])0")
_SERVICE_RELEASE = compile_pattern(r"sr ?(\d{1,2})(?=\D|$)")
_COMPANIES = (
    ("oracl", "Oracle"),
    ("sun micro", "Oracle"),
    ("bea ", "BEA"),
    ("ibm", "IBM"),
    ("openjdk", "OpenJDK"),
)


@dataclass(frozen=True)
class Jvm:
    """Java virtual machine as stated; None for what the text omits.

    `jvm_release` is the Java release (7 for 1.7.0_80, 17 for 17.0.2), `jvm_update` its update (80, 2); of IBM's J9,
    which states no update, the service release.
    """

    jvm_name: str | None = None
    jvm_release: float | None = None
    jvm_update: float | None = None


def parse_jvm(text: str) -> Jvm:
    """Parse values such as `Java HotSpot(TM) 64-Bit Server VM 18.9 (build 11.0.15+8-LTS-149, mixed mode)`."""
    value = normalize(text)
    name = find_kind(_MACHINES, value)
    match = next((match for pattern in _RELEASES if (match := pattern.search(value))), None)
    if match is None and name == "J9":
        match = _J9_RELEASE.search(value)
    groups = match.groupdict() if match else {}
    release = groups.get("release")
    update = groups.get("update")
    if name == "J9" and update is None and (service := _SERVICE_RELEASE.search(value)):
        update = service[1]
    return Jvm(
        jvm_name=name,
        jvm_release=float(release) if release else None,
        jvm_update=float(update) if update else None,
    )


def normalize_jvm_vendor(text: str) -> str | None:
    """Return the vendor of the JVM with aliases merged; Sun is Oracle, BEA stays apart because of JRockit."""
    folded = normalize(text).casefold()
    return next((name for start, name in _COMPANIES if folded.startswith(start)), normalize(text) or None)


_CLASSES = read_rules("storage classes")
_STORAGE_CLASSES = read_rules("described storage classes")
_STORAGE_REWRITES = read_rules("described storage")
_GB_PER = {"G": 1.0, "T": 1000.0}
_AMOUNT = r"(\d{1,6}(?:\.\d{1,3})?)"
_CAPACITY = compile_pattern(rf"(?:(?<![\w.])|(?<=\dx)|(?<= x)){_AMOUNT} ?([GT])B(?![a-z/])")
_SHORT_CAPACITY = compile_pattern(rf"(?:(?<![\w.])|(?<=\dx)|(?<= x)){_AMOUNT} ?([GT])(?![a-z0-9/])")
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
    matches = _CAPACITY.findall(value) or _SHORT_CAPACITY.findall(value)
    sizes = [float(number) * _GB_PER[unit.upper()] for number, unit in matches]
    size = next((gb for gb in sizes if gb >= _MIN_GB), None)
    count = _COUNT.match(value)
    devices = int(count[1]) if count else 1
    capacity = size * devices if size is not None and devices else None
    return Storage(kind, capacity, complete=kind is not None and capacity is not None)


def parse_described_storage(text: str) -> Storage:
    """Parse devices such as `two 960 GB NVMe drives` or `1 x 960 GB`; class or capacity alone is complete, too."""
    value = rewrite(text, _STORAGE_REWRITES)
    parsed = parse_storage(value)
    kind = parsed.storage_class or find_kind(_STORAGE_CLASSES, value)
    return Storage(kind, parsed.storage_gb, complete=kind is not None or parsed.storage_gb is not None)
