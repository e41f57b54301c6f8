"""The suite: crews of threads, samples, rounds, interference, the table, and the command."""

import gzip
import os
import threading
from dataclasses import replace
from itertools import count

import numpy as np
import pandas as pd
import pytest

from perfcast.cli import _measure_suite as command
from perfcast.cli.main import main
from perfcast.datasets import host_suite
from perfcast.io import sha256
from perfcast.measure import crew as crew_module
from perfcast.measure import interference, suite, timing
from perfcast.measure.crew import Crew, available_cpus
from perfcast.measure.interference import Interference, machine_seconds
from perfcast.measure.suite import Case, Measured

MIB = 2**20


def measured(*, spread=0.01, interrupted=False, median=1e-3, **changes):
    made = Measured(8, 5, median, 0.9 * median, spread, 0, 0, interrupted, 20, 0.5, True, 0.001, 0.0, 0.1)
    return replace(made, **changes)


# samples and rounds


def test_samples_end_when_they_are_steady():
    taken = iter([9.0, 1.0, 1.0, 1.0, 1.01, 1.0, 5.0])
    assert timing.until_steady(lambda: next(taken)) == [9.0, 1.0, 1.0, 1.0, 1.01]
    noisy = (float(n % 2 + 1) for n in count())
    assert len(timing.until_steady(lambda: next(noisy))) == timing.MAX_SAMPLES


def test_warming_up_approaches_a_sample_in_steps_and_does_not_believe_one_slow_call():
    asked = []

    def run(calls):
        asked.append(calls)
        # other work interrupts the very first call
        return [1.0 if len(asked) == 1 else 1e-4 * calls, 1e-4 * calls]

    calls, made = suite.warm_up(run)
    assert calls == pytest.approx(suite.MIN_SAMPLE_SECONDS / 1e-4, rel=0.1)
    assert made == sum(asked)
    assert asked[:4] == [1, 1, 10, 10]


def test_a_slow_kernel_is_called_once_per_sample():
    assert suite.warm_up(lambda calls: [0.5 * calls]) == (1, 2)


class Clock:
    """A clock that only measuring moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def rounds(results, budget, seed=0):
    """Measure the named results, one second each; each call of a name takes its next timing."""
    clock, queues = Clock(), {name: list(values) for name, values in results.items()}

    def time_one(name, order, round_number):
        clock.now += 1
        queue = queues[name]
        found = queue.pop(0) if len(queue) > 1 else queue[0]
        return replace(found, order=order, measured_in=round_number)

    return list(timing.in_rounds(list(results), time_one, budget_seconds=budget, seed=seed, clock=clock))


def test_what_is_left_of_the_budget_goes_to_the_least_steady():
    results = {name: [measured()] for name in "abcdefgh"}
    results["unsteady"] = [measured(spread=0.5), measured(spread=0.4), measured(spread=0.02)]
    results["interrupted"] = [measured(interrupted=True), measured()]
    told = rounds(results, budget=100)
    again = [name for name, _ in told[10:]]
    assert sorted(name for name, _ in told[:10]) == sorted(results)
    assert again == ["interrupted", "unsteady", "unsteady"], "then nothing is unsteady any more"
    assert [t.order for _, t in told] == list(range(13))
    assert [t.measured_in for _, t in told[10:]] == [1, 2, 3]


def test_the_budget_ends_the_first_round_too():
    told = rounds({name: [measured()] for name in "abcdefgh"}, budget=4.5)
    assert len(told) == 5


def test_the_order_is_random_and_seeded():
    results = {name: [measured()] for name in "abcdefgh"}
    first, same, other = ([name for name, _ in rounds(results, 100, seed)] for seed in (0, 0, 1))
    assert first == same != other


def test_a_clean_timing_is_kept_over_a_steadier_interrupted_one():
    one = iter(
        [("a", measured(spread=0.3)), ("a", measured(spread=0.01, interrupted=True)), ("a", measured(spread=0.2))]
    )
    seen = []
    kept = timing.keep_steadiest(one, 1, lambda *done: seen.append(done))
    assert kept == {"a": measured(spread=0.2)}
    assert seen == [(1, 1, 0), (1, 1, 1), (1, 1, 2)]


# crews


def test_a_crew_calls_in_every_thread_as_often_as_asked_each_on_its_processor():
    cpus = (available_cpus() * 2)[:2]
    calls, places, makers = [0, 0], [set(), set()], []

    def prepare(number):
        makers.append(threading.get_native_id())

        def call():
            calls[number] += 1
            places[number] |= os.sched_getaffinity(0)

        return call

    before = os.sched_getaffinity(0)
    with Crew(cpus, prepare) as crew:
        assert sorted(crew.thread_ids) == sorted(makers)
        seconds = crew.run(3)
        crew.run(4)
        assert crew.pinned
    assert calls == [7, 7]
    assert len(seconds) == 2
    assert all(s > 0 for s in seconds)
    assert places == [{cpus[0]}, {cpus[1]}]
    assert os.sched_getaffinity(0) == before, "this thread stays free"
    assert not {thread.native_id for thread in threading.enumerate()} & set(makers), "they have ended"


def test_where_threads_cannot_choose_their_core_it_is_said(monkeypatch):
    monkeypatch.delattr(crew_module.os, "sched_setaffinity")
    with Crew([0], lambda number: int) as crew:
        assert not crew.pinned


@pytest.mark.parametrize("where", ["prepare", "call"])
def test_an_error_in_a_thread_is_raised_and_ends_the_crew(where):
    def fail():
        raise MemoryError(where)

    def prepare(number):
        if number == 1:
            return fail() if where == "prepare" else fail
        return int

    with pytest.raises(MemoryError, match=where), Crew([0, 0], prepare) as crew:
        crew.run(1)


def test_one_processor_of_every_core_comes_first(monkeypatch, tmp_path):
    siblings = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}
    for cpu, text in siblings.items():
        (tmp_path / str(cpu)).write_text(text + "\n")
    monkeypatch.setattr(crew_module, "_SIBLINGS", str(tmp_path / "{}"))
    monkeypatch.setattr(crew_module.os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    assert available_cpus() == [0, 2, 1, 3]
    monkeypatch.setattr(crew_module, "_SIBLINGS", str(tmp_path / "nothing{}"))
    assert available_cpus() == [0, 1, 2, 3]


# interference

STAT = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 10 20 900 5 1 2 7 0 0\ncpu1 200 0 0 900 5 0 0 50 0 0\nintr 5\n"


def test_machine_seconds_are_those_of_the_processors():
    tick = os.sysconf("SC_CLK_TCK")
    assert machine_seconds([1], STAT) == (50 / tick, 333 / tick)
    assert machine_seconds([0, 1], STAT) == (57 / tick, 333 / tick)
    assert machine_seconds([2], STAT) == (None, None)
    assert machine_seconds([0], "") == (None, None)


@pytest.mark.parametrize(
    ("waited", "stolen", "harmful"),
    [(0.0, 0.0, False), (0.019, 0.019, False), (0.021, 0.0, True), (0.0, 0.5, True), (None, None, False)],
)
def test_waiting_and_stolen_time_are_harmful_beyond_a_bound(waited, stolen, harmful):
    assert Interference(waited, stolen, other_load=5.0).harmful == harmful


def test_a_watch_tells_shares_of_the_threads_time(monkeypatch):
    tick = 1 / os.sysconf("SC_CLK_TCK")
    now = iter([0.0, 10.0])
    monkeypatch.setattr(interference.time, "perf_counter", lambda: next(now))
    waited, machine, own = iter([1.0, 3.0]), iter([(5.0, 100.0), (6.0 + tick, 140.0)]), iter([0.0, 20.0])
    monkeypatch.setattr(interference, "waited_by", lambda ids: next(waited))
    monkeypatch.setattr(interference, "machine_seconds", lambda cpus: next(machine))
    monkeypatch.setattr(interference.time, "process_time", lambda: next(own))
    found = interference.Watch([7, 8], [0, 1]).read()
    assert (found.waited, found.stolen, found.other_load) == pytest.approx((0.1, 0.05, 2.0))


def test_a_thread_that_the_system_knows_nothing_of_is_unknown(monkeypatch):
    assert interference.waited_by([threading.get_native_id()]) >= 0
    assert interference.waited_by([0]) is None
    monkeypatch.setattr(interference, "_STAT", "/nothing")
    found = interference.Watch([0], [0]).read()
    assert found == Interference(None, None, None)


# the suite


def test_rates_add_up_and_latencies_are_averaged():
    assert suite.combined([1.0, 3.0], shared=True) == pytest.approx(1.5)
    assert suite.combined([1.0, 3.0], shared=False) == 2.0
    assert suite.rate(6.0, 1.5, 2, shared=True) == pytest.approx(6 / 1 + 6 / 3)
    assert suite.rate(6.0, 2.0, 2, shared=False) == 3.0


def test_threads_are_powers_of_two_and_all():
    assert suite.thread_counts(1) == [1]
    assert suite.thread_counts(6) == [1, 2, 4, 6]
    assert suite.thread_counts(8) == [1, 2, 4, 8]


def test_sizes_go_beyond_the_caches_as_far_as_memory_allows():
    assert suite.largest_size(32 * 1024, 2, None) == 128 * MIB
    assert suite.largest_size(None, 2, None) == suite.SMALLEST_TOP
    assert suite.largest_size(1e9, 2, None) == suite.LARGEST_TOP
    assert suite.largest_size(32 * 1024, 4, 256 * MIB) == 16 * MIB


def test_cases_are_every_kernel_variant_size_and_number_of_threads_that_fit():
    cases = suite.cases(["chase", "branches"], [1, 2], l3_kib=None, memory=32 * MIB)
    assert len(set(cases)) == len(cases)
    assert max(c.size for c in cases if c.threads == 1) == 8 * MIB
    assert max(c.size for c in cases if c.threads == 2) == 4 * MIB
    assert {(c.kernel, c.variant) for c in cases} == {
        ("chase", "lines"),
        ("branches", "regular"),
        ("branches", "random"),
    }
    assert suite.cases(["chase"], [1], l3_kib=None, memory=1000) == []


@pytest.mark.parametrize("name", suite.kernel_names())
def test_a_case_is_measured_and_torch_keeps_its_threads(name, monkeypatch):
    import torch

    monkeypatch.setattr(suite, "MIN_SAMPLE_SECONDS", 1e-4)
    monkeypatch.setattr(suite.Watch, "read", lambda self: Interference(0.5, 0.0, 0.0))
    before = torch.get_num_threads()
    case = Case(name, suite.kernel(name).VARIANTS[0], suite.kernel(name).sizes(MIB)[0], 2)
    monkeypatch.setattr(suite, "available_cpus", lambda: (available_cpus() * 2)[:2])
    found = suite.measure([case], budget_seconds=1e-3, seed=0)
    assert torch.get_num_threads() == before
    assert found[case].interrupted
    assert 0 < found[case].minimum <= found[case].median
    frame = suite.as_frame(found)
    assert frame["interrupted"].tolist() == [1], "marked and kept"
    row = frame.iloc[0]
    assert row["rate"] == pytest.approx(row["work"] / row["seconds_median"] * (1 if name == "chase" else 2), rel=1e-4)


def test_the_table_is_ordered_and_says_what_is_unknown():
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


def instead(monkeypatch, **changes):
    """Measure nothing: every case gets the same timing, some of them as `changes` says by kernel."""

    def measure(cases, *, budget_seconds, seed, progress):
        found = {}
        for case in cases:
            found[case] = measured(**changes.get(case.kernel, {}))
            progress(len(found), len(cases), 0)
        return found

    monkeypatch.setattr(suite, "measure", measure)
    monkeypatch.setattr("perfcast.measure.crew.available_cpus", lambda: [0, 1])


def run(tmp_path, *more):
    return main(["measure", "suite", "--out", str(tmp_path), *more])


def test_command_writes_a_table_that_is_a_data_set(tmp_path, capsys, monkeypatch):
    import platform

    instead(monkeypatch, chase={"interrupted": True, "other_load": 1.5})
    assert run(tmp_path / "one") == 0
    out = capsys.readouterr().out
    assert run(tmp_path / "two") == 0
    for name in ("host_suite.csv.gz", "host_suite.json"):
        assert sha256(tmp_path / "one" / name) == sha256(tmp_path / "two" / name)
    assert platform.node() not in (tmp_path / "one" / "host_suite.json").read_text()
    built = host_suite.build({"host_suite": tmp_path / "one"}, {})
    assert set(built.rejected["reason"]) == {"interrupted"}
    assert set(built.table.frame["kernel"]) == set(suite.kernel_names()) - {"chase"}
    for words in (
        "ns per access",
        "wrong guesses",
        "GB/s",
        "4 KiB",
        "1 thread ",
        "2 threads",
        "2!",
        "other work took the cores",
    ):
        assert words in out
    assert "left out:" not in out


def test_chosen_kernels_and_threads_are_measured(tmp_path, monkeypatch):
    instead(monkeypatch)
    assert run(tmp_path, "--kernels", "sort, triad", "--threads", "2") == 0
    frame = pd.read_csv(tmp_path / "host_suite.csv.gz")
    assert set(frame["kernel"]) == {"sort", "triad"}
    assert set(frame["threads"]) == {2}


def test_a_machine_too_busy_to_measure_anything_is_one_line_and_no_file(tmp_path, capsys, monkeypatch):
    instead(monkeypatch, sort={"interrupted": True})
    assert run(tmp_path, "--kernels", "sort") == 2
    assert "idle" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--kernels", "triade"), "did you mean 'triad'"),
        (("--kernels", " ,"), "names none"),
        (("--threads", "two"), "'two'"),
        (("--threads", "0"), "from 1 to"),
        (("--threads", "1,3"), "no more processors"),
        (("--budget-minutes", "0"), "positive"),
        (("--budget-minutes", "nan"), "positive"),
        (("--seed", "-1"), "negative"),
    ],
)
def test_a_wrong_option_is_one_line(tmp_path, capsys, monkeypatch, options, words):
    instead(monkeypatch)
    assert run(tmp_path, *options) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error


def test_too_little_memory_is_one_line(tmp_path, capsys, monkeypatch):
    instead(monkeypatch)
    monkeypatch.setattr(suite, "available_memory", lambda: 1000)
    assert run(tmp_path) == 2
    assert "memory" in capsys.readouterr().err


def test_notes_say_what_must_be_known():
    timings = {
        Case("sort", "int64", MIB, 1): measured(pinned=False, waited=None, other_load=0.5),
        Case("sort", "int64", MIB, 2): measured(pinned=False, other_load=0.5),
    }
    text = "\n".join(command.notes(suite.as_frame(timings), 5, 3))
    assert "0.5 cores busy" in text
    assert "does not tell whether" in text
    assert "do not" not in text
    assert "choose their core" in text
    assert "3 configurations were left out: beyond the 3 minutes" in text
    quiet = "\n".join(command.notes(suite.as_frame({Case("sort", "int64", MIB, 1): measured(other_load=0.0)}), 1, 3))
    assert quiet.startswith("measured 1 configurations; spread")
    assert "\n" not in quiet


def test_sizes_are_told_as_people_write_them():
    assert [command.human_bytes(n) for n in (512, 65536, MIB, 1024 * MIB)] == ["512 B", "64 KiB", "1 MiB", "1 GiB"]


def test_packed_bytes_hold_no_time(tmp_path, monkeypatch):
    instead(monkeypatch)
    assert run(tmp_path, "--kernels", "sort") == 0
    packed = (tmp_path / "host_suite.csv.gz").read_bytes()
    assert packed[4:8] == bytes(4)
    assert gzip.decompress(packed).startswith(b"kernel,variant,bytes,threads,")
    assert np.isfinite(pd.read_csv(tmp_path / "host_suite.csv.gz")["rate"]).all()
