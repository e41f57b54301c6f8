"""The suite: pinned threads, samples, rounds, interference, the table, and the command."""

import gzip
import os
import threading
from collections import namedtuple
from dataclasses import replace
from itertools import count

import numpy as np
import pandas as pd
import pytest

from perfcast.cli.main import main
from perfcast.domains.gemm import measured_suite as suite
from perfcast.domains.gemm import timing
from perfcast.domains.gemm.measured_suite import Case, SuiteTiming
from perfcast.domains.gemm.timing import Interference, PinnedThreads, machine_seconds
from perfcast.microbench.machine import available_cpus
from perfcast.utils.io import sha256

MIB = 2**20


def measured(*, spread=0.01, interrupted=False, median=1e-3, **changes):
    result = SuiteTiming(8, 5, median, 0.9 * median, spread, 0, 0, interrupted, 20, 0.5, True, 0.001, 0.0, 0.1)
    return replace(result, **changes)


# samples and rounds


def test_until_steady_ends_with_steady_samples():
    taken = iter([9.0, 1.0, 1.0, 1.0, 1.01, 1.0, 5.0])
    assert timing.until_steady(lambda: next(taken)) == [9.0, 1.0, 1.0, 1.0, 1.01]
    noisy = (float(n % 2 + 1) for n in count())
    assert len(timing.until_steady(lambda: next(noisy))) == timing.MAX_SAMPLES


def test_warm_up_grows_in_steps_and_ignores_one_slow_call():
    requests = []

    def run(calls):
        requests.append(calls)
        # other work interrupts the very first call
        return [1.0 if len(requests) == 1 else 1e-4 * calls, 1e-4 * calls]

    calls, made = suite.warm_up(run)
    assert calls == pytest.approx(suite.MIN_SAMPLE_SECONDS / 1e-4, rel=0.1)
    assert made == sum(requests)
    assert requests[:4] == [1, 1, 10, 10]


def test_slow_kernel_is_called_once_per_sample():
    assert suite.warm_up(lambda calls: [0.5 * calls]) == (1, 2)


class Clock:
    """Clock that advances with every measurement."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def repetitions(results, budget, seed=0):
    """Measure the named results, one second each; each call of a name takes its next timing."""
    clock, queues = Clock(), {name: list(values) for name, values in results.items()}

    def time_one(name, order, round_number):
        clock.now += 1
        queue = queues[name]
        results = queue.pop(0) if len(queue) > 1 else queue[0]
        return replace(results, order=order, measured_in=round_number)

    return list(timing.in_rounds(list(results), time_one, budget_seconds=budget, seed=seed, clock=clock))


def test_remaining_budget_repeats_unsteady_cases():
    results = {name: [measured()] for name in "abcdefgh"}
    results["unsteady"] = [measured(spread=0.5), measured(spread=0.4), measured(spread=0.02)]
    results["interrupted"] = [measured(interrupted=True), measured()]
    timings = repetitions(results, budget=100)
    again = [name for name, _ in timings[10:]]
    assert sorted(name for name, _ in timings[:10]) == sorted(results)
    assert again == ["interrupted", "unsteady", "unsteady"], "all are steady then"
    assert [t.order for _, t in timings] == list(range(13))
    assert [t.measured_in for _, t in timings[10:]] == [1, 2, 3]


def test_budget_can_end_the_first_round():
    timings = repetitions({name: [measured()] for name in "abcdefgh"}, budget=4.5)
    assert len(timings) == 5


def test_order_is_random_and_seeded():
    results = {name: [measured()] for name in "abcdefgh"}
    first, same, other = ([name for name, _ in repetitions(results, 100, seed)] for seed in (0, 0, 1))
    assert first == same != other


def test_keep_steadiest_prefers_clean_timings():
    single = iter(
        [("a", measured(spread=0.3)), ("a", measured(spread=0.01, interrupted=True)), ("a", measured(spread=0.2))]
    )
    seen = []
    best = timing.keep_steadiest(single, 1, lambda *done: seen.append(done))
    assert best == {"a": measured(spread=0.2)}
    assert seen == [(1, 1, 0), (1, 1, 1), (1, 1, 2)]


# pinned threads


def test_pinned_threads_run_the_calls_on_their_cpus():
    cpus = (available_cpus() * 2)[:2]
    calls, places, created = [0, 0], [set(), set()], []

    def prepare(number):
        created.append(threading.get_native_id())

        def call():
            calls[number] += 1
            places[number] |= os.sched_getaffinity(0)

        return call

    before = os.sched_getaffinity(0)
    with PinnedThreads(cpus, prepare) as pinned:
        assert sorted(pinned.thread_ids) == sorted(created)
        seconds = pinned.run(3)
        pinned.run(4)
        assert pinned.pinned
    assert calls == [7, 7]
    assert len(seconds) == 2
    assert all(s > 0 for s in seconds)
    assert places == [{cpus[0]}, {cpus[1]}]
    assert os.sched_getaffinity(0) == before, "this thread is not pinned"
    assert not {thread.native_id for thread in threading.enumerate()} & set(created), "they have ended"


def test_pinned_is_false_without_affinity(monkeypatch):
    monkeypatch.delattr(timing.os, "sched_setaffinity")
    with PinnedThreads([0], lambda number: int) as pinned:
        assert not pinned.pinned


@pytest.mark.parametrize("where", ["prepare", "call"])
def test_error_in_a_thread_is_raised_and_ends_all_threads(where):
    def fail():
        raise MemoryError(where)

    def prepare(number):
        if number == 1:
            return fail() if where == "prepare" else fail
        return int

    with pytest.raises(MemoryError, match=where), PinnedThreads([0, 0], prepare) as pinned:
        pinned.run(1)


def test_available_cpus_start_with_one_per_core(monkeypatch, tmp_path):
    siblings = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}
    for cpu, text in siblings.items():
        (tmp_path / str(cpu)).write_text(text + "\n")
    monkeypatch.setattr("perfcast.microbench.machine._SIBLINGS", str(tmp_path / "{}"))
    monkeypatch.setattr(timing.os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    assert available_cpus() == [0, 2, 1, 3]
    monkeypatch.setattr("perfcast.microbench.machine._SIBLINGS", str(tmp_path / "nothing{}"))
    assert available_cpus() == [0, 1, 2, 3]


# interference

CpuTimes = namedtuple("CpuTimes", "user nice system idle iowait irq softirq steal")
CPU_TIMES = [CpuTimes(100, 10, 20, 900, 5, 1, 2, 7), CpuTimes(200, 0, 0, 900, 5, 0, 0, 50)]


def test_machine_seconds_are_stolen_seconds_of_some_cpus_and_busy_seconds_of_all(monkeypatch):
    monkeypatch.setattr(timing.psutil, "cpu_times", lambda percpu: CPU_TIMES)
    assert machine_seconds([1]) == (50, 333)
    assert machine_seconds([0, 1]) == (57, 333)
    assert machine_seconds([2]) == (None, None)
    monkeypatch.setattr(timing.psutil, "cpu_times", lambda percpu: [])
    assert machine_seconds([0]) == (None, None)


@pytest.mark.parametrize(
    ("waited", "stolen", "harmful"),
    [(0.0, 0.0, False), (0.019, 0.019, False), (0.021, 0.0, True), (0.0, 0.5, True), (None, None, False)],
)
def test_waiting_and_stolen_time_are_harmful_above_a_limit(waited, stolen, harmful):
    assert Interference(waited, stolen, other_load=5.0).harmful == harmful


def test_monitor_returns_shares_of_the_thread_time(monkeypatch):
    tick = 1 / os.sysconf("SC_CLK_TCK")
    now = iter([0.0, 10.0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(now))
    waited, machine, busy = iter([1.0, 3.0]), iter([(5.0, 100.0), (6.0 + tick, 140.0)]), iter([0.0, 20.0])
    monkeypatch.setattr(timing, "waited_by", lambda ids: next(waited))
    monkeypatch.setattr(timing, "machine_seconds", lambda cpus: next(machine))
    monkeypatch.setattr(timing.time, "process_time", lambda: next(busy))
    results = timing.InterferenceMonitor([7, 8], [0, 1]).read()
    assert (results.waited, results.stolen, results.other_load) == pytest.approx((0.1, 0.05, 2.0))


def test_unknown_thread_has_no_interference(monkeypatch):
    assert timing.waited_by([threading.get_native_id()]) >= 0
    assert timing.waited_by([0]) is None
    monkeypatch.setattr(timing.psutil, "cpu_times", lambda percpu: [])
    results = timing.InterferenceMonitor([0], [0]).read()
    assert results == Interference(None, None, None)


# the suite


def test_rates_are_added_and_latencies_averaged():
    assert suite.combine_seconds([1.0, 3.0], shared=True) == pytest.approx(1.5)
    assert suite.combine_seconds([1.0, 3.0], shared=False) == 2.0
    assert suite.compute_rate(6.0, 1.5, 2, shared=True) == pytest.approx(6 / 1 + 6 / 3)
    assert suite.compute_rate(6.0, 2.0, 2, shared=False) == 3.0


def test_thread_counts():
    assert timing.thread_counts(1) == [1]
    assert timing.thread_counts(6) == [1, 2, 4, 6]
    assert timing.thread_counts(8) == [1, 2, 4, 8]


def test_largest_size_exceeds_the_caches_within_the_memory():
    assert suite.largest_size(32 * 1024, 2, None) == 128 * MIB
    assert suite.largest_size(None, 2, None) == suite.SMALLEST_TOP
    assert suite.largest_size(1e9, 2, None) == suite.LARGEST_TOP
    assert suite.largest_size(32 * 1024, 4, 256 * MIB) == 16 * MIB


def test_list_cases_returns_all_combinations_that_fit():
    cases = suite.list_cases(["chase", "branches"], [1, 2], l3_kib=None, memory=32 * MIB)
    assert len(set(cases)) == len(cases)
    assert max(c.size for c in cases if c.threads == 1) == 8 * MIB
    assert max(c.size for c in cases if c.threads == 2) == 4 * MIB
    assert {(c.kernel, c.variant) for c in cases} == {
        ("chase", "lines"),
        ("branches", "regular"),
        ("branches", "random"),
    }
    assert suite.list_cases(["chase"], [1], l3_kib=None, memory=1000) == []


@pytest.mark.parametrize("name", suite.kernel_names())
def test_measure_restores_the_threads_of_torch(name, monkeypatch):
    import torch

    monkeypatch.setattr(suite, "MIN_SAMPLE_SECONDS", 1e-4)
    monkeypatch.setattr(suite.InterferenceMonitor, "read", lambda self: Interference(0.5, 0.0, 0.0))
    before = torch.get_num_threads()
    case = Case(name, suite.load_kernel(name).VARIANTS[0], suite.load_kernel(name).sizes(MIB)[0], 2)
    monkeypatch.setattr(suite, "available_cpus", lambda: (available_cpus() * 2)[:2])
    results = suite.measure([case], budget_seconds=1e-3, seed=0)
    assert torch.get_num_threads() == before
    assert results[case].interrupted
    assert 0 < results[case].minimum <= results[case].median
    frame = suite.as_frame(results)
    assert frame["interrupted"].tolist() == [1], "marked and best"
    row = frame.iloc[0]
    assert row["rate"] == pytest.approx(row["work"] / row["seconds_median"] * (1 if name == "chase" else 2), rel=1e-4)


def test_as_frame_is_ordered_and_has_missing_values():
    timings = {
        Case("triad", "float64", 4 * MIB, 2): measured(),
        Case("triad", "float64", 4 * MIB, 1): measured(waited=None, stolen=None, other_load=None),
        Case("chase", "lines", 4096, 2): measured(median=1 / 3, interrupted=True),
    }
    frame = suite.as_frame(timings)
    assert frame[["kernel", "threads"]].values.tolist() == [["chase", 2], ["triad", 1], ["triad", 2]]
    assert frame["rate"].tolist() == [1.5, 500.0, 1000.0]
    assert frame["unit"].tolist() == ["Maccesses/s", "GB/s", "GB/s"]
    assert frame["waited_share"].isna().tolist() == [False, True, False]
    assert frame["seconds_median"].iloc[0] == 0.333333


# the command


def replace_measure(monkeypatch, **changes):
    """Replace the measurement by constant timings, with changes by kernel."""

    def measure(cases, *, budget_seconds, seed, progress):
        results = {}
        for case in cases:
            results[case] = measured(**changes.get(case.kernel, {}))
            progress(len(results), len(cases), 0)
        return results

    monkeypatch.setattr(suite, "measure", measure)
    monkeypatch.setattr("perfcast.microbench.machine.available_cpus", lambda: [0, 1])


def run(tmp_path, *more):
    return main(["measure", "suite", "--out", str(tmp_path), *more])


def test_command_writes_a_valid_dataset(tmp_path, capsys, monkeypatch):
    import platform

    replace_measure(monkeypatch, chase={"interrupted": True, "other_load": 1.5})
    assert run(tmp_path / "one") == 0
    out = capsys.readouterr().out
    assert run(tmp_path / "two") == 0
    for name in ("host_suite.csv.gz", "host_suite.json"):
        assert sha256(tmp_path / "one" / name) == sha256(tmp_path / "two" / name)
    assert platform.node() not in (tmp_path / "one" / "host_suite.json").read_text()
    frame = pd.read_csv(tmp_path / "one" / "host_suite.csv.gz")
    assert set(frame.loc[frame["interrupted"] == 0, "kernel"]) == set(suite.kernel_names()) - {"chase"}
    for words in (
        "ns per access",
        "mispredicted branches",
        "GB/s",
        "4 KiB",
        "1 thread ",
        "2 threads",
        "2!",
        "other work interrupted",
    ):
        assert words in out
    assert "are missing" not in out


def test_command_measures_the_chosen_kernels_and_threads(tmp_path, monkeypatch):
    replace_measure(monkeypatch)
    assert run(tmp_path, "--kernels", "sort, triad", "--threads", "2") == 0
    frame = pd.read_csv(tmp_path / "host_suite.csv.gz")
    assert set(frame["kernel"]) == {"sort", "triad"}
    assert set(frame["threads"]) == {2}


def test_busy_machine_gets_one_line_and_no_file(tmp_path, capsys, monkeypatch):
    replace_measure(monkeypatch, sort={"interrupted": True})
    assert run(tmp_path, "--kernels", "sort") == 2
    assert "idle" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--kernels", "triade"), "did you mean 'triad'"),
        (("--kernels", " ,"), "it is empty"),
        (("--threads", "two"), "'two'"),
        (("--threads", "0"), "from 1 to"),
        (("--threads", "1,3"), "can use 2 CPUs"),
        (("--budget-minutes", "0"), "a number from 0.001"),
        (("--budget-minutes", "nan"), "a number from 0.001"),
        (("--seed", "-1"), "a whole number from 0"),
    ],
)
def test_invalid_option_gets_one_line(tmp_path, capsys, monkeypatch, options, words):
    replace_measure(monkeypatch)
    assert run(tmp_path, *options) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error


def test_too_little_memory_gets_one_line(tmp_path, capsys, monkeypatch):
    replace_measure(monkeypatch)
    monkeypatch.setattr(suite, "available_memory", lambda: 1000)
    assert run(tmp_path) == 2
    assert "memory" in capsys.readouterr().err


def test_notes_describe_interference_and_missing_configurations():
    timings = {
        Case("sort", "int64", MIB, 1): measured(pinned=False, waited=None, other_load=0.5),
        Case("sort", "int64", MIB, 2): measured(pinned=False, other_load=0.5),
    }
    text = "\n".join(suite.list_notes(suite.as_frame(timings), 5))
    assert "0.5 cores busy" in text
    assert "does not report whether" in text
    assert "to be pinned" in text
    assert "3 configurations were not reached" in text
    quiet = "\n".join(suite.list_notes(suite.as_frame({Case("sort", "int64", MIB, 1): measured(other_load=0.0)}), 1))
    assert quiet.startswith("measured 1 configurations; median spread")
    assert "\n" not in quiet


def test_format_bytes():
    assert [suite.format_bytes(n) for n in (512, 65536, MIB, 1024 * MIB)] == [
        "512 B",
        "64 KiB",
        "1 MiB",
        "1 GiB",
    ]


def test_gzip_header_has_no_time(tmp_path, monkeypatch):
    replace_measure(monkeypatch)
    assert run(tmp_path, "--kernels", "sort") == 0
    packed = (tmp_path / "host_suite.csv.gz").read_bytes()
    assert packed[4:8] == bytes(4)
    assert gzip.decompress(packed).startswith(b"kernel,variant,bytes,threads,")
    assert np.isfinite(pd.read_csv(tmp_path / "host_suite.csv.gz")["rate"]).all()
