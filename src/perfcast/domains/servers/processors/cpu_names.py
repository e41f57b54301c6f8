"""Names of CPU models: the join key, and the family, tier and suffix that a name contains."""

from __future__ import annotations

import re
from functools import cache

from perfcast.domains.servers.processors.facts import read_table

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


def cpu_model_id(key: str) -> str:
    """Return the key as one word, for file names and reports."""
    return key.replace(" ", "-")


@cache
def _family_patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the pattern of the whole key and its family, in the order in which they are tried."""
    return tuple((re.compile(row["pattern"]), row["family"]) for row in read_table("family_names.csv"))


def list_rule_families() -> tuple[str, ...]:
    """Return the family of every naming rule, in the order of the rules."""
    return tuple(family for _, family in _family_patterns())


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
