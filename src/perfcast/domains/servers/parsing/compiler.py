"""Parsers of the `Compiler` column of CPU2017 and of older results, and SPEC's notice on xalancbmk."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfcast.domains.servers.parsing.text_normalization import (
    compile_pattern,
    extract_all,
    extract_first,
    find_kind,
    is_consumed,
    normalize,
    read_rules,
)

_SEGMENT = compile_pattern(r"(?<![\w/])(?=(?:C/C\+\+(?:/Fortran)?|Fortran) ?: ?Version\b)")
_HEAD = compile_pattern(
    r"^(C/C\+\+/Fortran|C/C\+\+|Fortran) ?: ?Version (\d{1,4}(?:\.\d{1,8}){0,3})(?![\w.]) (?:of|for)\b"
)
_VENDORS = read_rules("compilers")
_CLASSIC = compile_pattern(r"\bClassic\b")
_BUILD = compile_pattern(r"\bBuild(?: \d{8})?(?!\w)")
_NOTE = compile_pattern(r"\(\d{3} peak only\)")
_WORDS = compile_pattern(
    r"\bIntel 64\b|\bDPC\+\+/C\+\+|\bC/C\+\+|\bC\+\+"
    r"|\b(?:Intel|oneAPI|AOCC|BiSheng|Oracle Developer Studio|IBM|Open|XL|Ampere|Red Hat|GCC|the|GNU|gfortran"
    r"|LLVM|clang|Arm|NVIDIA|HPC|SDK|PGI|Compilers?|Collection|Fortran|Classic|Professional|for|Linux|AIX)\b"
)
_FIRST_YEAR_NAMED_RELEASE = 2021
_OLDER_VENDORS = read_rules("older compilers")
"""Vendor -> pattern; of several vendors the first named counts."""

_NOISE = compile_pattern(
    r"\bPackage[ -]?ID\S*.*?(?=\bIntel\b|\bMicrosoft\b|$)|\bMicrosoft Visual Studio.*?(?=\bIntel\b|$)"
    r"|\bBuild(?: no\.?)? ?\w+|\bEM64T\S*|\bIA-?32\b|\bIntel ?64\b|\bLinux(?:32|64)\b|\bx86\b|\b(?:32|64)-bit\b"
)
_NUMBER = r"(\d{1,2})(?:\.(\d{1,3}))?(?:\.\d{1,5}){0,3}"
_NAMED = compile_pattern(rf"\b(?:Version|Release|Ver\.?)[ :,]{{0,3}}V?{_NUMBER}(?![\d])|\bV{_NUMBER}(?![\d.])")
_DOTTED = compile_pattern(r"(?<![\w.])[A-C]?\.?(\d{1,2})\.(\d{1,3})(?:\.\d{1,5}){0,3}")
_STUDIO = compile_pattern(r"\bStudio (?P<express>Express )?(\d{1,2})(?:\.(\d))?(?: ?Update ?(\d))?")


@dataclass(frozen=True)
class CompilerPart:
    """One compiler of a value: languages it is used for, vendor, full version."""

    languages: str
    vendor: str
    version: tuple[int, ...]
    classic: bool


@dataclass(frozen=True)
class Compiler:
    """Compilers as stated; None for what the text omits.

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
    complete: bool = False


def parse_compiler(text: str) -> Compiler:
    """Parse values such as `C/C++: Version 3.1.0 of AOCC; Fortran: Version 9.2.0 of GCC`.

    Commas and semicolons are line breaks of the original that fall anywhere, so they have no meaning.
    """
    value = normalize(text.replace(",", " ").replace(";", " "))
    before, *segments = _SEGMENT.split(value)
    parsed = [_parse_segment(segment) for segment in segments]
    parts = tuple(part for part, _ in parsed if part is not None)
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
            part.languages == "Fortran" and (_name_brand(part), part.version) != (_name_brand(main), main.version)
            for part in parts
        ),
        parts=parts,
        complete=is_consumed(before) and all(done for _, done in parsed),
    )


def is_under_xalanc_notice(suite: str, compiler: Compiler) -> bool:
    """Return whether a result is under SPEC's notice on 523/623.xalancbmk: an integer suite and oneAPI 2022.0-2023.0.

    `suite` is a suite's name, CINT2017... or CFP2017...; source: SPEC CPU2017 notice of January 2024.
    """
    if not suite.strip().upper().startswith("CINT"):
        return False
    releases = [(*part.version, 0)[:2] for part in compiler.parts if part.vendor == "Intel oneAPI"]
    return any(major == 2022 or (major, minor) == (2023, 0) for major, minor in releases)


@dataclass(frozen=True)
class OlderCompiler:
    """Compiler of an older result as stated; None for what the text omits.

    `compiler_vendor` and `compiler_major_minor` are those named first; `mixed_compilers` is True where compilers of
    several vendors are named, as integer and floating-point programs or peak and base may use different ones.
    """

    compiler_vendor: str | None = None
    compiler_major_minor: str | None = None
    mixed_compilers: bool | None = None
    complete: bool = False


def parse_older_compiler(text: str) -> OlderCompiler:
    """Parse values such as `Intel C++ Compiler 11.1 for Linux, Build 20091130`; commas are line breaks."""
    value = normalize(text.replace(",", " ").replace(";", " "))
    named = sorted((match.start(), vendor) for pattern, vendor in _OLDER_VENDORS if (match := pattern.search(value)))
    if not named:
        return OlderCompiler()
    vendor, end = named[0][1], named[1][0] if len(named) > 1 else len(value)
    # What follows the second vendor's name is the version of that one.
    version = _find_version(vendor, _NOISE.sub(" ", value[:end]))
    return OlderCompiler(vendor, version, len(named) > 1, complete=version is not None)


def _parse_segment(segment: str) -> tuple[CompilerPart | None, bool]:
    """Return the compiler of one segment, and True where nothing else remains of the segment."""
    head, product = extract_first(_HEAD, segment)
    vendor = find_kind(_VENDORS, product)
    if head is None or vendor is None:
        return None, False
    languages = {"c/c++": "C/C++", "fortran": "Fortran"}.get(head[1].lower(), "C/C++/Fortran")
    version = tuple(int(number) for number in head[2].split("."))
    classic = vendor == "Intel classic"
    if classic and languages == "Fortran" and version[0] >= _FIRST_YEAR_NAMED_RELEASE:
        # Fortran is not called oneAPI; from 2021 on only the word Classic marks the older compiler.
        classic = _CLASSIC.search(product) is not None
    for pattern in (_BUILD, _NOTE, _WORDS):
        _, product = extract_all(pattern, product)
    return CompilerPart(languages, vendor, version, classic), is_consumed(product)


def _name_brand(part: CompilerPart) -> str:
    """Return the vendor with both Intel code bases as one: a release has both under one version."""
    return part.vendor.split(" ", maxsplit=1)[0]


def _find_version(vendor: str, text: str) -> str | None:
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
