"""The tables of docs/reliability.md: what `--reliability` writes, and what the page makes of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

SAMPLE = """
import pytest

@pytest.fixture
def broken():
    raise OSError("no room")

@pytest.mark.reliability("a full disk", cases=4)
def test_passes(): pass

@pytest.mark.reliability("a full disk")
@pytest.mark.parametrize("number", [1, 2])
def test_fails(number): assert number == 1

@pytest.mark.reliability("a full disk")
def test_fails_at_once(broken): pass

@pytest.mark.reliability("a slow client")
def test_is_left_out(): pytest.skip("none here")

def test_of_no_fault(): pass
"""


@pytest.mark.parametrize("processes", [[], ["-n", "1"]], ids=["alone", "in other processes"])
def test_cases_are_counted_by_fault_and_outcome(tmp_path: Path, processes: list[str]) -> None:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    (tmp_path / "conftest.py").write_text((PROJECT / "tests" / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--reliability", "made/faults.csv"]
    done = subprocess.run([*command, *processes], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert "2 failed" not in done.stdout or done.returncode == 1, done.stdout
    written = (tmp_path / "made" / "faults.csv").read_text()
    assert written == "fault,cases,failed,skipped\na full disk,7,2,0\na slow client,1,0,1\n"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(PROJECT / "docs" / "_site"))
    import reliability_tables

    return reliability_tables


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    folder = tmp_path / "results" / "reliability"
    folder.mkdir(parents=True)
    before = "fault,cases,failed,lost,silent,tracebacks\na full disk,5,1,1,0,0\na kill,1500,0,0,0,0\n"
    (folder / "before.csv").write_text(before)
    (folder / "mutants.csv").write_text("area,possible,mutants,killed\nfiles,120,50,45\n")
    return tmp_path / "conf"


def test_faults_have_cases_before_and_now(site, conf: Path) -> None:
    assert "| a full disk | 5 | 1 | 0 | 0 | 1 |  |  |" in site.fault_table(conf).splitlines()
    folder = conf.parent / "results" / "reliability"
    (folder / "attack.csv").write_text("fault,cases,failed,skipped\na full disk,7,2,1\nnew,3,0,0\n")
    (folder / "faults.csv").write_text("fault,cases,failed,skipped\na full disk,4,0,0\n")
    lines = site.fault_table(conf).splitlines()
    assert lines[2:] == [
        "| a full disk | 5 | 1 | 0 | 0 | 1 | 10 | 2 |",
        "| a kill | 1,500 | 0 | 0 | 0 | 0 |  |  |",
        "| new |  |  |  |  |  | 3 | 0 |",
        "| **all** | 1,505 | 1 | 0 | 0 | 1 | 13 | 2 |",
    ]


def test_mutation_scores_are_beside_those_before(site, conf: Path) -> None:
    assert "| files | 45 of 50 (90 %) |" in site.mutant_table(conf).splitlines()
    before = conf.parent / "results" / "reliability" / "mutants_before.csv"
    before.write_text("area,possible,mutants,killed\nother,9,9,3\n")
    assert "| files | not run | 45 of 50 (90 %) |" in site.mutant_table(conf).splitlines()
