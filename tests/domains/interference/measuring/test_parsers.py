"""Readers of /proc and of control groups: known texts, properties, and hostile texts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.interference.measuring.parsers import (
    GROUP_FILES,
    PROCESS_FILES,
    SYSTEM_FILES,
    parse_thread_schedule,
)

SYSTEM = {path.removeprefix("proc/"): parser for path, (_, parser) in SYSTEM_FILES.items()}
READERS = [*SYSTEM.values(), *GROUP_FILES.values(), *PROCESS_FILES.values(), parse_thread_schedule]
WORDS = (
    "cpu0 cpu intr Tcp: TcpExt: lo: eth0: NR some total=12 -1 1e9 nan 0x3 8:0 rbytes=5 : 12 ٣ voluntary_ctxt_switches:"
)
FRAGMENTS = st.sampled_from(
    [*WORDS.split(), *("9" * 20, "9" * 400, "254 0 vda", "8:0 Read", "\x00", "\n", " ", "\t", "anon 5", "(a) b) R")]
)


@pytest.mark.reliability("hostile text in /proc")
@settings(max_examples=60, deadline=None)
@given(st.lists(FRAGMENTS | st.text(max_size=12), max_size=40).map("".join))
def test_any_text_gives_finite_numbers_and_no_error(text):
    for parser in READERS:
        readings = parser(text)
        for values in (readings.counters, readings.levels):
            assert all(math.isfinite(value) and value >= 0 for value in values.values())
            assert all(len(name) < 100 and name.isprintable() for name in values)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.from_regex(r"pg[a-z_]{1,20}", fullmatch=True), st.integers(0, 2**64 - 1), max_size=20))
def test_vmstat_returns_what_was_written(values):
    text = "".join(f"{name} {value}\n" for name, value in values.items())
    assert SYSTEM["vmstat"](text).counters == {name: float(value) for name, value in values.items()}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 10**9), min_size=2, max_size=2), min_size=1, max_size=8))
def test_interrupts_are_sums_over_processors(rows):
    text = "     CPU0   CPU1\n" + "".join(f" N{i}:  {a}  {b}  timer interrupts\n" for i, (a, b) in enumerate(rows))
    assert SYSTEM["interrupts"](text).counters == {f"N{i}": float(a + b) for i, (a, b) in enumerate(rows)}


ROW = "   8  {} {} 10 1 100 2000 20 2 200 3000 1 500 900 0 0 0 0 3 40\n"
DISKS = ROW.format(0, "sda") + ROW.format(1, "sda1") + ROW.format(0, "vdb") + "   7 0 loop0 " + "5 " * 17 + "\n"
NETWORK = "Inter-|\n face |\n    lo: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n" + "".join(
    f"  {name}:{received} 0 0 0 0 0 0 0 {sent} 3 0 0 0 0 0 0\n" for name, received, sent in (("a", 20, 30), ("b", 5, 5))
)


@pytest.mark.parametrize(
    ("reader", "text", "counters", "levels"),
    [
        (
            "stat",
            "cpu  100 0 50 1000 7 0 3 20\ncpu0 60 0 50 1000 7 0 3 20 0 0\nintr 12 1\nprocs_running 4\nbtime 9\n",
            {"cpu.user": 1.0, "cpu0.steal": 0.2, "intr": 12},
            {"procs_running": 4},
        ),
        (
            "vmstat",
            "nr_free_pages 5\nnr_dirtied 6\npgfault 7\nbroken\nworse x\n",
            {"nr_dirtied": 6, "pgfault": 7},
            {"nr_free_pages": 5},
        ),
        # sums without partitions and unused disks
        ("diskstats", DISKS, {"read_bytes": 2 * 100 * 512, "read_seconds": 4.0}, {"in_flight": 2}),
        (
            "net/dev",
            NETWORK,
            {"loopback.received_bytes": 10, "network.received_bytes": 25, "network.sent_packets": 6},
            {},
        ),
        (
            "interrupts",
            " CPU0\n 36:  5  7  PCI-MSIX-0   1-edge      virtio1-req.0\nERR:  3\n",
            {"virtio1-req.0": 12},
            {},
        ),
        ("pressure/cpu", "some avg10=1.00 total=2500000\nfull avg10=0.00 total=1\n", {"some_seconds": 2.5}, {}),
        (
            "net/snmp",
            "Tcp: RtoMin InSegs CurrEstab\nTcp: 200 12 3\nUdp: InDatagrams NoPorts\nUdp: 5\n",
            {"Tcp.InSegs": 12},
            {"Tcp.CurrEstab": 3},
        ),
    ],
)
def test_a_file_of_the_system_is_read(reader, text, counters, levels):
    parsed = SYSTEM[reader](text)
    assert {name: parsed.counters[name] for name in counters} == counters
    assert parsed.levels == levels
    assert not {"Tcp.RtoMin", "btime", "broken", "worse"} & set(parsed.counters)


def test_an_old_kernel_without_steal_lacks_it():
    assert "cpu.steal" not in SYSTEM["stat"]("cpu 1 2 3 4\n").counters


def test_times_and_traffic_of_a_group_are_read():
    times = GROUP_FILES["cpu.stat"]("usage_usec 1\nnr_periods 4\nnr_throttled 2\nthrottled_usec 500000\n").counters
    assert times["cpu.throttled_seconds"] == 0.5
    assert times["cpu.throttled_periods"] == 2
    traffic = GROUP_FILES["io.stat"]("8:0 rbytes=10 wbytes=4 rios=1 wios=1 dbytes=0\n8:16 rbytes=1 wbytes=0\n").counters
    assert traffic == {"io.read_bytes": 11, "io.written_bytes": 4, "io.reads": 1, "io.writes": 1}
    assert GROUP_FILES["memory.current"]("77\n").levels == {"memory.usage": 77}


def test_memory_of_a_group_has_events_and_levels():
    parsed = GROUP_FILES["memory.stat"]("anon 5\nfile 6\npgfault 7\nworkingset_refault_file 8\n")
    assert parsed.levels == {"memory.anon": 5, "memory.file": 6}
    assert parsed.counters == {"memory.pgfault": 7, "memory.workingset_refault_file": 8}


def test_process_names_may_hold_brackets_and_blanks():
    fields = f"R {'0 ' * 6}11 0 12 0 250 50 {'0 ' * 4}3 0 99 4096 77 {'0 ' * 30}"
    parsed = PROCESS_FILES["stat"](f"12 (a b) c) {fields}")
    assert parsed.counters["minor_faults"] == 11
    assert parsed.counters["major_faults"] == 12
    assert parsed.counters["user_seconds"] == 2.5
    assert parsed.levels == {"resident_pages": 77, "threads": 3}


def test_schedule_of_a_thread_needs_three_numbers():
    assert parse_thread_schedule("1000000000 500000000 7\n").counters["wait_seconds"] == 0.5
    assert parse_thread_schedule("1 x 7\n").counters == {}
