"""Processor families: naming rules and the two tables of facts."""

from __future__ import annotations

import re

import pytest

from perfcast.data.processors import families
from perfcast.data.processors.cpu_names import cpu_model_key, find_family, find_suffix, find_tier, list_rule_families
from perfcast.data.processors.families import family_table, look_up_facts


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
        ("Intel Xeon 6980P", "Granite Rapids"),
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


def test_facts_are_plausible() -> None:
    limits = {"channels_per_chip": (1, 12), "max_mts_1dpc": (400, 8800), "simd_bits": (64, 512), "pcie_gen": (2, 5)}
    for name, row in family_table().items():
        for fact, (low, high) in limits.items():
            assert not row[fact] or low <= float(row[fact]) <= high, (name, fact)


def test_exceptions_name_real_families_and_facts_and_each_applies_to_a_key() -> None:
    for entry in families._read_exceptions():
        assert entry.family in family_table()
        assert entry.fact in families.NUMERIC_FACTS
        assert entry.value is not None
        assert re.match(r"[a-z(]", entry.pattern.pattern)


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
