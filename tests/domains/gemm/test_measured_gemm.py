"""Measurement of matrix products."""

import os
import signal
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from perfcast.cli.main import main
from perfcast.domains.gemm import measured_gemm as gemm
from perfcast.domains.gemm import timing as microbench_timing
from perfcast.microbench.machine import available_cpus, describe_machine
from perfcast.utils.io import read_object


def test_sample_configurations_are_distinct_and_seeded():
    drawn = gemm.sample_configurations(3000, max_threads=4, seed=3)
    assert drawn == gemm.sample_configurations(3000, max_threads=4, seed=3)
    assert len(set(drawn)) == 3000
    sizes = np.array([(g.m, g.n, g.k) for g in drawn]).ravel()
    assert sizes.min() >= 16
    assert sizes.max() <= 4096
    assert (sizes % 2).mean() > 0.2
    assert (sizes % 64 == 0).mean() > 0.1
    assert np.median(sizes) < 400, "large sizes must be rare"
    assert {g.threads for g in drawn} == {1, 2, 4}
    assert {g.dtype for g in drawn} == set(gemm.DTYPES)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_operands_compute_the_product(transpose_a, transpose_b):
    operands = gemm._Operands(0)
    case = gemm.Gemm(17, 19, 23, "float64", transpose_a, transpose_b, 1)
    out = operands.product(case)()
    pool = operands.pools["float64"].numpy()
    a = pool[: 17 * 23].reshape((23, 17)).T if transpose_a else pool[: 17 * 23].reshape((17, 23))
    b_flat = pool[17 * 23 : 17 * 23 + 23 * 19]
    b = b_flat.reshape((19, 23)).T if transpose_b else b_flat.reshape((23, 19))
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-10)


def timing(spread, interrupted=False):
    return microbench_timing.Timing(2, 5, 1e-3, 9e-4, spread, 0, 0, interrupted)


def measured(*, spread=0.01, interrupted=False):
    return timing(spread, interrupted)


def test_until_steady_ends_with_steady_samples():
    taken = iter([9.0, 1.0, 1.0, 1.0, 1.01, 1.0, 5.0])
    assert microbench_timing.until_steady(lambda: next(taken)) == [9.0, 1.0, 1.0, 1.0, 1.01]
    noisy = (float(n % 2 + 1) for n in count())
    assert len(microbench_timing.until_steady(lambda: next(noisy))) == microbench_timing.MAX_SAMPLES


class Clock:
    """Clock that advances with every measurement."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def repetitions(results, budget, seed=0):
    """Measure the named results, one second each; each call of a name takes its next microbench_timing."""
    clock, queues = Clock(), {name: list(values) for name, values in results.items()}

    def time_one(name, order, round_number):
        clock.now += 1
        queue = queues[name]
        results = queue.pop(0) if len(queue) > 1 else queue[0]
        return replace(results, order=order, measured_in=round_number)

    return list(microbench_timing.in_rounds(list(results), time_one, budget_seconds=budget, seed=seed, clock=clock))


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
    best = microbench_timing.keep_steadiest(single, 1, lambda *done: seen.append(done))
    assert best == {"a": measured(spread=0.2)}
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


def test_thread_counts():
    assert microbench_timing.thread_counts(1) == [1]
    assert microbench_timing.thread_counts(6) == [1, 2, 4, 6]
    assert microbench_timing.thread_counts(8) == [1, 2, 4, 8]


def test_steadier_prefers_clean_and_steady_timings():
    assert microbench_timing.steadier(None, timing(0.5)).spread == 0.5
    assert microbench_timing.steadier(timing(0.1), timing(0.2)).spread == 0.1
    assert not microbench_timing.steadier(timing(0.01, interrupted=True), timing(0.2)).interrupted


def test_as_frame_excludes_interrupted_configurations():
    first, second = gemm.sample_configurations(2, max_threads=1, seed=0)
    frame = gemm.as_frame({first: timing(0.01), second: timing(0.01, interrupted=True)})
    assert len(frame) == 1
    assert frame["gflops"].iloc[0] == pytest.approx(2 * frame.m[0] * frame.n[0] * frame.k[0] / 1e-3 / 1e9, rel=1e-4)


def set_interrupted(monkeypatch, interrupted):
    """Mark every product as interrupted or not, independently of the load of the test machine."""
    real = gemm.time_product
    monkeypatch.setattr(gemm, "time_product", lambda product, device: (*real(product, device)[:2], interrupted))


def test_command_writes_the_table_without_host_name(tmp_path, capsys, monkeypatch):
    import platform

    set_interrupted(monkeypatch, interrupted=False)
    monkeypatch.chdir(tmp_path)
    assert main(["measure", "gemm", "--configurations", "12", "--budget-minutes", "0.05"]) == 0
    text = (tmp_path / "results/measured/host_gemm.json").read_text()
    assert platform.node() not in text
    assert "written to results/measured/host_gemm.csv.gz" in capsys.readouterr().out
    assert (tmp_path / "results/measured/host_gemm.csv.gz").stat().st_size > 100


def test_busy_machine_gets_one_line_and_no_file(tmp_path, capsys, monkeypatch):
    set_interrupted(monkeypatch, interrupted=True)
    assert main(["measure", "gemm", "--out", str(tmp_path), "--configurations", "3", "--budget-minutes", "0.01"]) == 2
    assert "idle" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


MEASURE = {
    "host_gemm": ("gemm", "--configurations", "40"),
}


@pytest.mark.reliability("a measurement cannot be written to --out", cases=4)
@pytest.mark.parametrize("name", MEASURE)
def test_out_is_checked_before_anything_is_measured(tmp_path, capsys, monkeypatch, name):
    monkeypatch.setattr(microbench_timing, "in_rounds", None)
    (tmp_path / "file").touch()
    (tmp_path / "taken" / f"{name}.csv.gz").mkdir(parents=True)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / f"{name}.json")
    for out in ("file", "file/below", "taken", "pipe"):
        assert main(["measure", *MEASURE[name], "--out", str(tmp_path / out)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.reliability("a measurement gets SIGINT")
@pytest.mark.parametrize("name", MEASURE)
def test_interrupted_measurement_keeps_what_it_has(tmp_path, capsys, monkeypatch, name):
    real = microbench_timing.in_rounds

    def interrupted(*given, **options):
        for number, (configuration, timed) in enumerate(real(*given, **options)):
            if number == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield configuration, replace(timed, interrupted=False)

    monkeypatch.setattr(microbench_timing, "in_rounds", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        assert main(["measure", *MEASURE[name], "--budget-minutes", "1", "--out", str(tmp_path)]) == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(pd.read_csv(tmp_path / f"{name}.csv.gz")) == 3
    assert read_object(tmp_path / f"{name}.json")["cores"] >= 1
    assert "measured 3" in capsys.readouterr().out


def test_describe_machine_has_processor_and_versions():
    about = describe_machine()
    assert about["cores"] >= 1
    assert about["versions"]["torch"].startswith("2.")


def test_invalid_budget_gets_one_line(capsys):
    assert main(["measure", "gemm", "--budget-minutes", "0"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_without_a_gpu_the_command_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(["measure", "gemm", "--device", "cuda", "--out", str(tmp_path)]) == 2
    assert "--device cuda needs a GPU" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_description_of_a_gpu_replaces_that_of_the_processor(tmp_path, monkeypatch):
    card = SimpleNamespace(name="Some GPU", total_memory=24 * 2**30, L2_cache_size=6 * 2**20, multi_processor_count=84)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: card)
    first, second = gemm.sample_configurations(2, max_threads=1, seed=0, largest=gemm.LARGEST["cuda"])
    gemm.write_measurement(tmp_path, gemm.as_frame({first: timing(0.01), second: timing(0.01)}), "cuda")
    described = read_object(tmp_path / "host_gemm.json")
    assert {name: described[name] for name in ("cpu_model", "cores", "l2_kib", "l3_kib", "memory_gib")} == {
        **{"cpu_model": "Some GPU", "cores": 84, "l2_kib": 6144, "l3_kib": None, "memory_gib": 24.0},
    }
    assert described["versions"]["torch"] == torch.__version__


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_is_measured_on_one_thread_and_to_larger_sizes(tmp_path, monkeypatch):
    set_interrupted(monkeypatch, interrupted=False)
    words = ["--device", "cuda", "--out", str(tmp_path), "--configurations", "200", "--budget-minutes", "0.2"]
    assert main(["measure", "gemm", *words]) == 0
    table = pd.read_csv(tmp_path / "host_gemm.csv.gz")
    assert set(table["threads"]) == {1}
    assert table["gflops"].max() > 1000
