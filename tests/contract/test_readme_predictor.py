"""The predictor of README.md, added as written, passes the contract of predictors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_predictor_of_the_readme_passes_the_contract(tmp_path: Path) -> None:
    section = (PROJECT / "README.md").read_text().partition("## Add a predictor")[2].partition("\n## ")[0]
    for folder in ("src", "conf", "tests/contract"):
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.egg-info"))
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    blocks = re.findall(r"```(?:python|yaml)\n(.*?)```", section, re.DOTALL)
    command = re.search(r"`python (-m pytest .*)`", section)
    assert len(blocks) == 2 and command
    for block in blocks:
        text = textwrap.dedent(f"{block.rstrip()}\n")
        (tmp_path / text.split(maxsplit=2)[1]).write_text(text)  # the first line is a comment with the path
    done = subprocess.run(
        [sys.executable, *command[1].split(), "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) >= 20
