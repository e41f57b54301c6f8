"""The loop of a tenant with a clock that only operations advance."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.interference.measuring.tenant import Interval, SecondBins, calibrate, follow_timetable


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

    return {s.second: s for s in follow_timetable(timetable, operate, rate=rate, clock=clock, sleep=clock.sleep)}


def test_a_closed_loop_fills_each_second_of_its_interval():
    seconds = follow([Interval(2, 5)], lambda now: 0.125)
    assert {second: report.operations for second, report in seconds.items()} == {2: 8, 3: 8, 4: 8}
    assert seconds[2].summary() == {
        "second": 2,
        "operations": 8,
        "ended": 8,
        "latency_mean": 0.125,
        "latency_p99": 0.125,
    }


def test_a_paced_tenant_keeps_its_rate_and_slows_only_when_it_must():
    fast = follow([Interval(0, 4, 0.5)], lambda now: 0.05, rate=10.0)
    assert [fast[second].operations for second in range(4)] == pytest.approx([5, 5, 5, 5])
    slow = follow([Interval(0, 4, 0.5)], lambda now: 0.4, rate=10.0)
    assert [slow[second].operations for second in range(4)] == pytest.approx([2.5] * 4)


def test_latency_of_a_paced_tenant_begins_when_the_operation_is_due():
    seconds = follow([Interval(0, 3, 0.5)], lambda now: 0.6 if now < 0.1 else 0.05, rate=10.0)
    # due at 0.2, begun at 0.6
    assert seconds[0].latencies[:2] == pytest.approx([0.6, 0.45])


def test_a_backlog_of_more_than_a_second_is_dropped():
    seconds = follow([Interval(0, 8, 0.5)], lambda now: 4.0 if now < 0.1 else 0.05, rate=10.0)
    assert max(max(s.latencies, default=0) for s in seconds.values()) == pytest.approx(4.0)
    assert sum(len(s.latencies) for s in seconds.values()) == 1 + 5 * (8 - 3)


def test_a_stall_is_spread_over_the_seconds_that_it_spans():
    seconds = follow([Interval(0, 4)], lambda now: 3.5 if now == 0 else 0.25)
    assert [seconds[second].operations for second in (0, 1, 2)] == pytest.approx([2 / 7] * 3)
    assert seconds[3].latencies[0] == 3.5
    assert seconds[1].summary()["latency_p99"] is None


def test_intervals_are_separate():
    seconds = follow([Interval(0, 1), Interval(3, 4)], lambda now: 0.125)
    assert {second for second, report in seconds.items() if report.operations >= 1} == {0, 3}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0.001, 3)), min_size=1, max_size=20))
def test_no_operation_is_lost_or_counted_twice(parts):
    bins, now = SecondBins(), 0.0
    for pause, length in parts:
        bins.add(now + pause, now + pause + length, length)
        now += pause + length
    closed = bins.close(now) + bins.close(float("inf"))
    assert sum(second.operations for second in closed) == pytest.approx(len(parts))
    assert sum(len(second.latencies) for second in closed) == len(parts)
    assert len({second.second for second in closed}) == len(closed)


def test_calibration_counts_a_closed_loop():
    clock = Clock()
    assert calibrate(lambda: clock.sleep(0.01), clock, seconds=1.0) == pytest.approx(100, rel=0.02)
    slow = Clock()
    assert calibrate(lambda: slow.sleep(3.0), slow, seconds=1.0) == pytest.approx(1 / 3)
