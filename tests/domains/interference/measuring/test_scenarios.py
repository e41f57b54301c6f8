"""The plan: reproducible, balanced at any interruption, references around every time together."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice, pairwise

import pytest

from perfcast.domains.interference.measuring import scenarios

NAMES = tuple(f"w{number}" for number in range(16))
DESIGN = scenarios.Design(NAMES, tuple(scenarios.PLACEMENTS), seed=3, seconds=24)
RUNS = scenarios.plan_for(DESIGN, 0.9 * 7200)


def labeled_seconds(runs):
    return sum(entry.end - entry.start - scenarios.WARM_UP_SECONDS for run in runs for entry in run.activities)


def test_two_hours_give_eight_thousand_labeled_seconds_of_every_kind():
    assert labeled_seconds(RUNS) >= 8000
    assert {run.scenario for run in RUNS} == {scenarios.ALONE, scenarios.PAIR, scenarios.TRIPLE, scenarios.DYNAMIC}
    assert {run.placement for run in RUNS} == set(scenarios.PLACEMENTS)
    victims = Counter(name for run in RUNS for name in run.workloads)
    assert min(victims[name] for name in NAMES) >= 12
    assert max(victims.values()) <= 1.5 * min(victims.values())


def test_an_interrupted_campaign_is_balanced():
    third = RUNS[: len(RUNS) // 3]
    assert {run.placement for run in third} == set(scenarios.PLACEMENTS)
    assert set(NAMES) == {name for run in third for name in run.workloads}


def test_the_plan_depends_on_the_seed_and_longer_ones_continue_it():
    assert scenarios.plan_for(DESIGN, 1000) == RUNS[: len(scenarios.plan_for(DESIGN, 1000))]
    other = scenarios.Design(NAMES, tuple(scenarios.PLACEMENTS), seed=4, seconds=24)
    assert list(islice(scenarios.plan_runs(other), 10)) != list(islice(scenarios.plan_runs(DESIGN), 10))


@pytest.mark.parametrize("run", RUNS[:40], ids=lambda run: f"{run.number}-{run.scenario}")
def test_every_tenant_is_alone_before_and_after(run):
    first, last = run.together
    for tenant in range(len(run.workloads)):
        before, after = run.references(tenant)
        assert before[1] <= first
        assert after[0] >= last
        for start, end in (before, after):
            assert all(run.active_at(second) == [tenant] for second in range(start, end))
            assert end - start >= 3
    assert all(run.active_at(second) for second in range(run.seconds))
    assert run.intensities[1:] == run.intensities[1:2] * (len(run.workloads) - 1)


def test_neighbors_of_dynamic_runs_change_within_bounds():
    changes = [
        entry.end - entry.start
        for run in RUNS
        if run.scenario == scenarios.DYNAMIC
        for entry in run.activities
        if entry.tenant > 0 and run.together[0] <= entry.start < run.together[1]
    ]
    assert len(changes) > 20
    assert min(changes) >= scenarios.SHORTEST_CHANGE
    assert max(changes) <= scenarios.LONGEST_CHANGE + scenarios.SHORTEST_CHANGE
    assert len(set(changes)) > 5


def test_limits_belong_to_their_placements_and_impossible_ones_are_left_out():
    for run in RUNS:
        assert (run.quota is not None) == (run.placement == scenarios.QUOTA)
        assert (run.memory_slack_mib is not None) == (run.placement == scenarios.MEMORY)
    runs = scenarios.plan_for(scenarios.Design(NAMES, ("same_core",), 0, 24), 2000)
    assert {run.placement for run in runs} == {"same_core"}
    assert len(scenarios.plan_for(DESIGN, 1.0)) == 1


def test_a_run_survives_its_file_and_times_of_a_tenant_do_not_overlap():
    for run in RUNS[:20]:
        tables = [run.timetable(tenant) for tenant in range(len(run.workloads))]
        assert all(left[1] <= right[0] for table in tables for left, right in pairwise(table))
        assert scenarios.Run.from_json(json.loads(json.dumps(run.to_json()))) == run
