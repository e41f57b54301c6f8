"""Cores and announced gains: a table that can be walked, and that knows nothing before it was said."""

from math import log

import pandas as pd
import pytest

from perfcast.domains.servers.processors.announcements import (
    ancestry,
    announced_index,
    announced_power_index,
    core_table,
    find_core,
    process_table,
    processes_of_cores,
)
from perfcast.domains.servers.processors.facts import family_table

LATE = pd.Timestamp("2030-01-01")


def test_every_core_named_by_a_family_is_in_the_table():
    assert {row["core"] for row in family_table().values() if row["core"]} <= set(core_table())


@pytest.mark.parametrize("table", [core_table, process_table])
def test_predecessors_are_listed_before_their_followers_and_of_the_same_table(table):
    seen = set()
    for design in table().values():
        assert design.predecessor is None or design.predecessor in seen
        seen.add(design.name)


@pytest.mark.parametrize("table", [core_table, process_table])
def test_every_design_has_a_day_and_a_source(table):
    for design in table().values():
        assert not pd.isna(design.announced), design
        assert design.source, design


def test_before_its_launch_a_core_without_an_announced_gain_has_the_mean_gain_of_its_vendor():
    before, after = pd.Timestamp("2022-09-26"), pd.Timestamp("2022-09-27")
    mean = (0.05 + 0.10 + 0.18 + 0.19 + 0.19) / 5
    assert announced_index(before)["Raptor Cove"] - announced_index(before)["Golden Cove"] == pytest.approx(
        log(1 + mean)
    )
    assert announced_index(after)["Raptor Cove"] == announced_index(after)["Golden Cove"]


def test_every_process_named_by_a_core_is_in_the_table():
    assert set(processes_of_cores().values()) <= set(process_table())


def test_a_process_counts_for_its_cores_once_it_was_announced():
    before, after = pd.Timestamp("2018-11-05"), pd.Timestamp("2018-11-06")
    assert announced_power_index(before)["Zen 2"] == 0
    assert announced_power_index(after)["Zen 2"] == pytest.approx(log(1.25))
    late = announced_power_index(LATE)
    assert late["Zen 4"] == pytest.approx(log(1.25 * 1.25))
    assert late["Sunny Cove"] == late["Skylake"] == 0
    assert "POWER9" not in late


def test_families_find_their_core():
    assert find_core("Genoa-X") == "Zen 4"
    assert find_core("Cascade Lake-SP") == "Skylake"
    assert find_core("no such family") is None
    assert find_core(None) is None


def test_ancestry_goes_back_to_the_first_core():
    assert ancestry("Zen 3") == ("Zen", "Zen 2", "Zen 3")


def test_gains_multiply_along_the_line():
    index = announced_index(LATE)
    assert index["Zen"] == 0
    assert index["Zen 3"] == pytest.approx(log(1.15 * 1.19))
    assert index["Zen 5c"] == index["Zen 5"]


def test_nothing_announced_later_is_known():
    before, after = pd.Timestamp("2024-06-02"), pd.Timestamp("2024-06-03")
    mean = (0.15 + 0.19 + 0.14) / 3
    assert announced_index(before)["Zen 5"] - announced_index(before)["Zen 4"] == pytest.approx(log(1 + mean))
    assert announced_index(after)["Zen 5"] - announced_index(after)["Zen 4"] == pytest.approx(log(1.16))


def test_a_core_of_which_nothing_was_announced_counts_as_its_predecessor():
    index = announced_index(LATE)
    assert index["Raptor Cove"] == index["Golden Cove"]


def test_before_any_announcement_all_cores_are_alike():
    assert set(announced_index(pd.Timestamp("2000-01-01")).values()) == {0.0}
