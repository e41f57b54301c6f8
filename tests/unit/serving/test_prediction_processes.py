"""Batches predicted in processes: the same results and errors, and nothing lost when a process dies."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from perfcast.cli import serve
from perfcast.inference.parse import ParsedMachine
from perfcast.serving.prediction_processes import default_workers, start_processes
from perfcast.utils.errors import UserError


def run_batch(machines, options, loaded_in=None):
    for machine in machines:
        if machine.cells["name"] == "bad":
            raise UserError("it must be good", "this one is not", "correct it")
        if machine.cells["name"] == "bug":
            raise ZeroDivisionError("a bug")
    place = {"process": os.getpid(), "loaded_in": loaded_in}
    return [{"name": machine.cells["name"], "options": options, **place} for machine in machines]


def load():
    return partial(run_batch, loaded_in=os.getpid())


def make_machines(*names):
    return [ParsedMachine(line, {"name": name}) for line, name in enumerate(names, 1)]


@pytest.fixture
def processes():
    with start_processes(load, 2) as started:
        yield [partial(process.run, otherwise=run_batch) for process in started]


def test_a_single_worker_is_the_server_itself():
    with start_processes(load, 1) as started:
        assert started == []
    assert 1 <= default_workers() <= 4


def test_results_and_errors_are_those_of_the_function(processes):
    answers = [process(make_machines("a", "b"), "x") for process in processes]
    assert [[result["name"] for result in results] for results in answers] == [["a", "b"], ["a", "b"]]
    assert len({results[0]["process"] for results in answers} | {os.getpid()}) == 3
    with pytest.raises(UserError) as error:
        processes[0](make_machines("a", "bad"), "x")
    assert (error.value.requirement, error.value.fact, error.value.remedy) == (
        "it must be good",
        "this one is not",
        "correct it",
    )
    with pytest.raises(RuntimeError, match="ZeroDivisionError: a bug"):
        processes[0](make_machines("bug"), "x")
    assert processes[0](make_machines("c"), "y")[0]["options"] == "y", "a process outlives errors"


def test_a_process_loads_for_itself(processes):
    (result,) = processes[0](make_machines("a"), "x")
    assert result["loaded_in"] == result["process"] != os.getpid()


def test_ctrl_c_does_not_end_a_process(processes):
    (first,) = processes[0](make_machines("a"), "x")
    os.kill(first["process"], signal.SIGINT)
    assert processes[0](make_machines("b"), "x")[0]["process"] == first["process"]


def test_batches_of_a_dead_process_are_predicted_in_the_server(processes, capfd):
    (first,) = processes[0](make_machines("a"), "x")
    os.kill(first["process"], signal.SIGKILL)
    for name in "bc":
        (result,) = processes[0](make_machines(name), "x")
        assert (result["name"], result["process"]) == (name, os.getpid())
    assert capfd.readouterr().err == "perfcast serve: a prediction process ended; the server predicts in its place\n"
    assert processes[1](make_machines("d"), "x")[0]["process"] != os.getpid()


def test_a_champion_that_cannot_be_loaded_leaves_the_word_to_the_server(capfd):
    def refuse():
        raise UserError("a champion must be as it was saved", "it is not")

    with start_processes(refuse, 2) as started:
        for process in started:
            assert process.run(make_machines("a"), "x", run_batch)[0]["process"] == os.getpid()
    assert "Traceback" not in capfd.readouterr().err


def test_the_server_loads_a_champion_after_its_processes_have_started(monkeypatch, tmp_path):
    """A fork that inherits threads of OpenMP never ends its first batch of LightGBM or torch."""
    happened = []

    def started(load, workers):
        happened.append(f"{workers} processes")
        return nullcontext([])

    def refuse(options):
        happened.append("champion")
        raise UserError("a champion must be as it was saved", "it is not")

    monkeypatch.setattr("perfcast.serving.prediction_processes.start_processes", started)
    monkeypatch.setattr(serve, "read_champion", refuse)
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    with pytest.raises(UserError):
        serve.run(parser.parse_args(["--workers", "3", "--port", "0"]))
    assert happened == ["3 processes", "champion"]


def test_processes_end_with_a_server_that_is_killed():
    code = """
        import os, signal
        from perfcast.inference.parse import ParsedMachine
        from perfcast.serving.prediction_processes import start_processes

        with start_processes(lambda: lambda machines, options: [os.getpid()], 3) as processes:
            print(*(process.run([ParsedMachine(1, {})], None, None)[0] for process in processes), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    running = [Path("/proc") / number for number in done.stdout.split()]
    assert len(running) == 3, done.stderr
    until = time.monotonic() + 20
    while any(map(_is_running, running)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(_is_running, running))


def _is_running(process: Path) -> bool:
    try:
        state = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
