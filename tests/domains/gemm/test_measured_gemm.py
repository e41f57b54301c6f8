"""Measurement of matrix products: samples, rounds, the table and the command."""

import os
import platform
import signal
from dataclasses import replace
from itertools import count

import numpy as np
import pandas as pd
import pytest
import torch

from perfcast.cli.main import main
from perfcast.domains.gemm import measured_gemm as gemm
from perfcast.domains.gemm import timing as microbench_timing
from perfcast.microbench.machine import available_cpus
from perfcast.utils.io import read_object


def test_configurations_are_distinct_and_the_steadiest_timings_are_kept():
    drawn = gemm.sample_configurations(3000, max_threads=4, seed=3)
    assert drawn == gemm.sample_configurations(3000, max_threads=4, seed=3)
    assert len(set(drawn)) == 3000
    sizes = np.array([(g.m, g.n, g.k) for g in drawn]).ravel()
    assert sizes.min() >= 16 and sizes.max() <= 4096 and np.median(sizes) < 400, "large sizes must be rare"
    assert (sizes % 2).mean() > 0.2 and (sizes % 64 == 0).mean() > 0.1
    assert {g.threads for g in drawn} == {1, 2, 4} and {g.dtype for g in drawn} == set(gemm.DTYPES)
    assert microbench_timing.steadier(None, timing(0.5)).spread == 0.5
    assert microbench_timing.steadier(timing(0.1), timing(0.2)).spread == 0.1
    assert not microbench_timing.steadier(timing(0.01, interrupted=True), timing(0.2)).interrupted
    first, second = gemm.sample_configurations(2, max_threads=1, seed=0)
    (row,) = gemm.as_frame({first: timing(0.01), second: timing(0.01, interrupted=True)}).itertuples()
    assert row.gflops == pytest.approx(2 * row.m * row.n * row.k / 1e-3 / 1e9, rel=1e-4)


def test_the_product_of_every_layout_is_what_is_timed(monkeypatch):
    results = []
    monkeypatch.setattr(
        gemm,
        "time_product",
        lambda product: (0, [product().clone().numpy()[0, 0]] * 2, False),
    )
    monkeypatch.setattr(gemm, "relative_spread", lambda samples: results.append(samples[0]) or 0.0)
    layouts = [gemm.Gemm(17, 19, 23, "float64", a, b, 1) for a in (False, True) for b in (False, True)]
    measured = gemm.measure(layouts, budget_seconds=0.0, seed=0)
    pool = (torch.rand(17 * 23 + 23 * 19 + 99, generator=torch.Generator().manual_seed(0)) - 0.5).double().numpy()
    a = pool[: 17 * 23]
    b = pool[17 * 23 : 17 * 23 + 23 * 19]
    for each, timed in measured.items():
        left = a.reshape((23, 17)).T if each.transpose_a else a.reshape((17, 23))
        right = b.reshape((19, 23)).T if each.transpose_b else b.reshape((23, 19))
        assert timed.minimum == pytest.approx((left @ right)[0, 0], rel=1e-6)


def timing(spread=0.01, interrupted=False):
    return microbench_timing.Timing(2, 5, 1e-3, 9e-4, spread, 0, 0, interrupted)


def repetitions(results, budget, seed=0):
    """Measure the named results, one second each; each call of a name takes its next timing."""
    now = [0.0]
    queues = {name: list(values) for name, values in results.items()}

    def time_one(name, order, round_number):
        now[0] += 1
        queue = queues[name]
        each = queue.pop(0) if len(queue) > 1 else queue[0]
        return replace(each, order=order, measured_in=round_number)

    return list(
        microbench_timing.in_rounds(list(results), time_one, budget_seconds=budget, seed=seed, clock=lambda: now[0])
    )


def test_remaining_budget_repeats_unsteady_cases():
    results = {name: [timing()] for name in "abcdefgh"}
    results["unsteady"] = [
        timing(spread=0.5),
        timing(spread=0.4),
        timing(spread=0.02),
    ]
    results["interrupted"] = [timing(interrupted=True), timing()]
    timings = repetitions(results, budget=100)
    again = [name for name, _ in timings[10:]]
    assert sorted(name for name, _ in timings[:10]) == sorted(results)
    assert again == ["interrupted", "unsteady", "unsteady"], "all are steady then"
    assert [t.order for _, t in timings] == list(range(13))
    assert [t.measured_in for _, t in timings[10:]] == [1, 2, 3]


def test_the_order_is_seeded_the_budget_can_end_the_first_round_and_clean_timings_are_kept():
    results = {name: [timing()] for name in "abcdefgh"}
    first, same, other = ([name for name, _ in repetitions(results, 100, seed)] for seed in (0, 0, 1))
    assert first == same != other
    assert len(repetitions(results, budget=4.5)) == 5
    timings = [
        timing(spread=0.3),
        timing(spread=0.01, interrupted=True),
        timing(spread=0.2),
    ]
    seen = []
    best = microbench_timing.keep_steadiest(
        (("a", each) for each in timings),
        1,
        lambda *done: seen.append(done),
    )
    assert best == {"a": timing(spread=0.2)}
    assert seen == [(1, 1, 0), (1, 1, 1), (1, 1, 2)]


def test_available_cpus_start_with_one_per_core(monkeypatch, tmp_path):
    siblings = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}
    for cpu, text in siblings.items():
        (tmp_path / str(cpu)).write_text(text + "\n")
    monkeypatch.setattr("perfcast.microbench.machine._SIBLINGS", str(tmp_path / "{}"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    assert available_cpus() == [0, 2, 1, 3]
    monkeypatch.setattr("perfcast.microbench.machine._SIBLINGS", str(tmp_path / "nothing{}"))
    assert available_cpus() == [0, 1, 2, 3]


def test_samples_end_when_steady_and_threads_double():
    taken = iter([9.0, 1.0, 1.0, 1.0, 1.01, 1.0, 5.0])
    assert microbench_timing.until_steady(lambda: next(taken)) == [9.0, 1.0, 1.0, 1.0, 1.01]
    noisy = (float(n % 2 + 1) for n in count())
    assert len(microbench_timing.until_steady(lambda: next(noisy))) == microbench_timing.MAX_SAMPLES
    assert [microbench_timing.thread_counts(n) for n in (1, 6, 8)] == [[1], [1, 2, 4, 6], [1, 2, 4, 8]]


def set_interrupted(monkeypatch, interrupted):
    """Mark every product as interrupted or not, independently of the load of the test machine."""
    real = gemm.time_product
    monkeypatch.setattr(gemm, "time_product", lambda product: (*real(product)[:2], interrupted))


def test_command_writes_the_table_without_host_name_and_nothing_on_a_busy_machine(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["measure", "gemm", "--configurations", "3", "--budget-minutes", "0.01"]
    set_interrupted(monkeypatch, interrupted=True)
    assert main(command) == 2 and "idle" in capsys.readouterr().err and not list(tmp_path.rglob("*.*"))
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    set_interrupted(monkeypatch, interrupted=False)
    assert main(command) == 0
    assert platform.node() not in (tmp_path / "results/measured/host_gemm.json").read_text()
    assert "written to results/measured/host_gemm.csv.gz" in capsys.readouterr().out
    assert (tmp_path / "results/measured/host_gemm.csv.gz").stat().st_size > 100


MEASURE = ["measure", "gemm", "--configurations", "40"]


def test_out_is_checked_before_anything_is_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(microbench_timing, "in_rounds", None)
    (tmp_path / "file").touch()
    (tmp_path / "taken" / "host_gemm.csv.gz").mkdir(parents=True)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "host_gemm.json")
    for out in ("file", "file/below", "taken", "pipe"):
        assert main([*MEASURE, "--out", str(tmp_path / out)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_interrupted_measurement_keeps_what_it_has(tmp_path, capsys, monkeypatch):
    real = microbench_timing.in_rounds

    def interrupted(*given, **options):
        for number, (configuration, timed) in enumerate(real(*given, **options)):
            if number == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield configuration, replace(timed, interrupted=False)

    monkeypatch.setattr(microbench_timing, "in_rounds", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        assert (
            main(
                [
                    *MEASURE,
                    "--budget-minutes",
                    "1",
                    "--out",
                    str(tmp_path),
                ]
            )
            == 0
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(pd.read_csv(tmp_path / "host_gemm.csv.gz")) == 3
    assert read_object(tmp_path / "host_gemm.json")["cores"] >= 1
    assert "measured 3" in capsys.readouterr().out
