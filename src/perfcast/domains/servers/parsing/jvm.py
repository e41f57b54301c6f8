"""Parsers of columns about the Java virtual machine: its name, vendor and Java release."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfcast.domains.servers.parsing.text_normalization import compile_pattern, find_kind, normalize, read_rules

_NAMES = read_rules("virtual machines")
_RELEASES = tuple(
    compile_pattern(pattern)
    for pattern in (
        # Up to Java 8 the release is the second number: 1.7.0_80. It stands in JRockit's builds, too.
        r"(?<![\d.])1\.(?P<release>[5-8])\.0(?:_(?P<update>\d{1,3}))?",
        r"\b(?P<release>8)u(?P<update>\d{1,3})\b",
        r"\bversion \"?(?P<release>9|[1-9]\d)(?:\.0\.(?P<update>\d{1,2}))?(?![\d_])",
        # "18.9 (build 11.0.9+7": the first number is the month of the release; "build 24.80" is HotSpot's own.
        r"\bbuild (?P<release>9|[1-9]\d)(?:\.0\.(?P<update>\d{1,2})|(?=\+))",
        r"\b(?:SE|OpenJDK|JDK) v?(?P<release>9|[1-9]\d)(?:\.0\.(?P<update>\d{1,2}))?(?![\d_])",
    )
)
_J9_RELEASES = tuple(
    compile_pattern(pattern)
    for pattern in (r"(?<![\d.])(?P<release>[5-8])\.0\b", r"\bp\w{2}(?:32|64)(?P<release>[5-8])0")
)
_SERVICE_RELEASE = compile_pattern(r"sr ?(\d{1,2})(?=\D|$)")
_COMPANIES = (("oracl", "Oracle"), ("sun micro", "Oracle"), ("bea ", "BEA"), ("ibm", "IBM"), ("openjdk", "OpenJDK"))


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
    name = find_kind(_NAMES, value)
    match = _search_first(_RELEASES, value)
    if match is None and name == "J9":
        match = _search_first(_J9_RELEASES, value)
    groups = match.groupdict() if match else {}
    release, update = groups.get("release"), groups.get("update")
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


def _search_first(patterns: tuple[re.Pattern[str], ...], text: str) -> re.Match[str] | None:
    return next((match for pattern in patterns if (match := pattern.search(text))), None)
