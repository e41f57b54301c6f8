"""Names of CPU models: the join key, and the family, tier and suffix that a name contains."""

from __future__ import annotations

import re
from functools import cache

from perfcast.domains import read_table

_REMARK = re.compile(
    r"""
      ^\d+th\ gen\ (?:amd\ )?(?:pro\ )? | ^mobile\ (?=core)
    | ,?\ (?:with|supporting|includes|extreme\ edition|x-series|apu|soc|mobile|microsoft|for)(?:\ .*)?$
    | \ (?:black|50th)\ .*$
    """,
    re.VERBOSE,
)
"""Words that sellers put before and after the name of a CPU model; no family depends on them."""

_TIER = re.compile(
    r"xeon (?:cpu )?(bronze|silver|gold [56]|platinum|max)|xeon(?: 6)? (6[0-9])\d\d[a-z]"
    r"|(core ultra \d|core i\d|celeron|pentium gold|pentium|ryzen (?:threadripper pro|\d))"
)
_SUFFIX = re.compile(r"\d([a-z]{0,3}\+?)(?: v\d)?$")
_EPYC_MIDDLE = re.compile(r"epyc 7([fh])\d2$|epyc 7\d(f)3$")


VENDOR_WORDS = (
    "intel",
    "amd",
    "ibm",
    "oracle",
    "sun",
    "fujitsu",
    "huawei",
    "hisilicon",
    "ampere",
    "t-head",
    "zxic",
    "hygon",
    "nvidia",
    "aws",
    "annapurna labs",
    "google",
    "microsoft",
)
"""Names of vendors, which are dropped from the front of a key."""

_MARKS = re.compile(r"\((?:r|tm|c)\)|[®™©\u200b]", re.IGNORECASE)
_NOISE = re.compile(
    r"""
      \([^()]*\) | \[[^\[\]]*\]              # any bracketed remark
    | @\s*\d+(?:\.\d+)?\s*[gm]hz             # '@ 2.50GHz'
    | \b\d+-cores?\b                         # '64-Core'
    | ,?\s*\bwith\s+ipu\b.*                  # ARK's ', with IPU' variants are the same CPU model
    | \b(?:cpu|processor)s?\b
    """,
    re.VERBOSE,
)
_VENDOR = re.compile(rf"^(?:{'|'.join(VENDOR_WORDS)})\s+")
_VERSION = re.compile(r"(?<=[0-9])([al]?)v(?=[2-9]$)")
"""'E5-2620v4' is 'E5-2620 v4', 'E3-1240Lv5' is 'E3-1240L v5'; the version itself is part of the name."""
_STEPPING = re.compile(r"(?<=\d) 0$")
"""The operating system calls the first Xeon E5 `E5-2690 0`, those after it `v2` and so on."""
_TIER_NUMBER = re.compile(r"\b(xeon|ryzen|ultra) \d(?= )")
"""Number of a line or tier before the model number: `Xeon 6 6980P`, `Ryzen 9 7950X`."""
_XEON_6 = re.compile(r"^xeon ?6 (?=6)")
"""Brand of all models whose number begins with 6: it tells nothing beside the number."""


def cpu_model_key(name: str) -> str:
    """Return the join key of a processor name: vendor word, marks, clock and core count removed, case folded.

    '+', suffix letters and 'v4' stay, because they distinguish CPU models (8592+ is not 8592V). The key of a key is the
    key itself. A name of noise or marks alone keeps its folded text, so that no key is empty.
    """
    folded = " ".join(_MARKS.sub(" ", name).casefold().split())
    key = folded
    before = None
    while key != before:
        before = key
        key = " ".join(_NOISE.sub(" ", key).split()).strip(" ,")
        key = _VERSION.sub(r"\1 v", _VENDOR.sub("", key))
    return key or folded or " ".join(name.casefold().split())


def typed_cpu_key(name: str) -> str:
    """Return the key of a name that a user types or that an operating system reports."""
    return _STEPPING.sub("", cpu_model_key(name))


def shorten_key(key: str) -> str:
    """Return a key without the number of its brand, which tells nothing."""
    return _XEON_6.sub("xeon ", key)


def drop_tier_number(key: str) -> str:
    """Return a key without the number of the line or tier before the model number."""
    return _TIER_NUMBER.sub(r"\1", key)


def cpu_model_id(key: str) -> str:
    """Return the key as one word, for file names and reports."""
    return key.replace(" ", "-")


@cache
def _family_patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the pattern of the whole key and its family, in the order in which they are tried."""
    return tuple((re.compile(row["pattern"]), row["family"]) for row in read_table(__package__, "family_names.csv"))


@cache
def find_family(key: str) -> str | None:
    """Return the family of a CPU model by its key, None where no rule of `family_names.csv` names it."""
    name = " ".join(_REMARK.sub("", key).split())
    for text in dict.fromkeys((key, name)):
        for pattern, family in _family_patterns():
            if pattern.fullmatch(text):
                return family
    return None


def find_tier(key: str) -> str | None:
    """Return the market tier within the series ('gold 6', 'platinum', 'core i3'), None in a series without tiers."""
    match = _TIER.search(key)
    return next((group for group in match.groups() if group), None) if match else None


def find_suffix(key: str) -> str:
    """Return the letters after the model number ('y+', 'p', 'hl'), 'none' without letters."""
    middle = _EPYC_MIDDLE.search(key)
    if middle:
        return middle[1] or middle[2]
    match = _SUFFIX.search(key)
    return (match[1] if match else "") or "none"
