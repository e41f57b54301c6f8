"""The loop of a tenant with a clock that only operations advance."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.interference.measuring.tenant import Operation, calibrate, follow_timetable, summarize_seconds


class Clock:
    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        assert seconds >= 0
        self.now += seconds


def follow(timetable, seconds_of_operation, rate=10.0, clock=None):
    clock = clock or Clock()

    def operate():
        clock.now += seconds_of_operation(clock.now)

    return follow_timetable(timetable, operate, rate=rate, clock=clock, sleep=clock.sleep)


def rates(operations):
    return {entry["second"]: entry["operations"] for entry in summarize_seconds(operations)}


def test_a_closed_loop_fills_each_second_of_its_interval():
    operations = follow([(2, 5, 1)], lambda now: 0.125)
    assert rates(operations) == {2: 8, 3: 8, 4: 8}
    assert summarize_seconds(operations)[0] == {"second": 2, "operations": 8, "ended": 8, "latency_p99": 0.125}


def test_a_paced_tenant_keeps_its_rate_and_slows_only_when_it_must():
    fast = rates(follow([(0, 4, 0.5)], lambda now: 0.05, rate=10.0))
    assert [fast[second] for second in range(4)] == pytest.approx([5, 5, 5, 5])
    slow = rates(follow([(0, 4, 0.5)], lambda now: 0.4, rate=10.0))
    assert [slow[second] for second in range(4)] == pytest.approx([2.5] * 4)


def test_latency_of_a_paced_tenant_begins_when_the_operation_is_due():
    operations = follow([(0, 3, 0.5)], lambda now: 0.6 if now < 0.1 else 0.05, rate=10.0)
    # due at 0.2, begun at 0.6
    assert [entry.latency for entry in operations[:2]] == pytest.approx([0.6, 0.45])


def test_a_backlog_of_more_than_a_second_is_dropped():
    operations = follow([(0, 8, 0.5)], lambda now: 4.0 if now < 0.1 else 0.05, rate=10.0)
    assert max(entry.latency for entry in operations) == pytest.approx(4.0)
    assert len(operations) == 1 + 5 * (8 - 3)


def test_a_stall_is_spread_over_the_seconds_that_it_spans():
    seconds = summarize_seconds(follow([(0, 4, 1)], lambda now: 3.5 if now == 0 else 0.25))
    assert [entry["operations"] for entry in seconds[:3]] == pytest.approx([2 / 7] * 3, abs=1e-4)
    assert seconds[3]["latency_p99"] == pytest.approx(3.5, rel=0.02)
    assert seconds[1]["latency_p99"] is None


def test_intervals_are_separate():
    seconds = rates(follow([(0, 1, 1), (3, 4, 1)], lambda now: 0.125))
    assert {second for second, operations in seconds.items() if operations >= 1} == {0, 3}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0.001, 3)), min_size=1, max_size=20))
def test_no_operation_is_lost_or_counted_twice(parts):
    seconds = summarize_seconds(Operation(pause, pause + length, length) for pause, length in parts)
    assert sum(entry["operations"] for entry in seconds) == pytest.approx(len(parts), abs=1e-2)
    assert sum(entry["ended"] for entry in seconds) == len(parts)
    assert len({entry["second"] for entry in seconds}) == len(seconds)


def test_calibration_counts_a_closed_loop():
    clock = Clock()
    assert calibrate(lambda: clock.sleep(0.01), clock, seconds=1.0) == pytest.approx(100, rel=0.02)
    slow = Clock()
    assert calibrate(lambda: slow.sleep(3.0), slow, seconds=1.0) == pytest.approx(1 / 3)
