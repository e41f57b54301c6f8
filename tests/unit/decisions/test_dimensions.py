"""Dimensions of a fleet beside speed: which runs out first, typical memory, growth and headroom, what is refused."""

from __future__ import annotations

import math

import pytest
from champion_project import project

import perfcast
from perfcast.utils.errors import UserError

OLD = {"count": 40, "processor": "Xeon Gold 6148", "chips": 1, "memory": "192 GB"}
NEW = {"processor": "Xeon Gold 6148", "chips": 2, "memory": "384 GB"}


@pytest.fixture(scope="module")
def champion() -> perfcast.api.Champion:
    return perfcast.load_champion(project().folder)


def test_number_is_the_largest_of_all_dimensions_and_the_limiting_one_is_named(champion):
    fleet = {**OLD, "utilization": "20 %", "disk": "2 TB", "network": "10 Gbit/s"}
    target = champion.size(fleet, {**NEW, "disk": 4000, "network": "100 gbps"}, mix="int_rate").targets[0]
    assert {name: target.needs[name] for name in ("memory", "disk", "network")} == {
        "memory": 20,
        "disk": 20,
        "network": 4,
    }
    assert target.needs["speed"] < 20
    assert (target.limiting, target.needed, target.low, target.high) == ("memory", 20, 20, 20)
    assert target.totals["GB of memory"] == 20 * 384
    assert not target.narrowed_by, "scores do not narrow what memory decides"
    assert target.load < 0.5, "the load is that of the work, not of the memory"


def test_speed_keeps_its_probability_where_it_limits(champion):
    alone = champion.size({**OLD, "memory": ""}, {**NEW, "memory": ""}, mix="int_rate").targets[0]
    target = champion.size({**OLD, "memory": "8 GB"}, {**NEW, "memory": "384 GB"}, mix="int_rate").targets[0]
    assert target.limiting == "speed"
    assert (target.low, target.high) != (0, 0)
    assert alone.needs.keys() == {"speed"}
    assert target.needs["memory"] == pytest.approx(40 * 8 / 384)


@pytest.mark.parametrize(("options", "factor"), [({"headroom": 0.5}, 2), ({"growth": 0.1, "years": 2}, 1.21), ({}, 1)])
def test_headroom_and_growth_count_in_every_dimension(champion, options, factor):
    target = champion.size({**OLD, "disk": "1 TB"}, {**NEW, "disk": "1 TB"}, mix="int_rate", **options).targets[0]
    assert target.needs["disk"] == pytest.approx(40 * factor)
    assert target.needs["memory"] == pytest.approx(20 * factor)
    assert target.needed == math.ceil(40 * factor - 1e-9)


def test_spares_are_added_to_the_limiting_number(champion):
    target = champion.size({**OLD, "utilization": 0.1}, NEW, mix="int_rate", spare=3).targets[0]
    assert (target.needed, target.limiting) == (23, "memory")


def test_typical_memory_counts_for_machines_without_any_and_is_told(champion):
    unstated = {name: value for name, value in OLD.items() if name != "memory"}
    sizing = champion.size([OLD, unstated], NEW, mix="int_rate")
    assert sizing.targets[0].needs["memory"] > 20
    assert "counted: speed, memory; 1 of 3 rows and targets have typical memory" in sizing.notes


def test_memory_that_nobody_states_limits_nothing_and_is_told(champion):
    sizing = champion.size({**OLD, "memory": ""}, {**NEW, "memory": ""}, mix="int_rate")
    assert sizing.targets[0].limiting == "speed"
    (note,) = [note for note in sizing.notes if note.startswith("memory is not counted, since no machine states it")]
    assert "of typical machines would need" in note


def test_target_without_what_the_fleet_needs_is_refused_and_the_others_are_answered(champion):
    sizing = champion.size({**OLD, "disk": "1 TB"}, [NEW, {**NEW, "disk": "9 TB"}], mix="int_rate")
    assert [each.name for each in sizing.refused] == ["machine 1"]
    assert sizing.refused[0].message == "a target must give its disk, but machine 1 has none; add disk=..."
    assert len(sizing.targets) == 1
    with pytest.raises(UserError, match="a target must give its network"):
        champion.size({**OLD, "network": 10}, NEW, mix="int_rate")


@pytest.mark.parametrize(("field", "value"), [("disk", "much"), ("disk", "-1"), ("network", "10 MHz"), ("network", 0)])
def test_amounts_that_cannot_be_are_one_line(champion, field, value):
    with pytest.raises(UserError, match=f"a fleet must have a row that can be used, but {field} must be"):
        champion.size({**OLD, field: value}, NEW, mix="int_rate")


def test_frame_has_the_needs_of_every_dimension(champion):
    frame = champion.size({**OLD, "utilization": 0.2}, NEW, mix="int_rate").to_frame()
    assert set(frame["limiting"]) == {"memory"}
    assert set(frame["needed for memory"]) == {20.0}
    assert (frame["needed for speed"] < 20).all()
