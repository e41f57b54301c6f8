"""Counters of the system call: absent ones, scaling of shared registers, and closing."""

from __future__ import annotations

import struct

import pytest

from perfcast.domains.interference.measuring.hardware_counters import HardwareCounters, scale_count


def test_counts_are_scaled_to_the_time_that_they_were_enabled():
    assert scale_count(struct.pack("QQQ", 50, 1000, 500)) == 100
    assert scale_count(struct.pack("QQQ", 0, 1000, 0)) == 0
    with pytest.raises(struct.error):
        scale_count(b"short")


def test_an_event_that_no_system_has_is_absent():
    counters = HardwareCounters([0], {"none": (250, 2**40)})
    assert counters.names == []
    assert counters() == {}


def test_totals_grow_and_end_with_close():
    counters = HardwareCounters([0], {"clock": (1, 0)})  # the processor's clock in software
    if not counters.names:
        pytest.skip("this system permits no counters")
    first = counters()["perf.clock"]
    sum(range(100_000))
    assert counters()["perf.clock"] >= first
    counters.close()
    assert counters() == {}
