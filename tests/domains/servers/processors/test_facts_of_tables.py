"""Tables of facts and the catalog: dated, graded, sourced; families by rules, twins, memory limits, announced gains."""

import re
import shutil
from math import log

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfcast.domains.servers.features.server_physics import find_memory_limit
from perfcast.domains.servers.processors import announcements, catalog
from perfcast.domains.servers.processors.cpu_names import cpu_model_id, cpu_model_key, find_family, list_rule_families
from perfcast.domains.servers.processors.facts import (
    NUMERIC_FACTS,
    QUALITIES,
    UNITS,
    family_table,
    look_up_facts,
    parse_facts,
    read_facts,
)
from perfcast.domains.servers.processors.user_facts import find_fact_problems, find_value_problem
from perfcast.domains.servers.testing import cpu_catalog
from perfcast.domains.servers.testing.generated_rows import CPU_MODELS
from perfcast.utils.errors import UserError

LATE = pd.Timestamp("2030-01-01")


def test_designs_have_a_day_a_source_and_an_earlier_predecessor():
    assert {row["core"] for row in family_table().values() if row["core"]} <= set(announcements.core_table())
    assert set(announcements.processes_of_cores().values()) <= set(announcements.process_table())
    for table in (announcements.core_table(), announcements.process_table()):
        seen = {None}
        for design in table.values():
            assert not pd.isna(design.announced) and design.source and design.predecessor in seen, design
            seen.add(design.name)
    cores = {"Genoa-X": "Zen 4", "Cascade Lake-SP": "Skylake", "no such family": None, None: None}
    assert {family: announcements.find_core(family) for family in cores} == cores
    assert announcements.ancestry("Zen 3") == ("Zen", "Zen 2", "Zen 3")


def test_nothing_announced_later_is_known():
    for last_day, core, predecessor, before, after in (
        # nothing was announced: the mean gain of the vendor, then none
        ("2022-09-26", "Raptor Cove", "Golden Cove", (0.05 + 0.10 + 0.18 + 0.19 + 0.19) / 5, 0.0),
        ("2024-06-02", "Zen 5", "Zen 4", (0.15 + 0.19 + 0.14) / 3, 0.16),
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


TABLES = ("families.csv", "caches.csv", "exceptions.csv", "cpu_models.csv", "cores.csv", "processes.csv")


@pytest.mark.parametrize("table", TABLES)
def test_every_fact_is_plausible_stated_once_and_has_a_day_a_source_and_a_quality(table):
    facts = read_facts(table)
    assert len({(fact.cpu_model, fact.family, fact.name) for fact in facts}) == len(facts) > 0
    assert list(find_fact_problems(facts)) == [] and any(fact.quality > 0 for fact in facts)
    for fact in facts:
        assert fact.known_from is not None and fact.source and fact.quality in QUALITIES, fact
        assert fact.number is None or not find_value_problem(fact.name, fact.value), fact
        assert fact.unit == UNITS.get(fact.name, ""), fact


def test_wide_and_long_rows_state_the_same_fact_from_its_day_on():
    shared = {"cpu_model": "xeon 1", "family": "New", "known_from": "2026-01-02", "source": "list", "quality": "1"}
    (fact,) = parse_facts([{**shared, "tdp_w": "200", "base_mhz": ""}])
    assert [fact] == list(parse_facts([{**shared, "fact": "tdp_w", "value": "200", "unit": "W"}]))
    assert fact.number == 200
    assert [fact.is_known(pd.Timestamp(day)) for day in ("2026-01-02", "2026-01-03")] == [False, True]
    day = pd.Timestamp(str(family_table()["Genoa"]["known_from"]))
    for days, channels in ((0, None), (1, 12)):
        facts = look_up_facts("epyc 9654", day + pd.Timedelta(days=days))
        assert (facts["family"], facts["channels_per_chip"]) == ("Genoa", channels)
    assert {name for name, value in look_up_facts("quantum core x1").items() if value is not None} == {"suffix"}


def test_rules_and_tables_name_the_same_families():
    table = family_table()
    assert set(list_rule_families()) == set(table)
    for name, row in table.items():
        before = row["predecessor"]
        assert row["source"] and (not before or float(table[before]["generation"]) < float(row["generation"])), name
    assert not [fact for fact in read_facts("cpu_models.csv") if find_family(fact.cpu_model) != fact.family]
    for fact in read_facts("exceptions.csv"):
        assert fact.family in table and fact.name in NUMERIC_FACTS and re.match(r"[a-z(]", fact.cpu_model), fact


def test_the_memory_limit_of_one_dimm_per_channel_two_and_multiplexed_rank_dimms():
    for rate, running, dimms, multiplexed, limit in (
        *((6400, np.nan, 16, 8000, 6400), (8800, np.nan, 16, 8000, 8000), (8000, 8000, 16, 8000, 8000)),
        *((6400, np.nan, 32, 8000, 5200), (6400, 6400, 32, 8000, 6400), (4800, np.nan, 16, 8000, 6400)),
        (8800, np.nan, 16, np.nan, 6400),
    ):
        facts = {"mem_max_mts_1dpc": 6400.0, "mem_max_mts_2dpc": 5200.0, "mem_mrdimm_mts": multiplexed}
        machine = {"chips": 2, "mem_channels_per_chip": 8, "dimm_count": dimms, "mem_running_mts": running}
        assert find_memory_limit(pd.DataFrame([{**facts, **machine}]), pd.Series([float(rate)])).tolist() == [limit]


def test_different_parts_keep_different_keys():
    xeon = ("Platinum 8592+", "Platinum 8592V", "Gold 6438M", "Gold 6438Y+", "E5-2620", "E5-2620 v2")
    xeon += ("Platinum 8568+", "Platinum 8568Y+")
    names = [*(f"Intel Xeon {name}" for name in xeon), "AMD EPYC 7543", "AMD EPYC 7543P"]
    assert len({cpu_model_key(name) for name in names}) == len(names)
    assert cpu_model_id("xeon gold 6534") == "xeon-gold-6534"
    for noise in ("Processor", "CPU @ 2.50GHz", "AMD", "16-Core", "®", "(R) (TM)"):
        assert cpu_model_key(noise) == noise.casefold(), "a name of noise alone keeps its text"


@given(
    st.sampled_from(CPU_MODELS),
    st.sampled_from(["{}", "  {} ", "{} CPU @ 2.50GHz", "{} Processor", "{} 16-Core Processor", "{} (R)", "{} [B0]"]),
    st.sampled_from([str.upper, str.lower, str.title, str]),
    st.integers(1, 4),
)
def test_typing_does_not_change_the_key(part, dress, case, blanks):
    typed = dress.format(case(part.name)).replace(" ", " " * blanks)
    assert cpu_model_key(typed) == part.key


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("catalog")
    cpu_catalog.write(path, rows=20, seed=0)
    return path


@pytest.fixture(scope="module")
def listed(folder):
    return catalog.read_catalog(folder)


def test_tables_fill_gaps_in_order(listed):
    tables = {"xeon gold 6148": "ark", "epyc 7742": "amd", "xeon e-2388g": "xeon", "xeon 6980p": "project"}
    tables |= {"epyc 7543p": "twin", "xeon gold 6142m": "xeon"}
    facts = listed.lookup(list(tables))
    assert facts["table"].to_dict() == tables
    part = facts.loc["xeon gold 6148"]
    assert part[["max_turbo_mhz", "base_mhz", "cores_per_chip", "process_node"]].tolist() == [3600, 2400, 20, "14 nm"]
    assert part["launch_quarter"] == pd.Timestamp(2017, 7, 1)
    assert facts.loc["epyc 7543p", "max_sockets"] == 1, "a twin of one socket"


def test_a_changed_file_is_read_again_and_a_renamed_column_is_named(folder, tmp_path):
    with pytest.raises(UserError, match=r"intel-cpus\.csv"):
        catalog.read_catalog(tmp_path)
    file = tmp_path / "intel-cpus.csv"
    text = (folder / file.name).read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    before = catalog.read_catalog(tmp_path)
    assert catalog.read_catalog(tmp_path) is before
    file.write_text(text.replace(",40 MB,", ",40 MB L2 Cache,"), encoding="utf-8")
    assert not catalog.read_catalog(tmp_path).facts.equals(before.facts)
    file.write_text(text.replace("MaxTDP", "TDP"), encoding="utf-8")
    with pytest.raises(UserError, match=r"'MaxTDP', but"):
        catalog.read_catalog(tmp_path)


def test_sizes_of_caches_without_a_level_or_in_the_column_of_power(folder, tmp_path):
    shutil.copy(folder / "intel_xeon_processors_v1_8.csv", tmp_path)
    powers = catalog.read_catalog(tmp_path).lookup(["xeon platinum 8380h", "xeon gold 6148"])["tdp_w"]
    assert pd.isna(powers.iloc[0]) and powers.iloc[1] > 10
    (tmp_path / "intel_xeon_processors_v1_8.csv").unlink()
    text = (folder / "intel-cpus.csv").read_text(encoding="utf-8")
    assert ",40 MB," in text
    known = {"Q3'17 40 MB": True, "Q3'10 40 MB": False, "Q3'17 40 MB L2 Cache": False, "Q3'17 40 KB": False}
    known |= {"Q3'10 40 MB L3 Cache": True}
    for quarter_and_size, is_third in known.items():
        quarter, size = quarter_and_size.split(" ", 1)
        content = text.replace("Q3'17", quarter).replace(",40 MB,", f",{size},")
        (tmp_path / "intel-cpus.csv").write_text(content, encoding="utf-8")
        l3 = catalog.read_catalog(tmp_path).lookup(["xeon gold 6148"])["l3_mb_per_chip"].iloc[0]
        assert (l3 == 40) == is_third, quarter_and_size


def test_only_two_kinds_of_parts_have_twins_and_a_bare_number_gets_the_brand_of_its_line():
    twins = {"xeon gold 6134m": "xeon gold 6134", "xeon platinum 8280m": "xeon platinum 8280", "xeon gold 6438m": None}
    twins |= {"xeon platinum 8352m": None, "epyc 7643p": "epyc 7643", "epyc 8534pn": None}
    assert {key: catalog.find_twin_key(key) for key in twins} == twins
    brands = {
        **{("6276", "AMD Opteron™ 6200 Series Processor"): "Opteron 6276", ("A10-9700", "AMD A-Series"): "A10-9700"},
        **{("965", "AMD Phenom™ II X4 Black"): "Phenom II X4 965"},
        **{("AMD EPYC™ 9654", "AMD EPYC™ 9004 Series"): "AMD EPYC™ 9654"},
    }
    assert {part: catalog.add_brand(*part) for part in brands} == brands


def test_the_projects_table_counts_after_a_launch_and_twins_lend_their_clock(listed):
    project = catalog.read_project_catalog()
    missing = project.lookup(["no such part"])
    assert missing[[*catalog.FACTS, "table"]].isna().all(axis=None)
    assert project.lookup(["epyc 9335p"])[["max_turbo_mhz", "table"]].to_numpy().tolist() == [[4400, "twin"]]
    assert listed.facts.loc["xeon gold 6148", "max_turbo_mhz"] == 3600
    powers, clocks = project.facts["tdp_w"].dropna(), project.facts["max_turbo_mhz"].dropna()
    assert powers.between(30, 600).all() and clocks.between(2000, 6000).all() and project.facts.index.is_unique
    day = pd.Timestamp("2024-10-10")
    assert project.lookup(["epyc 9755"], day)["tdp_w"].isna().all()
    assert project.lookup(["epyc 9755"], day + pd.Timedelta(days=1))["tdp_w"].tolist() == [500]
    for key, day in (("xeon gold 6230", "2019-04-02"), ("xeon platinum 8592+", "2023-12-31")):
        days = (pd.Timestamp(day) + pd.Timedelta(days=later) for later in (0, 1))
        clocks = [listed.lookup([key], each)["all_core_turbo_mhz"].notna().item() for each in days]
        assert clocks == [False, True], f"the stated all-core clock of {key} counts after its day"
    # of a launch quarter, the last day counts
    assert project.facts.loc["epyc 8534p", "known_from"] == pd.Timestamp("2023-09-30")
    facts = pd.DataFrame(
        index=pd.Index(["xeon gold 6142m", "xeon gold 6142"]), columns=list(catalog.FACTS), dtype=object
    )
    facts.loc["xeon gold 6142m", "tdp_w"] = 150.0
    facts.loc["xeon gold 6142", ["tdp_w", "max_turbo_mhz"]] = (999.0, 3700.0)
    facts = catalog.Catalog(facts, {"xeon": frozenset(facts.index)}).lookup(["xeon gold 6142m"]).iloc[0]
    assert (facts["tdp_w"], facts["max_turbo_mhz"], facts["table"]) == (150.0, 3700.0, "xeon")
