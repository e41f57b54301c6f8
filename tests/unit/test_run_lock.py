"""One run at a time, told from a killed one by the kernel."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from perfcast import run_lock
from perfcast.errors import UserError
from perfcast.io import atomic_folder, atomic_path

HOLDER = """
import subprocess, sys, time
from pathlib import Path
from perfcast import run_lock
print(run_lock.hold(Path(), sys.argv[1]), flush=True)
if "job" in sys.argv:
    code = "held = take_part(os.environ); print(held is not None, flush=True); sys.stdin.read()"
    job = subprocess.Popen([sys.executable, "-c", f"import os, sys; from perfcast.run_lock import take_part; {code}"])
    print(job.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def outside(monkeypatch):
    monkeypatch.setenv(run_lock.JOBS_VARIABLE, "")


def holder(project, results="results", *words):
    """A process that holds a folder of results; the line it told."""
    command = [sys.executable, "-c", HOLDER, results, *words]
    process = subprocess.Popen(command, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def ended(process, number=None):
    if number:
        os.kill(process.pid, number)
    process.stdin.close()
    process.wait(timeout=30)


def locks(project, *files):
    """What a run of Snakemake leaves when it is killed."""
    path = project / ".snakemake" / "locks" / "0.output.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{file}\n" for file in files))
    return path


def test_a_second_run_is_refused_in_one_line_while_the_first_is_alive(tmp_path):
    first, told = holder(tmp_path)
    assert told == "None"
    left = locks(tmp_path, "results/raw/a")
    with pytest.raises(UserError, match=rf"process {first.pid} on .* does since .*results=") as error:
        run_lock.hold(tmp_path, "./results/")
    assert "\n" not in str(error.value)
    assert left.exists()
    assert run_lock.state(tmp_path, "results").alive
    assert run_lock.hold(tmp_path, "results/other") is None, "another folder is another matter"
    ended(first)
    assert run_lock.state(tmp_path, "results") == run_lock.State(None, False, ())
    assert run_lock.hold(tmp_path, "results") is None, "a run that ended by itself leaves nothing to tell"


def test_what_a_killed_run_left_is_cleared_and_told(tmp_path):
    first, _ = holder(tmp_path)
    ended(first, signal.SIGKILL)
    left = locks(tmp_path, "results/raw/a", "results/standard/b")
    for name in (".a.abcdefgh.parquet", "runs/.model.12345678", "mlflow/.b.abcdefgh.db"):
        path = tmp_path / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if "model" in name else path.touch()
    with atomic_path(tmp_path / "results" / "mine.csv"), atomic_folder(tmp_path / "results" / "mine"):
        told = run_lock.hold(tmp_path, "results")
        assert len(list((tmp_path / "results").glob(".mine.*"))) == 2, "a living process writes them"
    assert told.endswith(
        f"(process {first.pid}) was killed; 2 unfinished files and its lock removed, this one goes on from there"
    )
    assert not left.exists()
    names = sorted(path.name for path in (tmp_path / "results").rglob("*") if path.is_file())
    assert names == [".b.abcdefgh.db", "mine.csv"]


def test_outputs_of_jobs_that_were_not_finished_are_missed(tmp_path):
    first, _ = holder(tmp_path)
    inner, _ = holder(tmp_path, "results/full")
    ended(first, signal.SIGKILL)
    marks = tmp_path / ".snakemake" / "incomplete"
    long = "results/" + "/".join(["long" * 10] * 6)
    for name in ("results/champion/a", "results/full/champion/a", "results/audit/a.json", long):
        encoded = base64.urlsafe_b64encode(name.encode()).decode()
        mark = marks.joinpath(*[f"@{encoded[:254]}", encoded[254:]] if len(encoded) > 254 else [encoded])
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
        (tmp_path / name).mkdir(parents=True)
    (marks / "no name").touch()
    run_lock.hold(tmp_path, "results")
    assert not (tmp_path / "results" / "champion" / "a").exists()
    assert not (tmp_path / "results" / "audit" / "a.json").exists()
    assert not (tmp_path / long).exists()
    assert (tmp_path / "results" / "full" / "champion" / "a").exists(), "its run goes on"
    assert len([path for path in marks.rglob("*") if path.is_file()]) == 2
    ended(inner)


def test_the_lock_of_a_run_in_a_folder_inside_is_left_alone(tmp_path):
    inner, _ = holder(tmp_path, "results/full")
    outer, _ = holder(tmp_path, "results")
    ended(outer, signal.SIGKILL)
    left = locks(tmp_path, "results/full/raw/a")
    assert "removed" not in run_lock.hold(tmp_path, "results")
    assert left.exists()
    ended(inner)


def test_jobs_that_outlive_their_run_are_waited_for(tmp_path):
    first, _ = holder(tmp_path, "results", "job")
    said = {first.stdout.readline().strip(), first.stdout.readline().strip()}
    (job,) = said - {"True"}
    os.kill(first.pid, signal.SIGKILL)
    first.wait(timeout=30)
    with pytest.raises(UserError, match=rf"jobs of a killed run still do \(process {job}\)"):
        run_lock.hold(tmp_path, "results")
    assert run_lock.state(tmp_path, "results").jobs == (int(job),)
    ended(first)
    os.kill(int(job), signal.SIGKILL)
    deadline = time.monotonic() + 30
    while run_lock.state(tmp_path, "results").jobs and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "was killed" in run_lock.hold(tmp_path, "results")


def test_a_lock_of_another_machine_is_not_cleared(tmp_path):
    first, _ = holder(tmp_path)
    ended(first, signal.SIGKILL)
    (path,) = (tmp_path / ".snakemake" / "runs").glob("*.run")
    owner = json.loads(path.read_text())
    path.write_text(json.dumps({**owner, "host": "elsewhere", "boot": "another"}))
    left = locks(tmp_path, "results/raw/a")
    with pytest.raises(UserError, match=r"a run on elsewhere .*snakemake --unlock"):
        run_lock.hold(tmp_path, "results")
    assert left.exists()
    path.write_text(json.dumps({**owner, "boot": "before the machine was started again"}))
    assert "was killed" in run_lock.hold(tmp_path, "results")
    assert not left.exists()


def test_a_record_that_a_power_loss_cut_is_no_reason_to_clear(tmp_path):
    first, _ = holder(tmp_path)
    ended(first, signal.SIGKILL)
    (path,) = (tmp_path / ".snakemake" / "runs").glob("*.run")
    path.write_text('{"pid": 1')
    left = locks(tmp_path, "results/raw/a")
    assert run_lock.hold(tmp_path, "results") is None
    assert left.exists(), "Snakemake tells how to remove it"


def test_a_job_without_a_run_holds_nothing(tmp_path):
    assert run_lock.take_part({}) is None
    assert run_lock.take_part({run_lock.JOBS_VARIABLE: str(tmp_path / "gone" / "a.jobs")}) is None
