"""The sampler on generated files: rates, wraps, absent and new keys, groups, processes, and its cost."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.interference.measuring.metrics import Group, Sampler, Snapshot, compute_metrics, row_of_group
from perfcast.domains.interference.measuring.parsers import Readings


def snapshot(moment, counters=(), levels=(), **groups):
    return Snapshot(
        moment, Readings(dict(counters), dict(levels)), {name: Readings(dict(v)) for name, v in groups.items()}
    )


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def process_files(process, run, wait, faults=0, children=""):
    stat = f"{process} (x) R 1 1 1 0 -1 0 {faults} 0 0 0 0 0 0 0 20 0 1 0 9 4096 10 {'0 ' * 30}"
    folder = f"proc/{process}"
    return {
        f"{folder}/stat": stat,
        f"{folder}/schedstat": f"{run} {wait} 1\n",
        f"{folder}/task/{process}/children": children,
    }


@settings(max_examples=60, deadline=None)
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


def test_a_counter_that_began_again_is_absent():
    assert compute_metrics(snapshot(0, {"a": 4, "reset": 500}), snapshot(2, {"a": 8, "reset": 3})).machine == {"a": 2.0}


def test_levels_have_a_change_where_both_ends_have_them():
    machine = compute_metrics(snapshot(0, levels={"a": 4}), snapshot(2, levels={"a": 1, "b": 7})).machine
    assert machine == {"a": 1, "a.change": -1.5, "b": 7}


def test_no_time_between_snapshots_gives_no_rates():
    assert compute_metrics(snapshot(1, {"a": 1}), snapshot(1, {"a": 5})).machine == {}


def test_processors_are_summarized_and_chosen_for_a_group():
    names = ("stat.cpu.user", "stat.cpu0.user", "stat.cpu1.user")
    before, after = snapshot(0, dict.fromkeys(names, 0.0)), snapshot(1, dict(zip(names, (1.0, 0.9, 0.1), strict=True)))
    metrics = compute_metrics(before, after)
    row = row_of_group(metrics, "a", [], [1])
    assert row == {"stat.cpu.user": 1.0, "stat.highest.user": 0.9, "stat.lowest.user": 0.1, "allowed.user": 0.1}


def test_a_row_has_the_group_its_neighbors_and_the_host():
    before = snapshot(0, a={"x": 0}, b={"x": 0}, c={"x": 0}, host={"x": 0})
    after = snapshot(1, a={"x": 1}, b={"x": 2}, c={"x": 4}, host={"x": 8})
    row = row_of_group(compute_metrics(before, after), "a", ["b", "c"], [], "host")
    assert row == {"group.x": 1, "others.x": 6, "host.x": 8}
    alone = row_of_group(compute_metrics(before, after), "a", [], [])
    assert alone == {"group.x": 1, "others.x": 0}


def test_processes_that_start_and_end_never_give_negative_rates(tmp_path):
    now = iter([0.0, 2.0])
    write(
        tmp_path,
        {"proc/stat": "cpu 1 1 1 1\n", **process_files(5, 10**9, 0, children="6"), **process_files(6, 10**9, 10**9)},
    )
    sampler = Sampler(tmp_path, clock=lambda: next(now))
    group = {"a": Group(root=5)}
    before = sampler.read(group)
    write(tmp_path, {**process_files(5, 2 * 10**9, 10**9, faults=8, children="7"), **process_files(7, 10**9, 0)})
    rates = compute_metrics(before, sampler.read(group)).groups["a"]
    assert rates["processes.run_seconds"] == 1.0  # one second of each of 5 and 7, in two seconds
    assert rates["processes.wait_seconds"] == 0.5
    assert rates["processes.run_share"] == pytest.approx(2 / 3)
    assert rates["processes.minor_faults"] == 4
    assert rates["processes.count"] == 2


def test_threads_of_a_process_are_added(tmp_path):
    files = process_files(5, 0, 0)
    files["proc/5/stat"] = files["proc/5/stat"].replace("20 0 1 0", "20 0 2 0")
    write(tmp_path, {**files, "proc/5/task/5/schedstat": "3 4 1", "proc/5/task/8/schedstat": "10 20 2"})
    read = Sampler(tmp_path).read({"a": Group(root=5)}).processes["a"][5]
    assert read.counters["run_seconds"] == pytest.approx(13e-9)
    assert read.counters["timeslices"] == 3


def test_absent_files_leave_metrics_out(tmp_path):
    write(tmp_path, {"proc/stat": "cpu 1 1 1 1\n"})
    read = Sampler(tmp_path).read({"gone": Group(folder=tmp_path / "none", root=999)})
    assert set(read.system.counters) == {"stat.cpu.user", "stat.cpu.nice", "stat.cpu.system", "stat.cpu.idle"}
    assert read.groups["gone"].counters == {}
    assert read.processes["gone"] == {}


def test_files_of_a_group_are_read(tmp_path):
    write(tmp_path, {"g/cpu.stat": "usage_usec 5000000\n", "g/memory.current": "77\n", "g/cgroup.procs": ""})
    read = Sampler(tmp_path).read({"a": Group(folder=tmp_path / "g", with_processes=False)})
    assert read.groups["a"].counters == {"cpu.usage_seconds": 5.0}
    assert read.groups["a"].levels == {"memory.usage": 77}
    assert read.processes == {}


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
