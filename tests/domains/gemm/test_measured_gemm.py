"""Measurement of matrix products: samples, rounds, the table and the command."""

import os
import platform
import signal
from itertools import count

import numpy as np
import pandas as pd
import pytest
import torch

from perfcast.cli.main import main
from perfcast.domains.gemm import measured_gemm as gemm
from perfcast.domains.gemm import timing as microbench_timing
from perfcast.utils.io import read_object


def test_configurations_are_distinct_and_their_rates_follow():
    drawn = gemm.sample_configurations(3000, max_threads=4, seed=3)
    assert drawn == gemm.sample_configurations(3000, max_threads=4, seed=3)
    assert len(set(drawn)) == 3000
    sizes = np.array([(g.m, g.n, g.k) for g in drawn]).ravel()
    assert sizes.min() >= 16 and sizes.max() <= 4096 and np.median(sizes) < 400, "large sizes must be rare"
    assert {g.threads for g in drawn} == {1, 2, 4} and {g.dtype for g in drawn} == set(gemm.DTYPES)
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
    measured = gemm.measure(layouts, budget_seconds=0.0, seed=0, progress=lambda *done: None)
    pool = (torch.rand(17 * 23 + 23 * 19 + 99, generator=torch.Generator().manual_seed(0)) - 0.5).double().numpy()
    a = pool[: 17 * 23]
    b = pool[17 * 23 : 17 * 23 + 23 * 19]
    for each, timed in measured.items():
        left = a.reshape((23, 17)).T if each.transpose_a else a.reshape((17, 23))
        right = b.reshape((19, 23)).T if each.transpose_b else b.reshape((23, 19))
        assert timed.minimum == pytest.approx((left @ right)[0, 0], rel=1e-6)


def timing(spread=0.01, interrupted=False):
    return microbench_timing.Timing(2, 5, 1e-3, 9e-4, spread, 0, 0, interrupted)


def measure_names(results, budget, seed=0):
    """Measure names, one second each; a name takes its next timing. Return the best, the order and the rounds."""
    now = [0.0]
    queues = {name: list(values) for name, values in results.items()}
    calls = []

    def time_one(name, order, round_number):
        now[0] += 1
        calls.append((name, order, round_number))
        queue = queues[name]
        return queue.pop(0) if len(queue) > 1 else queue[0]

    best = microbench_timing.measure_steadiest(
        list(results),
        time_one,
        budget_seconds=budget,
        seed=seed,
        progress=lambda *done: None,
        clock=lambda: now[0],
    )
    names, orders, passes = zip(*calls, strict=True)
    assert list(orders) == list(range(len(calls)))
    return best, list(names), list(passes)


STEADY = {name: [timing()] for name in "abcdefgh"}


def test_remaining_budget_repeats_unsteady_cases_and_the_steadiest_timings_are_kept():
    results = {
        **STEADY,
        "unsteady": [timing(spread=0.5), timing(spread=0.4), timing(spread=0.02)],
        "interrupted": [timing(interrupted=True), timing()],
    }
    best, names, passes = measure_names(results, budget=100)
    assert sorted(names[:10]) == sorted(results)
    assert names[10:] == ["interrupted", "unsteady", "unsteady"], "all are steady then"
    assert passes[10:] == [1, 2, 3]
    assert best["unsteady"].spread == 0.02 and not best["interrupted"].interrupted


def test_the_order_is_seeded_and_the_budget_can_end_the_first_round():
    first, same, other = (measure_names(STEADY, 100, seed)[1] for seed in (0, 0, 1))
    assert first == same != other
    assert len(measure_names(STEADY, budget=4.5)[0]) == 5


def test_samples_end_when_steady_and_threads_double():
    taken = iter([9.0, 1.0, 1.0, 1.0, 1.01, 1.0, 5.0])
    assert microbench_timing.until_steady(lambda: next(taken)) == [
        9.0,
        1.0,
        1.0,
        1.0,
        1.01,
    ]
    noisy = (float(n % 2 + 1) for n in count())
    assert len(microbench_timing.until_steady(lambda: next(noisy))) == microbench_timing.MAX_SAMPLES
    assert [microbench_timing.thread_counts(n) for n in (1, 6, 8)] == [
        [1],
        [1, 2, 4, 6],
        [1, 2, 4, 8],
    ]


COMMAND = ["measure", "gemm", "--configurations", "3", "--budget-minutes", "0.01"]


def set_interrupted(monkeypatch, interrupted):
    """Mark every product as interrupted or not, independently of the load of the test machine."""
    real = gemm.time_product
    monkeypatch.setattr(gemm, "time_product", lambda product: (*real(product)[:2], interrupted))


def test_command_writes_the_table_without_host_name_and_nothing_on_a_busy_machine(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    set_interrupted(monkeypatch, interrupted=True)
    assert main(COMMAND) == 2 and "idle" in capsys.readouterr().err and not list(tmp_path.rglob("*.*"))
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    set_interrupted(monkeypatch, interrupted=False)
    assert main(COMMAND) == 0
    assert platform.node() not in (tmp_path / "results/measured/host_gemm.json").read_text()
    assert "written to results/measured/host_gemm.csv.gz" in capsys.readouterr().out
    assert (tmp_path / "results/measured/host_gemm.csv.gz").stat().st_size > 100


def test_out_is_checked_before_anything_is_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gemm, "measure_steadiest", None)
    (tmp_path / "file").touch()
    (tmp_path / "taken" / "host_gemm.csv.gz").mkdir(parents=True)
    for out in ("file", "file/below", "taken"):
        assert main([*COMMAND, "--out", str(tmp_path / out)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_interrupted_measurement_keeps_what_it_has(tmp_path, capsys, monkeypatch):
    calls = count()

    def time_product(product):
        if next(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return 2, [1e-3] * 5, False

    monkeypatch.setattr(gemm, "time_product", time_product)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        assert main([*COMMAND[:3], "40", *COMMAND[4:5], "1", "--out", str(tmp_path)]) == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(pd.read_csv(tmp_path / "host_gemm.csv.gz")) == 3
    assert read_object(tmp_path / "host_gemm.json")["cores"] >= 1
    assert "measured 3" in capsys.readouterr().out
