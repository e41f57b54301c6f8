"""Parsers of the operating system columns: canonical name, release, kernel and architecture."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfcast.domains.servers.parsing.text_normalization import (
    compile_pattern,
    extract_all,
    is_consumed,
    normalize,
    read_rules,
    rewrite,
)

_NAMES = read_rules("systems")
_ARCHITECTURES = "x86_64|amd64|aarch64|arm64|ppc64le|ppc64|s390x|riscv64|loongarch64|sparcv9"
_LEAKED_KEY = compile_pattern(r"spec\.cpu2017\.sw_os\d{1,4} ?:")
_ARCH = compile_pattern(rf"(?<![a-z0-9_])({_ARCHITECTURES})(?![a-z0-9_])")
_KERNEL = compile_pattern(
    r"\b(?:kernel|kerenl)(?: ?version)?[ ,:]{0,3}(?P<named>\d{1,2}(?:\.\d{1,4}){1,5}(?:[+.-][a-z0-9_.+-]{0,80})?)"
    r"|(?<![\w.-])(?P<bare>\d{1,2}(?:\.\d{1,4}){2,5}[+-][a-z0-9_.+-]{0,80})"
)
_KERNEL_SERIES = compile_pattern(r"^\d{1,2}\.\d{1,4}")
_SERVICE_PACK = compile_pattern(r"\bSP ?(\d{1,2})(?!\w)")
_MAINTENANCE = compile_pattern(r"\bSRU ?\d{1,3}(?:\.\d{1,3}){0,3}\b|\bTL ?\d{1,2}\b|\bRC ?\d\b|\b\d{1,2}/\d{2}\b")
_VERSION = compile_pattern(r"(?<![\w.-])(?P<major>\d{1,4})(?:\.(?P<minor>\d{1,4}))?(?:\.\d{1,4}){0,3}(?![\w.+-])")
_CODE_NAME = compile_pattern(r"\([a-z][a-z -]{0,40}\)")
_WORDS = compile_pattern(
    r"\b(?:linux|enterprise|server|serer|release|version|lts|os|stream|leap|oracle|high performance computing|desktop"
    r"|for sap applications|tested with|kernel|suse|red ?hat)\b"
)


_WINDOWS = compile_pattern(r"\bWindows\b")
_YEAR = compile_pattern(r"\b(2003|2008|2012|2016|2019|2022|2025)\b")
_RELEASE_2 = compile_pattern(r"\bR2\b")
_OLDER_WORDINGS = read_rules("older systems")
"""Wordings of 2006 to 2014 -> those of today, applied in order."""


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
    value = _LEAKED_KEY.sub(" ", normalize(text))
    architecture = _ARCH.search(value)
    name, remainder = _extract_name(value)
    # The kernel goes first: what is left of dotted numbers is then the release.
    kernels, remainder = extract_all(_KERNEL, remainder)
    _, remainder = extract_all(_ARCH, remainder)
    service_packs, remainder = extract_all(_SERVICE_PACK, remainder)
    _, remainder = extract_all(_MAINTENANCE, remainder)
    versions, remainder = extract_all(_VERSION, remainder)
    _, remainder = extract_all(_CODE_NAME, remainder)
    _, remainder = extract_all(_WORDS, remainder)

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
        and len({match[0] for match in versions}) == 1
        and is_consumed(remainder),
    )


def parse_older_operating_system(text: str) -> OperatingSystem:
    """Parse values such as `Windows Vista Ultimate w/ SP1 (64-bit)`: rewritten in today's wording, then parsed."""
    return parse_operating_system(rewrite(text, _OLDER_WORDINGS))


def parse_any_operating_system(text: str) -> OperatingSystem:
    """Parse an operating system and its version, Windows in any order of its words: `Windows 2008 Server R2 SP1`."""
    value = normalize(text)
    if not _WINDOWS.search(value):
        return parse_operating_system(value)
    year = _YEAR.search(value)
    version = f"{year[1]} R2" if year and _RELEASE_2.search(value) else year[1] if year else None
    return OperatingSystem("Windows Server", version, complete=version is not None)


def _extract_name(text: str) -> tuple[str | None, str]:
    for pattern, name in _NAMES:
        if pattern.search(text):
            return name, pattern.sub(" ", text)
    return None, text


def _format_kernel(match: re.Match[str]) -> str:
    kernel = (match["named"] or match["bare"]).lower()
    return _ARCH.sub("", kernel).rstrip(".+-_")


def _format_version(name: str | None, match: re.Match[str], service_packs: list[re.Match[str]]) -> str:
    major, minor = match["major"], match["minor"]
    if name == "SLES" and minor is None:
        minor = service_packs[0][1] if service_packs else "0"
    return major if minor is None else f"{major}.{minor}"
