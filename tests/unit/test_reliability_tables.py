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
