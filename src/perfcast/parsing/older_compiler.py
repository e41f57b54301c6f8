"""The `Compiler` column as it was typed before its form was fixed (results of 2006 to 2014).

The text is free (`Intel C++ Compiler 10.1 for Linux Build ...`, `Sun Studio 12 Update 1`, `IBM XL C/C++ V11.1`), so
complete means that vendor and version were found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfcast.parsing.text import compile_pattern, normalize

_VENDORS = tuple(
    (vendor, compile_pattern(pattern))
    for vendor, pattern in (
        (
            "Intel classic",
            r"\bIntel (?:64 )?(?:Visual )?(?:C\+\+|C/C\+\+|Fortran|C |Compiler|Composer|Parallel|Studio)",
        ),
        ("PGI", r"\bPGI\b|\bPortland\b"),
        ("PathScale", r"\bPathScale\b"),
        ("Open64", r"\bOpen64\b"),
        ("IBM XL", r"\bXL C|\bXL Fortran|\bXLC\b"),
        ("Oracle", r"\b(?:Sun|Solaris|Oracle)(?: Solaris| Developer)? Studio\b|\bStudio 1[12]\b|\bOracle Solaris\b"),
        ("HP", r"\bHP (?:C|aC|Fortran)|\baC\+\+"),
        ("GCC", r"\bgcc(?:fss)?\b|\bGNU\b|\bgfortran\b"),
    )
)
"""Vendor -> pattern; the vendor named first is the result's."""

_NOISE = compile_pattern(
    r"\bPackage[ -]?ID\S*.*?(?=\bIntel\b|\bMicrosoft\b|$)|\bMicrosoft Visual Studio.*?(?=\bIntel\b|$)"
    r"|\bBuild(?: no\.?)? ?\w+|\bEM64T\S*|\bIA-?32\b|\bIntel ?64\b|\bLinux(?:32|64)\b|\bx86\b|\b(?:32|64)-bit\b"
)
_NUMBER = r"(\d{1,2})(?:\.(\d{1,3}))?(?:\.\d{1,5}){0,3}"
_NAMED = compile_pattern(rf"\b(?:Version|Release|Ver\.?)[ :,]{{0,3}}V?{_NUMBER}(?![\d])|\bV{_NUMBER}(?![\d.])")
_DOTTED = compile_pattern(r"(?<![\w.])[A-C]?\.?(\d{1,2})\.(\d{1,3})(?:\.\d{1,5}){0,3}")
_STUDIO = compile_pattern(r"\bStudio (?P<express>Express )?(\d{1,2})(?:\.(\d))?(?: ?Update ?(\d))?")


@dataclass(frozen=True)
class OlderCompiler:
    """What an older compiler value states; None where it does not.

    `compiler_vendor` and `compiler_major_minor` are those named first; `mixed_compilers` tells whether compilers of
    several vendors are named, as integer and floating-point programs or peak and base may use different ones.
    """

    compiler_vendor: str | None = None
    compiler_major_minor: str | None = None
    mixed_compilers: bool | None = None
    complete: bool = False


def parse_older_compiler(text: str) -> OlderCompiler:
    """Parse values such as `Intel C++ Compiler 11.1 for Linux, Build 20091130`; commas are line breaks."""
    value = normalize(text.replace(",", " ").replace(";", " "))
    named = sorted((match.start(), vendor) for vendor, pattern in _VENDORS if (match := pattern.search(value)))
    if not named:
        return OlderCompiler()
    vendor, end = named[0][1], named[1][0] if len(named) > 1 else len(value)
    # What follows the second vendor's name is the version of that one.
    version = _version(vendor, _NOISE.sub(" ", value[:end]))
    return OlderCompiler(vendor, version, len(named) > 1, complete=version is not None)


def _version(vendor: str, text: str) -> str | None:
    match: re.Match[str] | None = _NAMED.search(text)
    if match:
        major, minor = (match[1], match[2]) if match[1] else (match[3], match[4])
        return f"{int(major)}.{int(minor or 0)}"
    studio = _STUDIO.search(text) if vendor == "Oracle" else None
    if studio:
        # Releases between two versions are called Express and a month, which orders nothing.
        return None if studio["express"] else f"{int(studio[2])}.{int(studio[3] or studio[4] or 0)}"
    match = _DOTTED.search(text)
    return f"{int(match[1])}.{int(match[2])}" if match else None
