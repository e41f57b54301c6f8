"""One schema of facts: every table is read by one reader, dated, graded, plausible."""

from __future__ import annotations

import pandas as pd
import pytest

from perfcast.domains.servers.processors.facts import LIMITS, QUALITIES, UNITS, parse_facts, read_facts

TABLES = ("families.csv", "caches.csv", "exceptions.csv", "cpu_models.csv", "cores.csv", "processes.csv")


@pytest.mark.parametrize("table", TABLES)
def test_every_fact_has_a_day_a_source_and_a_quality(table: str) -> None:
    facts = read_facts(table)
    assert facts
    for fact in facts:
        assert fact.known_from is not None, fact
        assert fact.source, fact
        assert fact.quality in QUALITIES, fact


@pytest.mark.parametrize("table", TABLES)
def test_facts_are_plausible(table: str) -> None:
    for fact in read_facts(table):
        low, high = LIMITS.get(fact.name, (float("-inf"), float("inf")))
        assert fact.number is None or low <= fact.number <= high, fact
        assert fact.unit == UNITS.get(fact.name, ""), fact


@pytest.mark.parametrize("table", TABLES)
def test_no_fact_is_stated_twice(table: str) -> None:
    facts = read_facts(table)
    assert len({(fact.cpu_model, fact.family, fact.name) for fact in facts}) == len(facts)


def test_a_wide_row_and_a_long_row_state_the_same_fact() -> None:
    shared = {"cpu_model": "xeon 1", "family": "New", "known_from": "2026-01-02", "source": "list", "quality": "1"}
    wide = list(parse_facts([{**shared, "tdp_w": "200", "base_mhz": ""}]))
    assert wide == list(parse_facts([{**shared, "fact": "tdp_w", "value": "200", "unit": "W"}]))
    assert wide[0].number == 200
    assert not wide[0].is_known(pd.Timestamp("2026-01-02"))
    assert wide[0].is_known(pd.Timestamp("2026-01-03"))
