"""Tables of facts: dated, graded, sourced; families by rules, CPU models, memory limits, announced gains."""

import re
from math import log

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.servers.features.server_physics import find_memory_limit
from perfcast.domains.servers.processors import announcements, cpu_models
from perfcast.domains.servers.processors.cpu_names import (
    cpu_model_key,
    find_family,
)
from perfcast.domains.servers.processors.facts import (
    NUMERIC_FACTS,
    QUALITIES,
    TEXT_FACTS,
    UNITS,
    family_table,
    look_up_facts,
    parse_facts,
    read_facts,
    read_table,
)
from perfcast.domains.servers.processors.user_facts import (
    find_fact_problems,
    find_value_problem,
)

LATE = pd.Timestamp("2030-01-01")


def test_designs_have_a_day_a_source_and_an_earlier_predecessor():
    assert {row["core"] for row in family_table().values() if row["core"]} <= set(announcements.core_table())
    assert set(announcements.processes_of_cores().values()) <= set(announcements.process_table())
    for table in (announcements.core_table(), announcements.process_table()):
        seen = {None}
        for design in table.values():
            assert not pd.isna(design.announced) and design.source and design.predecessor in seen, design
            seen.add(design.name)
    cores = {
        "Genoa-X": "Zen 4",
        "Cascade Lake-SP": "Skylake",
        "no such family": None,
        None: None,
    }
    assert {family: announcements.find_core(family) for family in cores} == cores
    assert announcements.ancestry("Zen 3") == ("Zen", "Zen 2", "Zen 3")


def test_nothing_announced_later_is_known():
    for last_day, core, predecessor, before, after in (
        # nothing was announced: the mean gain of the vendor, then none
        (
            "2022-09-26",
            "Raptor Cove",
            "Golden Cove",
            (0.05 + 0.10 + 0.18 + 0.19 + 0.19) / 5,
            0.0,
        ),
        (
            "2024-06-02",
            "Zen 5",
            "Zen 4",
            (0.15 + 0.19 + 0.14) / 3,
            0.16,
        ),
    ):
        for days, gain in ((0, before), (1, after)):
            index = announcements.announced_index(pd.Timestamp(last_day) + pd.Timedelta(days=days))
            assert index[core] - index[predecessor] == pytest.approx(log(1 + gain))


def test_gains_multiply_along_the_line_and_a_process_counts_once_announced():
    index = announcements.announced_index(LATE)
    assert index["Zen"] == 0 and index["Zen 5c"] == index["Zen 5"]
    assert index["Zen 3"] == pytest.approx(log(1.15 * 1.19))
    assert set(announcements.announced_index(pd.Timestamp("2000-01-01")).values()) == {0.0}
    for day, gain in (("2018-11-05", 1), ("2018-11-06", 1.25)):
        assert announcements.announced_power_index(pd.Timestamp(day))["Zen 2"] == pytest.approx(log(gain))
    late = announcements.announced_power_index(LATE)
    assert late["Zen 4"] == pytest.approx(log(1.25 * 1.25))
    assert late["Sunny Cove"] == late["Skylake"] == 0 and "POWER9" not in late


TABLES = (
    "families.csv",
    "caches.csv",
    "exceptions.csv",
    "cpu_models.csv",
    "cores.csv",
    "processes.csv",
)


@pytest.mark.parametrize("table", TABLES)
def test_every_fact_is_plausible_stated_once_and_has_a_day_a_source_and_a_quality(
    table,
):
    facts = read_facts(table)
    assert len({(fact.cpu_model, fact.family, fact.name) for fact in facts}) == len(facts) > 0
    assert list(find_fact_problems(facts)) == [] and any(fact.quality > 0 for fact in facts)
    for fact in facts:
        assert fact.known_from is not None and fact.source and fact.quality in QUALITIES, fact
        assert fact.number is None or not find_value_problem(fact.name, fact.value), fact
        assert fact.unit == UNITS.get(fact.name, ""), fact


def test_wide_and_long_rows_state_the_same_fact_from_its_day_on():
    shared = {
        "cpu_model": "xeon 1",
        "family": "New",
        "known_from": "2026-01-02",
        "source": "list",
        "quality": "1",
    }
    (fact,) = parse_facts([{**shared, "tdp_w": "200", "base_mhz": ""}])
    assert [fact] == list(
        parse_facts(
            [
                {
                    **shared,
                    "fact": "tdp_w",
                    "value": "200",
                    "unit": "W",
                }
            ]
        )
    )
    assert fact.number == 200
    assert [fact.is_known(pd.Timestamp(day)) for day in ("2026-01-02", "2026-01-03")] == [False, True]
    day = pd.Timestamp(str(family_table()["Genoa"]["known_from"]))
    for days, channels in ((0, None), (1, 12)):
        facts = look_up_facts("epyc 9654", day + pd.Timedelta(days=days))
        assert (facts["family"], facts["channels_per_chip"]) == ("Genoa", channels)
    assert {name for name, value in look_up_facts("quantum core x1").items() if value is not None} == {"suffix"}


def test_rules_and_tables_name_the_same_families():
    table = family_table()
    rules = read_table("family_names.csv")
    assert {row["family"] for row in rules} == set(table)
    for name, row in table.items():
        before = row["predecessor"]
        assert row["source"] and (not before or float(table[before]["generation"]) < float(row["generation"])), name
    assert not [fact for fact in read_facts("cpu_models.csv") if find_family(fact.cpu_model) != fact.family]
    for fact in read_facts("exceptions.csv"):
        assert (
            fact.family in table and fact.name in (*NUMERIC_FACTS, *TEXT_FACTS) and re.match(r"[a-z(]", fact.cpu_model)
        ), fact


def test_the_memory_limit_of_one_dimm_per_channel_two_and_multiplexed_rank_dimms():
    for rate, running, dimms, multiplexed, limit in (
        (6400, np.nan, 16, 8000, 6400),
        (8800, np.nan, 16, 8000, 8000),
        (8000, 8000, 16, 8000, 8000),
        (6400, np.nan, 32, 8000, 5200),
        (6400, 6400, 32, 8000, 6400),
        (4800, np.nan, 16, 8000, 6400),
        (8800, np.nan, 16, np.nan, 6400),
    ):
        facts = {
            "mem_max_mts_1dpc": 6400.0,
            "mem_max_mts_2dpc": 5200.0,
            "mem_mrdimm_mts": multiplexed,
        }
        machine = {
            "chips": 2,
            "mem_channels_per_chip": 8,
            "dimm_count": dimms,
            "mem_running_mts": running,
        }
        assert find_memory_limit(pd.DataFrame([{**facts, **machine}]), pd.Series([float(rate)])).tolist() == [limit]


def test_models_are_listed_once_with_a_day_a_source_and_a_launch_quarter():
    rows = read_table("cpu_models.csv")
    keys = [row["cpu_model"] for row in rows]
    assert len(set(keys)) == len(keys)
    assert keys == [cpu_model_key(key) for key in keys], "rows are found by the key of a typed name"
    for row in rows:
        assert set(row["known_from"]) <= set("0123456789-") and row["source"] and row["quality"], row
        assert not row["launch_quarter"] or re.fullmatch(r"(19|20)\d\dQ[1-4]", row["launch_quarter"]), row
    models = cpu_models.read_cpu_models()
    assert models.index.tolist() == keys and models["known_from"].notna().all()


def test_facts_of_a_model_and_of_its_family_are_joined():
    keys = ["xeon gold 6148", "epyc 7543p", "epyc 7281", "no such part"]
    joined = cpu_models.join_processors(pd.DataFrame({"cpu_model": keys, "cores": 40.0, "chips": 2.0}))
    facts = joined.set_index("cpu_model")
    model = facts.loc["xeon gold 6148"]
    assert model[["max_turbo_mhz", "listed_cores", "upi_links", "process_node"]].tolist() == [3700, 20, 3, "14 nm"]
    assert model["launch_quarter"] == pd.Timestamp(2017, 7, 1)
    assert facts.loc["epyc 7543p", "max_sockets"] == 1
    assert pd.isna(facts.loc["epyc 7281", "launch_quarter"]), "no list has its launch"
    assert (
        facts.loc["no such part"]
        .drop(
            [
                "cores",
                "chips",
                "cores_per_chip_stated",
                "suffix",
            ]
        )
        .isna()
        .all()
    )


def test_facts_of_a_model_count_after_its_day():
    for key, launch in (
        ("epyc 9755", "2024-10-10"),
        ("xeon gold 6230", "2019-04-02"),
        # of a launch quarter, the last day counts
        ("xeon platinum 8592+", "2023-12-31"),
        ("epyc 8534p", "2023-09-30"),
        # without a launch, the day of the family
        ("epyc 7281", "2017-06-20"),
    ):
        for days, known in ((0, False), (1, True)):
            facts = cpu_models.look_up_models([key], pd.Timestamp(launch) + pd.Timedelta(days=days))
            assert facts.index.tolist() == [key] and facts["tdp_w"].notna().item() is known, (key, days)
