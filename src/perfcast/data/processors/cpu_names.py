"""Processor names: one key per part however the name was typed."""

from __future__ import annotations

import re

VENDOR_WORDS = ("intel", "amd", "ibm", "oracle", "sun", "fujitsu", "huawei", "hisilicon", "ampere", "t-head", "zxic")
"""Words that only say who made the part; dropped from the front of a key."""

_MARKS = re.compile(r"\((?:r|tm|c)\)|[®™©]", re.IGNORECASE)
_NOISE = re.compile(
    r"""
      \([^()]*\) | \[[^\[\]]*\]              # any bracketed remark
    | @\s*\d+(?:\.\d+)?\s*[gm]hz             # '@ 2.50GHz'
    | \b\d+-cores?\b                         # '64-Core'
    | ,?\s*\bwith\s+ipu\b.*                  # ARK's ', with IPU' variants are the same part
    | \b(?:cpu|processor)s?\b
    """,
    re.VERBOSE,
)
_VENDOR = re.compile(rf"^(?:{'|'.join(VENDOR_WORDS)})\s+")
_VERSION = re.compile(r"(?<=[0-9])([al]?)v(?=[2-9]$)")
"""'E5-2620v4' is 'E5-2620 v4', 'E3-1240Lv5' is 'E3-1240L v5'; the version itself is part of the name."""


def part_key(name: str) -> str:
    """Return the join key of a processor name: vendor word, marks, clock and core count removed, case folded.

    '+', suffix letters and 'v4' are kept, because they tell different parts apart (8592+ is not 8592V). The key of a
    key is the key itself. A name made of noise or marks alone keeps its folded text, so that no name becomes empty.
    """
    folded = " ".join(_MARKS.sub(" ", name).casefold().split())
    key, before = folded, None
    while key != before:
        before = key
        key = " ".join(_NOISE.sub(" ", key).split()).strip(" ,")
        key = _VERSION.sub(r"\1 v", _VENDOR.sub("", key))
    return key or folded or " ".join(name.casefold().split())


def part_id(key: str) -> str:
    """Return the key as one word, for file names and reports."""
    return key.replace(" ", "-")
