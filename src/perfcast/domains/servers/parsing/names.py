"""Names of companies, with one name for all aliases, and names of machines without their processors."""

from __future__ import annotations

import re

import pandas as pd

from perfcast.domains import read_table
from perfcast.domains.servers.parsing.distinct_texts import expand_codes, number_combinations

_COMPANIES = tuple(
    (re.compile(rf"{re.escape(row['beginning'])}\b"), row["name"]) for row in read_table(__package__, "companies.csv")
)
_LEGAL_FORM = re.compile(
    r"[,\s]+(?:inc|ltd|co|corp|corporation|incorporated|limited|gmbh|s\.?r\.?o|sp\. z o\.o|pte|technologies)\.?$",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"@?\s*\b\d+(?:\.\d+)?\s*[GM]Hz\b", re.IGNORECASE)
_CORE_WORDS = re.compile(r"\b\d+-Core\b|\bProcessors?\b|\bCPUs?\b|\(redacted\)", re.IGNORECASE)
_EMPTY_BRACKETS = re.compile(r"\(\s*[,;:/\s]*\)")
_STRAY = re.compile(r"\s*[,;]\s*(?=[,;)]|$)|(?<=\()\s*[,;]\s*")


def normalize_company(name: str) -> str | None:
    """Return the canonical name of a company; for an unlisted company, its name without the legal form."""
    text = " ".join(name.split())
    folded = text.casefold()
    listed = next((canonical for pattern, canonical in _COMPANIES if pattern.match(folded)), None)
    while listed is None and (shorter := _LEGAL_FORM.sub("", text)) not in ("", text):
        text = shorter
    return listed or text.strip(" ,.") or None


def extract_system_stems(frame: pd.DataFrame) -> pd.Series:
    """Return the names of the machines without processor and clock, computed once per distinct pair of texts."""
    numbers, first = number_combinations(frame, ["System", "Processor"])
    pairs = frame[["System", "Processor"]].iloc[first].astype("str")
    stems = [extract_system_stem(*pair) for pair in pairs.itertuples(index=False)]
    return expand_codes(stems, numbers, frame.index)


def extract_system_stem(system: str, processor: str) -> str:
    """Return the name of a machine without processor and clock, and without their brackets."""
    text = " ".join(system.split())
    name = " ".join(processor.split())
    text = re.sub(re.escape(name), " ", text, flags=re.IGNORECASE) if name else text
    text = _CORE_WORDS.sub(" ", _CLOCK.sub(" ", text))
    before = None
    while text != before:
        before = text
        text = _EMPTY_BRACKETS.sub(" ", _STRAY.sub(" ", text)).strip()
    return " ".join(text.split()).replace("( ", "(").replace(" )", ")") or " ".join(system.split())
