"""Facts of a user's table in the reference data of a champion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from perfcast.domains.servers.processors.facts import Fact
from perfcast.domains.servers.processors.families import look_up_facts
from perfcast.domains.servers.processors.joined_facts import COLUMNS_OF_FACTS
from perfcast.inference.champion import Champion


def add_user_facts(champion: Champion, facts: Sequence[Fact]) -> Champion:
    """Return the champion with the facts of a user, which replace those that it has.

    A CPU model that the champion does not list gets the facts of its family first. A champion of machines without facts
    of processors stays as it is.
    """
    listed = champion.reference_data.entity_facts
    if "family" not in listed or not facts:
        return champion
    rows: dict[str, dict[str, object]] = {}
    for fact in facts:
        if fact.cpu_model not in rows:
            rows[fact.cpu_model] = _begin_row(fact, listed)
        column = COLUMNS_OF_FACTS.get(fact.name)
        if column in listed:
            rows[fact.cpu_model][str(column)] = fact.number
    stated = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=listed.columns)
    others = listed.drop(index=[key for key in rows if key in listed.index])
    merged = pd.concat([stated.astype(object), others.astype(object)]).astype(listed.dtypes.to_dict())
    merged.index.name = listed.index.name
    reference_data = replace(
        champion.reference_data, entity_facts=merged, user_facts=tuple(facts), user_entities=frozenset(rows)
    )
    return replace(champion, reference_data=reference_data)


def _begin_row(fact: Fact, listed: pd.DataFrame) -> dict[str, object]:
    """Return the cells of a CPU model that are known without its own facts."""
    if fact.cpu_model in listed.index:
        return dict(listed.loc[fact.cpu_model])
    family_facts = look_up_facts(fact.cpu_model, family=fact.family or None)
    row: dict[str, object] = {
        column: family_facts[name] for name, column in COLUMNS_OF_FACTS.items() if family_facts.get(name) is not None
    }
    if fact.known_from is not None:
        row["launch_quarter"] = fact.known_from.to_period("Q").start_time
    return row
