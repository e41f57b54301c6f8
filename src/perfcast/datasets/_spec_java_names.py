"""Processor names of the Java benchmarks, converted to the catalog's spelling.

The dumps repeat the clock and omit words."""

from __future__ import annotations

import re

from perfcast.processors.names import part_key

_REPLACED = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"[®™]", " "),
        (r"\((?:r|tm)\)", " "),
        (r"\bprocessors?\b|\b(?:dual|quad|six|eight|twelve)-core\b|\b64-bit multi-core\b", " "),
        # Clocks, order numbers and turbo modes follow a bracket or comma; a clock also stands at either end.
        (r"\s*[(\[,].*$", ""),
        (r"^\d(?:\.\d+)? ?ghz\s+(?=\w)", ""),
        (r"(?<=\d)((?:\S*\s+(?:v\d\s+)?)(?:cpu\s+)?)@?\s*\d(?:\.\d+)? ?ghz$", r"\1"),
        (r"(?<=\d)(he|ee)$", r" \1"),
        (r"\bcortex[ -]a53\b.*", "cortex-a53"),
        (r"\bplatunum\b", "platinum"),
        (r"\bxeon-d\b\s*", "xeon d-"),
        (r"\bcpu\b", " "),
        (r"^intel (?=(?:e\d-|[elwx]\d{4}))", "intel xeon "),
    )
)
_MISTYPED = {
    "xeon 5675": "xeon x5675",
    "xeon 8480+": "xeon platinum 8480+",
    "xeon 8490h": "xeon platinum 8490h",
    "xeon platinum 6252": "xeon gold 6252",
}
"""Key without series, or with that of another part -> the only part of that number."""


def java_part_key(name: str) -> str:
    """Return the join key of a processor name such as `Xeon E5-2660 v2, 2.20 GHz (Turbo up to 3.00 GHz)`."""
    text = " ".join(name.casefold().split())
    for pattern, replacement in _REPLACED:
        text = " ".join(pattern.sub(replacement, text).split())
    key = part_key(text or name)
    return _MISTYPED.get(key, key)
