"""Batches predicted in processes: the same results and errors, and nothing lost when a process dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from perfcast.inference.parse import ParsedMachine
from perfcast.serving.prediction_processes import default_workers, start_processes
from perfcast.utils.errors import UserError


def run_batch(machines, options):
    for machine in machines:
        if machine.cells["name"] == "bad":
            raise UserError("it must be good", "this one is not", "correct it")
        if machine.cells["name"] == "bug":
            raise ZeroDivisionError("a bug")
    return [{"name": machine.cells["name"], "options": options, "process": os.getpid()} for machine in machines]


def make_machines(*names):
    return [ParsedMachine(line, {"name": name}) for line, name in enumerate(names, 1)]


@pytest.fixture
def processes():
    started = start_processes(run_batch, 2, lambda: None)
    yield started
    for process in started:
        process.close()


def test_every_process_answers_and_several_are_needed():
    assert start_processes(run_batch, 1, lambda: None) == []
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


def test_ctrl_c_does_not_end_a_process(processes):
    (first,) = processes[0](make_machines("a"), "x")
    os.kill(first["process"], signal.SIGINT)
    assert processes[0](make_machines("b"), "x")[0]["process"] == first["process"]


def test_batches_of_a_dead_process_are_predicted_in_the_server(processes, capfd):
    (first,) = processes[0](make_machines("a"), "x")
    os.kill(first["process"], signal.SIGKILL)
    for name in "bc":
        assert processes[0](make_machines(name), "x") == [{"name": name, "options": "x", "process": os.getpid()}]
    assert capfd.readouterr().err == "perfcast serve: a prediction process ended; the server works on without it\n"
    assert processes[1](make_machines("d"), "x")[0]["process"] != os.getpid()


def test_processes_end_with_a_server_that_is_killed():
    code = """
        import os, signal, time
        from perfcast.inference.parse import ParsedMachine
        from perfcast.serving.prediction_processes import start_processes

        processes = start_processes(lambda machines, options: [os.getpid()], 3, lambda: None)
        print(*(process([ParsedMachine(1, {})], None)[0] for process in processes), flush=True)
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
