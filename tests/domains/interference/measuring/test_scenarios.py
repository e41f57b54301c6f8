"""The plan: reproducible and balanced at any interruption; the loop of a tenant with a clock of its operations."""

import json
from collections import Counter
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfcast.domains.interference.measuring import scenarios
from perfcast.domains.interference.measuring.tenant import Operation, calibrate, follow_timetable, summarize_seconds

NAMES = tuple(f"w{number}" for number in range(16))
DESIGN = scenarios.Design(NAMES, tuple(scenarios.PLACEMENTS), seed=3, seconds=24)
RUNS = scenarios.plan_for(DESIGN, 0.9 * 7200)


def test_two_hours_give_eight_thousand_labeled_seconds_and_depend_on_the_seed():
    labeled = sum(entry.end - entry.start - scenarios.WARM_UP_SECONDS for run in RUNS for entry in run.activities)
    assert labeled >= 8000
    assert {run.scenario for run in RUNS} == {scenarios.ALONE, scenarios.PAIR, scenarios.TRIPLE, scenarios.DYNAMIC}
    victims = Counter(name for run in RUNS for name in run.workloads)
    assert min(victims[name] for name in NAMES) >= 12
    assert max(victims.values()) <= 1.5 * min(victims.values())
    for part in (RUNS, RUNS[: len(RUNS) // 3]):  # also if it is interrupted
        assert {run.placement for run in part} == set(scenarios.PLACEMENTS)
        assert set(NAMES) == {name for run in part for name in run.workloads}
    assert scenarios.plan_for(DESIGN, 1000) == RUNS[: len(scenarios.plan_for(DESIGN, 1000))]
    other = scenarios.Design(NAMES, tuple(scenarios.PLACEMENTS), seed=4, seconds=24)
    assert list(islice(scenarios.plan_runs(other), 10)) != list(islice(scenarios.plan_runs(DESIGN), 10))


def test_every_tenant_is_alone_before_and_after():
    for run in RUNS[:40]:
        for tenant in range(len(run.workloads)):
            before, after = run.references(tenant)
            assert before[1] <= run.together[0] and after[0] >= run.together[1], run
            for start, end in (before, after):
                assert end - start >= 3
                assert all(run.active_at(second) == [tenant] for second in range(start, end)), run
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
    assert len(changes) > 20 and len(set(changes)) > 5
    assert min(changes) >= scenarios.SHORTEST_CHANGE
    assert max(changes) <= scenarios.LONGEST_CHANGE + scenarios.SHORTEST_CHANGE


def test_a_run_survives_its_file_with_separate_times_and_the_limits_of_its_placement():
    for run in RUNS:
        assert (run.quota is not None) == (run.placement == scenarios.QUOTA)
        assert (run.memory_slack_mib is not None) == (run.placement == scenarios.MEMORY)
        tables = [run.timetable(tenant) for tenant in range(len(run.workloads))]
        assert all(left[1] <= right[0] for table in tables for left, right in pairwise(table))
        assert scenarios.Run.from_json(json.loads(json.dumps(run.to_json()))) == run
    runs = scenarios.plan_for(scenarios.Design(NAMES, ("same_core",), 0, 24), 2000)
    assert {run.placement for run in runs} == {"same_core"}
    assert len(scenarios.plan_for(DESIGN, 1.0)) == 1


class Clock:
    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        assert seconds >= 0
        self.now += seconds


def follow(timetable, seconds_of_operation, rate=10.0):
    clock = Clock()

    def operate():
        clock.now += seconds_of_operation(clock.now)

    return follow_timetable(timetable, operate, rate=rate, clock=clock, sleep=clock.sleep)


def rates(operations):
    return {entry["second"]: entry["operations"] for entry in summarize_seconds(operations)}


def test_a_closed_loop_fills_each_second_and_a_stall_those_that_it_spans():
    operations = follow([(2, 5, 1)], lambda now: 0.125)
    assert rates(operations) == {2: 8, 3: 8, 4: 8}
    assert summarize_seconds(operations)[0] == {"second": 2, "operations": 8, "ended": 8, "latency_p99": 0.125}
    separate = rates(follow([(0, 1, 1), (3, 4, 1)], lambda now: 0.125))
    assert {second for second, count in separate.items() if count >= 1} == {0, 3}
    seconds = summarize_seconds(follow([(0, 4, 1)], lambda now: 3.5 if now == 0 else 0.25))
    assert [entry["operations"] for entry in seconds[:3]] == pytest.approx([2 / 7] * 3, abs=1e-4)
    assert seconds[3]["latency_p99"] == pytest.approx(3.5, rel=0.02) and seconds[1]["latency_p99"] is None


def test_a_paced_tenant_keeps_its_rate_and_slows_only_when_it_must():
    for seconds_each, rate in ((0.05, 5), (0.4, 2.5)):
        seconds = rates(follow([(0, 4, 0.5)], lambda now, each=seconds_each: each))
        assert [seconds[second] for second in range(4)] == pytest.approx([rate] * 4)
    operations = follow([(0, 3, 0.5)], lambda now: 0.6 if now < 0.1 else 0.05)
    assert [entry.latency for entry in operations[:2]] == pytest.approx([0.6, 0.45])  # due at 0.2, begun at 0.6
    operations = follow([(0, 8, 0.5)], lambda now: 4.0 if now < 0.1 else 0.05)
    assert max(entry.latency for entry in operations) == pytest.approx(4.0)
    assert len(operations) == 1 + 5 * (8 - 3), "the backlog is dropped"


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0.001, 3)), min_size=1, max_size=20))
def test_no_operation_is_lost_or_counted_twice(parts):
    seconds = summarize_seconds(Operation(pause, pause + length, length) for pause, length in parts)
    assert sum(entry["operations"] for entry in seconds) == pytest.approx(len(parts), abs=1e-2)
    assert sum(entry["ended"] for entry in seconds) == len(parts)
    assert len({entry["second"] for entry in seconds}) == len(seconds)


def test_calibration_counts_a_closed_loop():
    for seconds, rate in ((0.01, 100), (3.0, 1 / 3)):
        clock = Clock()
        assert calibrate(lambda: clock.sleep(seconds), clock, seconds=1.0) == pytest.approx(rate, rel=0.02)  # noqa: B023
