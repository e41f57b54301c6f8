"""Processor families: naming rules, facts and exceptions."""

from __future__ import annotations

import re

import pandas as pd

from perfcast.domains.servers.processors import facts as families
from perfcast.domains.servers.processors.cpu_names import (
    find_family,
    list_rule_families,
)
from perfcast.domains.servers.processors.facts import family_table, look_up_facts, read_facts


def test_rules_and_table_name_the_same_families() -> None:
    assert set(list_rule_families()) == set(family_table())


def test_every_family_states_its_source_and_has_known_predecessors() -> None:
    table = family_table()
    for name, row in table.items():
        assert row["source"], name
        before = row["predecessor"]
        if before:
            assert float(table[before]["generation"]) < float(row["generation"]), name


def test_every_cpu_model_of_the_tables_has_the_family_of_its_name() -> None:
    unresolved = [fact for fact in read_facts("cpu_models.csv") if find_family(fact.cpu_model) != fact.family]
    assert not unresolved


def test_exceptions_name_real_families_and_facts_and_each_applies_to_a_key() -> None:
    for fact in read_facts("exceptions.csv"):
        assert fact.family in family_table()
        assert fact.name in families.NUMERIC_FACTS
        assert re.match(r"[a-z(]", fact.cpu_model)


def test_facts_count_only_after_their_day() -> None:
    day = pd.Timestamp(str(family_table()["Genoa"]["known_from"]))
    assert look_up_facts("epyc 9654", day)["channels_per_chip"] is None
    assert look_up_facts("epyc 9654", day)["family"] == "Genoa"
    assert look_up_facts("epyc 9654", day + pd.Timedelta(days=1))["channels_per_chip"] == 12


def test_unknown_part_has_no_facts() -> None:
    facts = look_up_facts("quantum core x1")
    assert {name for name, value in facts.items() if value is not None} == {"suffix"}
