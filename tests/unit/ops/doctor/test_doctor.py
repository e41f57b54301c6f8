"""Checks before a run: each is fine, needs care or is broken, with a remedy."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from perfcast.cli.main import main
from perfcast.config.conf_files import read_yaml
from perfcast.config.experiment_params import Params, validate
from perfcast.ops.doctor import (
    BROKEN,
    CARE,
    FINE,
    ProjectPlace,
    configuration,
    data_sources,
    examine,
    free_space,
    leftovers,
    software,
    tracking_store,
)
from perfcast.tracking import Store, start_run
from perfcast.utils.io import atomic_path, remove_path

PROJECT = Path(__file__).parents[4]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copytree(PROJECT / "conf", folder / "conf")
    shutil.copytree(PROJECT / "data", folder / "data")
    for name in ("params.yaml", "requirements.lock"):
        shutil.copy(PROJECT / name, folder)
    return folder


def make_place(project, **changed):
    params: Params = validate(read_yaml(project / "params.yaml"), project / "conf").model_copy(update=changed)
    return ProjectPlace(project, project / "cache", (), project / "data" / "embedded", params)


def single(findings):
    (finding,) = findings
    return finding


def test_software_compares_packages_with_the_lock(project, monkeypatch):
    lock = project / "requirements.lock"
    there = software.version("numpy")
    lock.write_text(f"numpy=={there}\n")
    assert software.check(make_place(project))[1].state == FINE
    monkeypatch.setattr(software, "version", lambda name: f"{there}+cpu")
    assert software.check(make_place(project))[1].state == FINE, "a local label is the same release"
    monkeypatch.undo()
    lock.write_text("numpy==0.1\n")
    finding = software.check(make_place(project))[1]
    assert (finding.state, f"numpy {there}, locked 0.1" in finding.found) == (CARE, True)
    lock.write_text("no-such-package==1.0\nnumpy==0.1\n")
    finding = software.check(make_place(project))[1]
    assert (finding.state, finding.found) == (BROKEN, "missing: no-such-package")
    lock.unlink()
    assert software.check(make_place(project))[1].state == CARE


def test_software_reports_an_old_python(project, monkeypatch):
    assert software.check(make_place(project))[0].state == FINE
    monkeypatch.setattr(software, "OLDEST", (9, 0))
    assert (software.check(make_place(project))[0].state, software.check(make_place(project))[0].remedy) == (
        BROKEN,
        "install Python 9.0 or newer",
    )


def test_configuration_reports_the_invalid_key(project):
    assert single(configuration.check(make_place(project))).state == FINE
    options = make_place(project)
    text = (project / "params.yaml").read_text().replace("preset: quick", "preset: quik")
    (project / "params.yaml").write_text(text)
    finding = single(configuration.check(options))
    assert finding.state == BROKEN
    assert "preset" in finding.found


def test_data_sources_reports_locations(project):
    here, absent = data_sources.check(make_place(project))
    assert (here.state, here.found) == (FINE, "on this machine: host_gemm")
    assert absent.state == CARE
    assert absent.found.startswith("to be downloaded: spec_cpu2017,")
    assert "left out" in data_sources.check(make_place(project, network=False))[1].found
    finding = data_sources.check(make_place(project, network=False, strict=True))[1]
    assert (finding.state, "the run stops" in finding.found) == (BROKEN, True)


def test_free_space_reports_shortage(project, monkeypatch):
    assert {finding.state for finding in free_space.check(make_place(project))} == {FINE}
    monkeypatch.setattr(free_space, "DISK", 1 << 60)
    monkeypatch.setattr(free_space, "MEMORY", 1 << 60)
    findings = {finding.what: finding for finding in free_space.check(make_place(project))}
    assert {name: findings[name].state for name in findings} == {"disk": BROKEN, "memory": CARE, "cores": FINE}
    assert "make room" in findings["disk"].remedy
    monkeypatch.undo()
    monkeypatch.setattr(os, "access", lambda folder, mode: False)
    assert free_space.check(make_place(project))[0].found == "project cannot be written to"


def test_available_memory_reads_meminfo(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nMemAvailable:    3 kB\n")
    assert free_space.available_memory(tmp_path / "meminfo") == 3072
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\n")
    assert free_space.available_memory(tmp_path / "meminfo") is None
    assert free_space.available_memory(tmp_path / "none") is None


def test_leftovers_distinguishes_stale_and_active_locks(project):
    assert leftovers.check(make_place(project))[0].state == FINE
    locks = project / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.output.lock").touch()
    finding = leftovers.check(make_place(project))[0]
    assert (finding.state, finding.remedy) == (CARE, "run snakemake --unlock, then start again")
    script = project / "snakemake"
    script.write_text("import sys; print('up', flush=True); sys.stdin.read()")
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"up\n"
        finding = leftovers.check(make_place(project))[0]
        running.stdin.close()
    assert f"process {running.pid}" in finding.found
    assert leftovers.runs_in(project) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from perfcast.utils.io import atomic_folder, atomic_path
results = Path(sys.argv[1])
with atomic_path(results / "table.parquet"), atomic_path(results / "metrics.tar.gz"), atomic_folder(results / "a.b"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_leftovers_counts_partial_files(project):
    results = project / "results"
    with atomic_path(results / "table.parquet"):
        assert leftovers.check(make_place(project))[1].state == FINE, "its process goes on"
    subprocess.run([sys.executable, "-c", KILLED, str(results)], check=False)
    finding = leftovers.check(make_place(project))[1]
    assert (finding.state, finding.found.split()[0]) == (CARE, "3")
    for path in results.iterdir():
        remove_path(path)
    (results / ".gitignore").touch()
    (results / ".hidden").mkdir()
    assert leftovers.check(make_place(project))[1].state == FINE


def test_tracking_store_counts_abandoned_runs(project):
    options = make_place(project)
    assert single(tracking_store.check(options)).found.startswith("no store yet")
    store = Store(
        f"sqlite:///{project / 'results' / 'mlflow' / 'mlflow.db'}", project / "results/mlflow/artifacts", "x"
    )
    with start_run(store, "a", "run", {}):
        assert single(tracking_store.check(options)).state == FINE, "this process is there"
        with sqlite3.connect(project / "results" / "mlflow" / "mlflow.db") as base:
            base.execute("update tags set value = replace(value, ?, ?)", (f":{os.getpid()}:", ":999999999:"))
        finding = single(tracking_store.check(options))
    assert (finding.state, finding.found.split()[0]) == (CARE, "1")
    (project / "results" / "mlflow" / "mlflow.db").write_bytes(b"no store")
    finding = single(tracking_store.check(options))
    assert (finding.state, "\n" in finding.found) == (BROKEN, False)


def test_examine_runs_checks_in_order(project):
    names = [finding.what for finding in examine(make_place(project))]
    assert names[:3] == ["Python", "packages", "configuration"]
    assert names[-1] == "tracking"


def test_doctor_command_fails_on_a_broken_check(project, capsys, tmp_path):
    assert main(["doctor", "--project", str(project)]) == 0
    assert "A run can start." in capsys.readouterr().out
    (project / "params.yaml").write_text("preset: quick\n")
    assert main(["doctor", "--project", str(project), "--json"]) == 1
    entries = json.loads(capsys.readouterr().out)
    assert [entry["state"] for entry in entries if entry["what"] == "configuration"] == [BROKEN]
    assert main(["doctor", "--project", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
