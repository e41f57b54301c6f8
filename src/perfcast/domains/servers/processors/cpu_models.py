"""Facts of CPU models: the table `cpu_models.csv` and the tables of families, joined by CPU model to rows.

A blank cell states nothing, and the fact stays missing. Column `known_from` is the day from which the facts of a model
were public: its launch. Of a launch quarter it is the last day, and of a model without a launch the day of its family.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

import pandas as pd

from perfcast.domains.servers.parsing.distinct_texts import encode_texts, expand_codes
from perfcast.domains.servers.processors.cpu_names import cpu_model_key, find_family
from perfcast.domains.servers.processors.facts import Fact, look_up_facts, read_facts, read_table

_TABLE = "cpu_models.csv"
OF_MODEL = ("tdp_w", "max_turbo_mhz", "all_core_turbo_mhz", "launch_quarter", "upi_links", "max_sockets")
"""Facts of the table that are standard columns of every dataset."""
FACTS = (*OF_MODEL, "base_mhz", "cores_per_chip", "l2_kb_per_core", "l3_mb_per_chip")
"""Units: W, MHz, KiB, MiB, counts; launch_quarter is the first day of the quarter."""
KNOWN_FROM = "known_from"
_DATES = {"launch_quarter": "datetime64[us]", KNOWN_FROM: "datetime64[us]"}

_FACT_COLUMNS = read_table("fact_columns.csv")
_OF_FAMILY = {row["column"]: row["fact"] for row in _FACT_COLUMNS if row["of_families"]}
"""Standard column of every fact of families -> the fact."""
COLUMNS_OF_FACTS = {row["fact"]: row["column"] for row in _FACT_COLUMNS}
"""Standard column of every fact; that of a model stands after that of its family, and counts."""


@cache
def read_cpu_models() -> pd.DataFrame:
    """Return the facts of the listed CPU models. Shapes: one row per key; the columns are FACTS and KNOWN_FROM."""
    texts = pd.DataFrame(read_table(_TABLE)).set_index("cpu_model")[[*FACTS, KNOWN_FROM]].replace("", None)
    quarters = pd.PeriodIndex(texts["launch_quarter"], freq="Q")
    facts = texts.assign(launch_quarter=quarters.to_timestamp())
    return facts.astype({**dict.fromkeys(FACTS, "float64"), **_DATES})


def look_up_models(keys: Iterable[str], as_of: pd.Timestamp | None = None) -> pd.DataFrame:
    """Return the facts of each key, without duplicates. Those that were not public before `as_of` are missing."""
    listed = read_cpu_models()
    if as_of is not None:
        listed = listed[listed[KNOWN_FROM] < as_of]
    wanted = pd.Index(list(keys), name="cpu_model").unique()
    return listed.reindex(wanted)[list(FACTS)]


def join_processors(frame: pd.DataFrame, as_of: pd.Timestamp | None = None) -> pd.DataFrame:
    """Add the facts of each row's CPU model and of its family; unknown facts are missing.

    Only facts that were public before `as_of` count, all of them without a day.
    """
    keys = frame["cpu_model"].drop_duplicates().astype("str")
    families = pd.DataFrame([look_up_facts(key, as_of) for key in keys], index=pd.Index(keys, name="cpu_model"))
    listed = look_up_models(keys, as_of)
    facts = {name: families[fact] for name, fact in _OF_FAMILY.items()}
    facts |= {name: listed[name] for name in OF_MODEL}
    facts["listed_cores"] = listed["cores_per_chip"]
    codes, names = encode_texts(frame["cpu_model"])
    joined = {name: expand_codes(values.loc[names].tolist(), codes, frame.index) for name, values in facts.items()}
    return frame.assign(**joined, cores_per_chip_stated=frame["cores"] / frame["chips"])


def list_facts(name: str, stated: Sequence[Fact], family: str | None = None) -> list[Fact]:
    """Return the facts of a CPU model, one by name: of the user, of the table of models, of the family.

    Args: `stated` are facts of a user; `family` is by default that of the user's facts or of the name.
    """
    key = cpu_model_key(name)
    user_facts = [fact for fact in stated if fact.cpu_model == key]
    family = family or next((fact.family for fact in user_facts if fact.family), find_family(key) or "")
    groups = (
        user_facts,
        (fact for fact in read_facts(_TABLE) if fact.cpu_model == key),
        (f for f in read_facts("exceptions.csv") if f.family == family and re.match(f.cpu_model, key)),
        (fact for fact in read_facts("families.csv") if fact.family == family),
        (fact for fact in read_facts("caches.csv") if fact.family == family),
    )
    first: dict[str, Fact] = {}
    for group in groups:
        for fact in group:
            first.setdefault(fact.name, fact)
    return list(first.values())
