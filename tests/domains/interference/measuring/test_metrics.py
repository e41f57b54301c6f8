"""Readers of /proc and of control groups, and the sampler on generated files: rates, wraps, absent and new keys."""

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.interference.measuring import parsers
from perfcast.domains.interference.measuring.metrics import Group, Sampler, Snapshot, compute_metrics, row_of_group
from perfcast.domains.interference.measuring.parsers import Readings

SYSTEM = {path.removeprefix("proc/"): parser for path, (_, parser) in parsers.SYSTEM_FILES.items()}
READERS = {
    **SYSTEM,
    **{f"group {name}": parser for name, parser in parsers.GROUP_FILES.items()},
    **{f"process {name}": parser for name, parser in parsers.PROCESS_FILES.items()},
    "thread": parsers.parse_thread_schedule,
}
WORDS = (
    "cpu0 cpu intr Tcp: TcpExt: lo: eth0: NR some total=12 -1 1e9 nan 0x3 8:0 rbytes=5 : 12 ٣ voluntary_ctxt_switches:"
)
FRAGMENTS = st.sampled_from(
    [*WORDS.split(), *("9" * 20, "9" * 400, "254 0 vda", "8:0 Read", "\x00", "\n", " ", "\t", "anon 5", "(a) b) R")]
)


@given(st.lists(FRAGMENTS | st.text(max_size=12), max_size=40).map("".join))
def test_any_text_gives_finite_numbers_and_no_error(text):
    for parser in READERS.values():
        readings = parser(text)
        for values in (readings.counters, readings.levels):
            assert all(math.isfinite(value) and value >= 0 for value in values.values())
            assert all(len(name) < 100 and name.isprintable() for name in values)


@settings(max_examples=40)
@given(
    st.dictionaries(st.from_regex(r"pg[a-z_]{1,20}", fullmatch=True), st.integers(0, 2**64 - 1), max_size=20),
    st.lists(st.lists(st.integers(0, 10**9), min_size=2, max_size=2), min_size=1, max_size=8),
)
def test_vmstat_returns_what_was_written_and_interrupts_are_sums_over_processors(values, rows):
    text = "".join(f"{name} {value}\n" for name, value in values.items())
    assert SYSTEM["vmstat"](text).counters == {name: float(value) for name, value in values.items()}
    text = "     CPU0   CPU1\n" + "".join(f" N{i}:  {a}  {b}  timer interrupts\n" for i, (a, b) in enumerate(rows))
    assert SYSTEM["interrupts"](text).counters == {f"N{i}": float(a + b) for i, (a, b) in enumerate(rows)}


ROW = "   8  {} {} 10 1 100 2000 20 2 200 3000 1 500 900 0 0 0 0 3 40\n"
DISKS = ROW.format(0, "sda") + ROW.format(1, "sda1") + ROW.format(0, "vdb") + "   7 0 loop0 " + "5 " * 17 + "\n"
NETWORK = "Inter-|\n face |\n    lo: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n" + "".join(
    f"  {name}:{received} 0 0 0 0 0 0 0 {sent} 3 0 0 0 0 0 0\n" for name, received, sent in (("a", 20, 30), ("b", 5, 5))
)


STAT = "cpu  100 0 50 1000 7 0 3 20\ncpu0 60 0 50 1000 7 0 3 20 0 0\nintr 12 1\nprocs_running 4\nbtime 9\n"
MEMORY = "anon 5\nfile 6\npgfault 7\nworkingset_refault_file 8\n"
# the name of a process may have brackets and blanks
PROCESS = f"12 (a b) c) R {'0 ' * 6}11 0 12 0 250 50 {'0 ' * 4}3 0 99 4096 77 {'0 ' * 30}"
REQUESTS = " CPU0\n 36:  5  7  PCI-MSIX-0   1-edge      virtio1-req.0\nERR:  3\n"
TCP = "Tcp: RtoMin InSegs CurrEstab\nTcp: 200 12 3\nUdp: InDatagrams NoPorts\nUdp: 5\n"
FREE = "nr_free_pages 5\nnr_dirtied 6\npgfault 7\nbroken\nworse x\n"


def test_a_file_is_read():
    for reader, text, counters, levels in (
        ("stat", STAT, {"cpu.user": 1.0, "cpu0.steal": 0.2, "intr": 12}, {"procs_running": 4}),
        ("stat", "cpu 1 2 3 4\n", {"cpu.steal": None}, {}),  # of an old kernel
        ("vmstat", FREE, {"nr_dirtied": 6, "pgfault": 7}, {"nr_free_pages": 5}),
        # sums without partitions and unused disks
        ("diskstats", DISKS, {"read_bytes": 2 * 100 * 512, "read_seconds": 4.0}, {"in_flight": 2}),
        ("net/dev", NETWORK, {"loopback.received_bytes": 10, "network.received_bytes": 25}, {}),
        ("net/dev", NETWORK, {"network.sent_packets": 6}, {}),
        ("interrupts", REQUESTS, {"virtio1-req.0": 12}, {}),
        ("pressure/cpu", "some avg10=1.00 total=2500000\nfull avg10=0.00 total=1\n", {"some_seconds": 2.5}, {}),
        ("net/snmp", TCP, {"Tcp.InSegs": 12}, {"Tcp.CurrEstab": 3}),
        (
            *("group memory.stat", MEMORY, {"memory.pgfault": 7, "memory.workingset_refault_file": 8}),
            {"memory.anon": 5, "memory.file": 6},
        ),
        (
            *("process stat", PROCESS, {"minor_faults": 11, "major_faults": 12, "user_seconds": 2.5}),
            {"resident_pages": 77, "threads": 3},
        ),
        ("thread", "1000000000 500000000 7\n", {"wait_seconds": 0.5}, {}),
        ("thread", "1 x 7\n", {"wait_seconds": None}, {}),
    ):
        parsed = READERS[reader](text)
        assert {name: parsed.counters.get(name) for name in counters} == counters
        assert parsed.levels == levels
        assert not {"Tcp.RtoMin", "btime", "broken", "worse"} & set(parsed.counters)


def test_times_and_traffic_of_a_group_are_read():
    files = parsers.GROUP_FILES
    times = files["cpu.stat"]("usage_usec 1\nnr_periods 4\nnr_throttled 2\nthrottled_usec 500000\n").counters
    assert (times["cpu.throttled_seconds"], times["cpu.throttled_periods"]) == (0.5, 2)
    traffic = files["io.stat"]("8:0 rbytes=10 wbytes=4 rios=1 wios=1 dbytes=0\n8:16 rbytes=1 wbytes=0\n").counters
    assert traffic == {"io.read_bytes": 11, "io.written_bytes": 4, "io.reads": 1, "io.writes": 1}
    assert files["memory.current"]("77\n").levels == {"memory.usage": 77}


def snapshot(moment, counters=(), levels=(), **groups):
    return Snapshot(
        moment, Readings(dict(counters), dict(levels)), {name: Readings(dict(v)) for name, v in groups.items()}
    )


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def process_files(process, run, wait, faults=0, children="", threads=1):
    stat = f"{process} (x) R 1 1 1 0 -1 0 {faults} 0 0 0 0 0 0 0 20 0 {threads} 0 9 4096 10 {'0 ' * 30}"
    files = {"stat": stat, "schedstat": f"{run} {wait} 1\n", f"task/{process}/children": children}
    return {f"proc/{process}/{name}": text for name, text in files.items()}


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1e15), max_size=6),
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1e15), max_size=6),
    st.floats(0.1, 10),
)
def test_rates_are_never_negative_and_need_both_ends(before, after, seconds):
    machine = compute_metrics(snapshot(0, before), snapshot(seconds, after)).machine
    assert set(machine) <= set(before) & set(after)
    assert all(value >= 0 and math.isfinite(value) for value in machine.values())
    for name in machine:
        if after[name] >= before[name]:
            assert machine[name] == pytest.approx((after[name] - before[name]) / seconds)


def test_a_counter_that_began_again_is_absent_and_levels_have_a_change():
    before = snapshot(0, {"counter": 4, "reset": 500}, {"a": 4})
    machine = compute_metrics(before, snapshot(2, {"counter": 8, "reset": 3}, {"a": 1, "b": 7})).machine
    assert machine == {"counter": 2.0, "a": 1, "a.change": -1.5, "b": 7}
    assert compute_metrics(snapshot(1, {"a": 1}), snapshot(1, {"a": 5})).machine == {}, "no time, no rates"


def test_a_row_has_the_group_its_neighbors_its_processors_and_the_host():
    names = ("stat.cpu.user", "stat.cpu0.user", "stat.cpu1.user")
    before = snapshot(0, dict.fromkeys(names, 0.0), **{name: {"x": 0} for name in ("a", "b", "c", "host")})
    after = snapshot(
        1, dict(zip(names, (1.0, 0.9, 0.1), strict=True)), a={"x": 1}, b={"x": 2}, c={"x": 4}, host={"x": 8}
    )
    metrics = compute_metrics(before, after)
    cpus = {"stat.cpu.user": 1.0, "stat.highest.user": 0.9, "stat.lowest.user": 0.1, "allowed.user": 0.1}
    row = row_of_group(metrics, "a", ["b", "c"], [1], "host")
    assert row == {**cpus, "group.x": 1, "others.x": 6, "host.x": 8}
    alone = row_of_group(metrics, "a", [], [])
    assert (alone["group.x"], alone["others.x"]) == (1, 0) and not {"host.x", "allowed.user"} & set(alone)


def test_processes_that_start_and_end_never_give_negative_rates(tmp_path):
    now, second = iter([0.0, 2.0]), 10**9
    started = {**process_files(5, second, 0, children="6"), **process_files(6, second, second)}
    write(tmp_path, {"proc/stat": "cpu 1 1 1 1\n", **started})
    sampler, group = Sampler(tmp_path, clock=lambda: next(now)), {"a": Group(root=5)}
    before = sampler.read(group)
    write(tmp_path, {**process_files(5, 2 * second, second, 8, "7"), **process_files(7, second, 0)})
    rates = compute_metrics(before, sampler.read(group)).groups["a"]
    assert rates["processes.run_seconds"] == 1.0  # one second of each of 5 and 7, in two seconds
    assert rates["processes.run_share"] == pytest.approx(2 / 3)
    names = ("wait_seconds", "minor_faults", "count")
    assert [rates[f"processes.{name}"] for name in names] == [0.5, 4, 2]


def test_threads_are_added_and_absent_files_leave_metrics_out(tmp_path):
    files = process_files(5, 0, 0, threads=2)
    write(tmp_path, {**files, "proc/5/task/5/schedstat": "3 4 1", "proc/5/task/8/schedstat": "10 20 2"})
    counters = Sampler(tmp_path).read({"a": Group(root=5)}).processes["a"][5].counters
    assert (counters["run_seconds"], counters["timeslices"]) == (pytest.approx(13e-9), 3)
    files = {"g/cpu.stat": "usage_usec 5000000\n", "g/memory.current": "77\n", "g/cgroup.procs": ""}
    write(tmp_path, {"proc/stat": "cpu 1 1 1 1\n", **files})
    here = Group(folder=tmp_path / "g", with_processes=False)
    read = Sampler(tmp_path).read({"a": here, "gone": Group(folder=tmp_path / "none", root=999)})
    assert set(read.system.counters) == {"stat.cpu.user", "stat.cpu.nice", "stat.cpu.system", "stat.cpu.idle"}
    assert (read.groups["gone"].counters, read.processes) == ({}, {"gone": {}})
    assert read.groups["a"] == Readings({"cpu.usage_seconds": 5.0}, {"memory.usage": 77})


def test_a_sample_costs_less_than_two_percent_of_a_core():
    import os

    sampler, groups = Sampler(), {"a": Group(root=os.getpid())}
    before = sampler.read(groups)
    seconds = []
    for _ in range(10):
        begin = time.process_time()
        after = sampler.read(groups)
        row_of_group(compute_metrics(before, after), "a", [], [0])
        seconds.append(time.process_time() - begin)
        before = after
    assert min(seconds) < 0.02
