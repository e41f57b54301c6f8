"""Checks before a run: each is fine, needs care or is broken, with a remedy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfcast.cli.main import main
from perfcast.config.conf_files import read_yaml
from perfcast.config.experiment_params import Params, validate
from perfcast.ops import doctor
from perfcast.ops.doctor import BROKEN, CARE, FINE, ProjectPlace, examine
from perfcast.ops.run_lock import hold_results
from perfcast.sources.locations import SourcePlaces
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
    return ProjectPlace(project, SourcePlaces(project / "cache", (), project / "data" / "embedded"), params)


def single(findings):
    (finding,) = findings
    return finding


def test_software_compares_packages_with_the_lock(project, monkeypatch):
    lock = project / "requirements.lock"
    there = doctor.version("numpy")
    lock.write_text(f"numpy=={there}\n")
    assert doctor.check_software(make_place(project))[1].state == FINE
    monkeypatch.setattr(doctor, "version", lambda name: f"{there}+cpu")
    assert doctor.check_software(make_place(project))[1].state == FINE, "a local label is the same release"
    monkeypatch.undo()
    lock.write_text("numpy==0.1\n")
    finding = doctor.check_software(make_place(project))[1]
    assert (finding.state, f"numpy {there}, locked 0.1" in finding.fact) == (CARE, True)
    assert "rm -f .venv/.ready && make setup" in finding.remedy, "make setup alone is up to date"
    lock.write_text("no-such-package==1.0\nnumpy==0.1\n")
    finding = doctor.check_software(make_place(project))[1]
    assert (finding.state, finding.fact) == (BROKEN, "missing: no-such-package")
    lock.unlink()
    python, packages = doctor.check_software(make_place(project))[:2]
    assert (python.state, packages.state) == (FINE, CARE)
    monkeypatch.setattr(doctor, "OLDEST", (9, 0))
    python = doctor.check_software(make_place(project))[0]
    assert (python.state, python.remedy) == (BROKEN, "install Python 9.0 or newer")


def test_check_configuration_names_the_wrong_key(project):
    assert single(doctor.check_configuration(make_place(project))).state == FINE
    options = make_place(project)
    text = (project / "params.yaml").read_text().replace("preset: quick", "preset: quik")
    (project / "params.yaml").write_text(text)
    finding = single(doctor.check_configuration(options))
    assert finding.state == BROKEN
    assert "preset" in finding.fact


def test_sources_are_here_to_be_fetched_or_missed(project):
    (here,) = doctor.check_data_sources(make_place(project))
    assert (here.state, "spec_cpu2017" in here.fact) == (FINE, True)
    shutil.rmtree(project / "data" / "embedded" / "spec_cpu2017")
    here, absent = doctor.check_data_sources(make_place(project))
    assert (here.state, "spec_cpu2017" in here.fact) == (FINE, False)
    assert (absent.state, absent.fact) == (CARE, "to be downloaded: spec_cpu2017")
    assert "left out" in doctor.check_data_sources(make_place(project, network=False))[1].fact
    finding = doctor.check_data_sources(make_place(project, network=False, strict=True))[1]
    assert (finding.state, "the run stops" in finding.fact) == (BROKEN, True)


def test_too_little_room_is_told(project, monkeypatch):
    assert {finding.state for finding in doctor.check_free_space(make_place(project))} == {FINE}
    monkeypatch.setattr(doctor, "DISK", 1 << 60)
    monkeypatch.setattr(doctor, "MEMORY", 1 << 60)
    findings = {finding.what: finding for finding in doctor.check_free_space(make_place(project))}
    assert {name: findings[name].state for name in findings} == {"disk": BROKEN, "memory": CARE, "cores": FINE}
    assert "make room" in findings["disk"].remedy
    monkeypatch.undo()
    monkeypatch.setattr(os, "access", lambda folder, mode: False)
    assert doctor.check_free_space(make_place(project))[0].fact == "project cannot be written to"


def test_a_run_that_goes_on_is_told(project):
    assert doctor.check_leftovers(make_place(project))[0].state == FINE
    handle = hold_results(project / "results")
    finding = doctor.check_leftovers(make_place(project))[0]
    os.close(handle)
    assert (finding.state, finding.remedy) == (CARE, "wait until it ends")
    assert f"writes to {project / 'results'}" in finding.fact
    assert doctor.check_leftovers(make_place(project))[0].state == FINE


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
        assert doctor.check_leftovers(make_place(project))[1].state == FINE, "its process goes on"
    subprocess.run([sys.executable, "-c", KILLED, str(results)], check=False)
    finding = doctor.check_leftovers(make_place(project))[1]
    assert (finding.state, finding.fact.split()[0]) == (CARE, "3")
    for path in results.iterdir():
        remove_path(path)
    (results / ".gitignore").touch()
    (results / ".hidden").mkdir()
    assert doctor.check_leftovers(make_place(project))[1].state == FINE


def test_check_tracking_says_whether_the_store_answers(project):
    options = make_place(project)
    assert single(doctor.check_tracking(options)).fact.startswith("no store yet")
    folder = project / "results" / "mlflow"
    folder.mkdir(parents=True)
    (folder / "mlflow.db").write_bytes(b"no store")
    finding = single(doctor.check_tracking(options))
    assert (finding.state, "\n" in finding.fact) == (CARE, False)
    assert "a run keeps its results" in finding.fact, "a store that fails stops no run"


def test_doctor_command_fails_on_a_broken_check(project, capsys, tmp_path):
    assert main(["doctor", "--project", str(project)]) == 0
    assert "A run can start." in capsys.readouterr().out
    names = [finding.what for finding in examine(make_place(project))]
    assert names[:3] == ["Python", "packages", "configuration"] and names[-1] == "tracking"
    (project / "params.yaml").write_text("preset: quick\n")
    assert main(["doctor", "--project", str(project), "--json"]) == 1
    entries = json.loads(capsys.readouterr().out)
    assert [entry["state"] for entry in entries if entry["what"] == "configuration"] == [BROKEN]
    assert main(["doctor", "--project", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
