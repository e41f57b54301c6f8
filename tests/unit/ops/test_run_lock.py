"""Lock of a folder of results: one run at a time, whatever the folder is called, and no longer than its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from perfcast.ops.run_lock import LOCK, end_on_hangup, hold_results
from perfcast.utils.errors import UserError

HOLD = """
import sys
from pathlib import Path
from perfcast.ops.run_lock import hold_results
hold_results(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def held_elsewhere(command):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    return process


def test_second_run_in_one_folder_is_refused_whatever_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    results.mkdir()
    (tmp_path / "r2").symlink_to("results")
    (tmp_path / "r3").symlink_to(tmp_path / "r2")
    for name in map(Path, ("results", "r2", "r3", str(results), "results/../r2/.")):
        handle = hold_results(Path("results"))
        with pytest.raises(UserError, match="one run at a time"):
            hold_results(name)
        os.close(handle)
        os.close(hold_results(name))


def test_of_runs_that_start_at_one_instant_a_single_one_goes_on(tmp_path):
    for _ in range(5):
        barrier = Barrier(8)

        def start(_, barrier=barrier):
            barrier.wait()
            try:
                return hold_results(tmp_path)
            except UserError:
                return None

        with ThreadPoolExecutor(8) as pool:
            handles = [handle for handle in pool.map(start, range(8)) if handle is not None]
        assert len(handles) == 1
        os.close(handles[0])


def test_lock_ends_with_the_process(tmp_path):
    process = held_elsewhere([sys.executable, "-c", HOLD, str(tmp_path)])
    with pytest.raises(UserError, match="another run"):
        hold_results(tmp_path)
    process.kill()
    process.wait()
    os.close(hold_results(tmp_path))


def test_job_of_a_killed_run_keeps_others_away(tmp_path):
    handle = hold_results(tmp_path)
    job = f"exec 9< '{tmp_path / LOCK}' && flock --shared 9; echo held; read line"
    process = held_elsewhere(["bash", "-c", job])
    os.close(handle)
    with pytest.raises(UserError, match="a job of a killed one"):
        hold_results(tmp_path)
    process.communicate(b"\n")
    os.close(hold_results(tmp_path))


def test_hangup_ends_a_run_as_a_request_to_end_does_and_nohup_is_heeded():
    received, numbers = [], (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
        end_on_hangup()
        os.kill(os.getpid(), signal.SIGHUP)
        assert received == [signal.SIGHUP]
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        end_on_hangup()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
