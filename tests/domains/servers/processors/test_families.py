"""Processor families: naming rules, facts and exceptions."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from perfcast.domains.servers.processors import families
from perfcast.domains.servers.processors.cpu_names import (
    cpu_model_key,
    find_family,
    find_suffix,
    find_tier,
    list_rule_families,
)
from perfcast.domains.servers.processors.facts import read_facts
from perfcast.domains.servers.processors.families import family_table, look_up_facts


@pytest.mark.parametrize(
    ("part", "family"),
    [
        ("Intel Xeon Gold 6148", "Skylake-SP"),
        ("Intel Xeon Platinum 9282", "Cascade Lake-AP"),
        ("Intel Xeon Platinum 8280L", "Cascade Lake-SP"),
        ("Intel Xeon Gold 5318H", "Cooper Lake"),
        ("Intel Xeon Gold 6328HL", "Cooper Lake"),
        ("Intel Xeon Gold 5318N", "Ice Lake-SP"),
        ("Intel Xeon Silver 4410Y", "Sapphire Rapids"),
        ("Intel Xeon Silver 4510", "Emerald Rapids"),
        ("Intel Xeon Platinum 8490H", "Sapphire Rapids"),
        ("Intel Xeon Max 9480", "Sapphire Rapids HBM"),
        ("Intel Xeon 6780E", "Sierra Forest"),
        ("Intel Xeon 6980P", "Granite Rapids-AP"),
        ("Intel Xeon 6 6787P", "Granite Rapids-SP"),
        ("Intel Xeon 6517P", "Granite Rapids-SP"),
        ("Intel Xeon 6369P", "Raptor Lake 6300P"),
        ("Intel Xeon 6756P-B", "Granite Rapids-D"),
        ("Intel Xeon 698X", "Granite Rapids-WS"),
        ("Intel Xeon 6980E+", "Clearwater Forest"),
        ("Intel Core Ultra 9 285K", "Arrow Lake"),
        ("Intel Core i7-13700K", "Raptor Lake"),
        ("AMD EPYC 4565P", "EPYC 4005"),
        ("AMD EPYC 8635P", "EPYC 8005"),
        ("AMD EPYC 9996", "Venice"),
        ("AMD EPYC 9746", "Venice SP8"),
        ("AMD EPYC 9V33X", "Genoa-X"),
        ("AMD Ryzen 7 7840U", "Phoenix"),
        ("AMD Ryzen Threadripper PRO 9995WX", "Shimada Peak"),
        ("AmpereOne A192-32M", "AmpereOne M"),
        ("NVIDIA Grace CPU Superchip", "Grace"),
        ("AWS Graviton4", "Graviton4"),
        ("Annapurna Labs Graviton3E", "Graviton3"),
        ("Google Axion C4A", "Axion"),
        ("Huawei Kunpeng 920 7280Z", "Kunpeng 920B"),
        ("7th Gen AMD PRO A10-9700B APU", "Bristol Ridge"),
        ("AMD EPYC 7601", "Naples"),
        ("AMD EPYC 7H12", "Rome"),
        ("AMD EPYC 7F72", "Rome"),
        ("AMD EPYC 7203", "Milan"),
        ("AMD EPYC 75F3", "Milan"),
        ("AMD EPYC 7773X", "Milan-X"),
        ("AMD EPYC 9734", "Bergamo"),
        ("AMD EPYC 9684X", "Genoa-X"),
        ("AMD EPYC 9174F", "Genoa"),
        ("AMD EPYC 8534PN", "Siena"),
        ("AMD EPYC 9575F", "Turin"),
        ("AMD EPYC 9965", "Turin Dense"),
        ("AMD EPYC 4584PX", "EPYC 4004"),
        ("Intel Xeon E-2288G", "Coffee Lake Refresh E"),
        ("Intel Xeon E5-2620", "Sandy Bridge-EP"),
        ("Intel Xeon E5-2620 v4", "Broadwell-EP"),
        ("Intel Pentium G4560", "Kaby Lake"),
        ("Intel Pentium G4400", "Skylake"),
        ("Intel Celeron G4930", "Coffee Lake Refresh"),
        ("Intel Xeon 5160", "Woodcrest"),
        ("Intel Xeon X5365", "Clovertown"),
        ("Intel Xeon L7345", "Tigerton"),
        ("Intel Xeon E5405", "Harpertown"),
        ("Intel Xeon X5260", "Harpertown"),
        ("Intel Xeon X7460", "Dunnington"),
        ("Intel Xeon W3520", "Bloomfield"),
        ("Intel Xeon X3430", "Lynnfield"),
        ("Intel Xeon L3406", "Clarkdale"),
        ("Intel Xeon W5580", "Nehalem-EP"),
        ("Intel Xeon L7555", "Nehalem-EX"),
        ("Intel Xeon E5645", "Westmere-EP"),
        ("Intel Xeon E7-8867L", "Westmere-EX"),
        ("Intel Xeon E5-2470", "Sandy Bridge-EN"),
        ("Intel Xeon E5-2407 v2", "Ivy Bridge-EN"),
        ("Intel Xeon E5-4650", "Sandy Bridge-EP"),
        ("Intel Xeon E3-1265L v2", "Ivy Bridge E3"),
        ("Intel Pentium G640T", "Sandy Bridge"),
        ("Intel Pentium G6950", "Clarkdale"),
        ("Intel Pentium G3220", "Haswell"),
        ("Intel Core i7-980X", "Gulftown"),
        ("Intel Core 2 Duo E6700", "Conroe"),
        ("Intel Core 2 Duo E8600", "Wolfdale"),
        ("AMD Opteron 254", "Sledgehammer"),
        ("AMD Opteron 2224 SE", "Santa Rosa"),
        ("AMD Opteron 8360 SE", "Barcelona"),
        ("AMD Opteron 2376 HE", "Shanghai"),
        ("AMD Opteron 8439 SE", "Istanbul"),
        ("AMD Opteron 6180 SE", "Magny-Cours"),
        ("AMD Opteron 6284 SE", "Interlagos"),
        ("AMD Opteron 6370P", "Abu Dhabi"),
        ("AMD Phenom II X4 B97", "Deneb"),
        ("POWER7+", "POWER7+"),
        ("SPARC64 VII", "SPARC64 VII"),
        ("UltraSPARC IV+", "UltraSPARC IV+"),
        ("Itanium 9350", "Tukwila"),
        ("Intel Xeon E5-264", None),
        ("Quantum Core X1", None),
        ("redacted", None),
    ],
)
def test_family_by_name(part: str, family: str | None) -> None:
    assert find_family(cpu_model_key(part)) == family


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


@pytest.mark.parametrize(
    ("key", "channels", "rate", "two_dimms", "mrdimm"),
    [
        ("xeon 6980p", 12, 6400, None, 8800),
        ("xeon 6787p", 8, 6400, 5200, 8000),
        ("xeon 6740p", 8, 6400, 5200, None),
        ("xeon 6369p", 2, 4800, None, None),
        ("xeon 6756p-b", 8, 6400, None, None),
        ("xeon 6516p-b", 4, 4800, None, None),
        ("epyc 4565p", 2, 5600, 3600, None),
    ],
)
def test_models_of_one_series_differ_in_memory(
    key: str, channels: float, rate: float, two_dimms: float | None, mrdimm: float | None
) -> None:
    facts = look_up_facts(key)
    names = ("channels_per_chip", "max_mts_1dpc", "max_mts_2dpc", "mrdimm_mts")
    assert [facts[name] for name in names] == [channels, rate, two_dimms, mrdimm]


@pytest.mark.parametrize(
    ("key", "fact", "value"),
    [
        ("xeon silver 4110", "max_mts_1dpc", 2400),
        ("xeon gold 5122", "max_mts_1dpc", 2667),
        ("xeon gold 5118", "fma_units", 1),
        ("xeon gold 6130", "fma_units", 2),
        ("xeon gold 6330", "max_mts_1dpc", 2933),
        ("xeon gold 6330n", "max_mts_1dpc", 2667),
        ("xeon platinum 8558", "max_mts_1dpc", 5200),
        ("xeon platinum 8562y+", "max_mts_1dpc", 5600),
        ("celeron g4930", "simd_bits", 128),
        ("epyc 7742", "channels_per_chip", 8),
        ("xeon e5506", "max_mts_1dpc", 800),
        ("xeon x5570", "max_mts_1dpc", 1333),
        ("xeon e5-2407", "max_mts_1dpc", 1066),
        ("pentium g640", "simd_bits", 128),
    ],
)
def test_tiers_differ_from_their_family(key: str, fact: str, value: float) -> None:
    assert look_up_facts(key)[fact] == value


def test_unknown_part_has_no_facts() -> None:
    facts = look_up_facts("quantum core x1")
    assert {name for name, value in facts.items() if value is not None} == {"suffix"}


@pytest.mark.parametrize(
    ("key", "tier", "suffix"),
    [
        ("xeon gold 5415+", "gold 5", "+"),
        ("xeon gold 6538y+", "gold 6", "y+"),
        ("xeon e5-2699a v4", None, "a"),
        ("epyc 7f52", None, "f"),
        ("epyc 72f3", None, "f"),
        ("epyc 7742", None, "none"),
        ("core i9-9900k", "core i9", "k"),
    ],
)
def test_tier_and_suffix(key: str, tier: str | None, suffix: str) -> None:
    assert (find_tier(key), find_suffix(key)) == (tier, suffix)
