"""The predictor of README.md, added as written, passes the contract of predictors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_predictor_of_the_readme_passes_the_contract(tmp_path: Path) -> None:
    section = (PROJECT / "README.md").read_text().partition("## Add a predictor")[2].partition("\n## ")[0]
    for folder in ("src", "conf", "tests/contract"):
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    module = re.search(r"`(src/perfcast/predictors/\w+\.py)`", section)
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    conf = re.search(r"`(conf/predictor/\w+\.yaml)`: `(.*)`", section)
    command = re.search(r"`python (-m pytest .*)`", section)
    assert module and code and conf and command
    (tmp_path / module[1]).write_text(re.sub(r"^ {3}", "", code[1], flags=re.MULTILINE))
    (tmp_path / conf[1]).write_text(f"{conf[2]}\n")
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
    assert passed and int(passed[1]) > 20
