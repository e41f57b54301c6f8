"""Numbers with a unit, as people write them: `3.7 GHz`, `384 MB`, `6400 MT/s`."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d{1,3})?)\s*([a-z/]*)", re.IGNORECASE)
_BINARY = {"kb": 2.0**10, "kib": 2.0**10, "mb": 2.0**20, "mib": 2.0**20, "gb": 2.0**30, "gib": 2.0**30}
_BINARY |= {"tb": 2.0**40, "tib": 2.0**40}
_DECIMAL = {"mb": 1e6, "gb": 1e9, "tb": 1e12}
_WRITTEN: dict[str, dict[str, float]] = {
    "MHz": {"mhz": 1.0, "ghz": 1000.0},
    "MT/s": {"mt/s": 1.0, "mts": 1.0, "gt/s": 1000.0},
    **{unit: {name: size / _BINARY[unit.lower()] for name, size in _BINARY.items()} for unit in ("KiB", "MiB", "GiB")},
    "GB": {name: size / 1e9 for name, size in _DECIMAL.items()},
    "W": {"w": 1.0, "kw": 1000.0},
    "bit": {"bit": 1.0, "bits": 1.0},
}
"""Declared unit -> the units it may be written in, lower case, and what one of them is. Memory and caches are sold in
powers of two whatever their unit is called; storage is not."""


def read_number(words: str, unit: str) -> float:
    """Return a number in the declared unit; one without a unit is in the declared one already.

    Raises: ValueError, with the reason, for what is no finite number or has another kind of unit.
    """
    match = _NUMBER.fullmatch(words.strip())
    if not match:
        raise ValueError("it is no number")
    value, written = float(match[1]), match[2].lower()
    known = _WRITTEN.get(unit, {})
    if written and written not in known:
        allowed = f"written in {', '.join(known)} (any case)" if known else "without a unit"
        raise ValueError(f"it must be {allowed}")
    value *= known.get(written, 1.0)
    if not math.isfinite(value):
        raise ValueError("it is no finite number")
    return value
