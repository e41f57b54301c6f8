"""The files that `perfcast new` writes pass the contract tests as they are."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from own_table import own_table
from small_project import REPOSITORY, call

TESTS = [
    f"tests/contract/test_{name}.py"
    for name in ("predictors", "datasets", "domains", "experiments", "sources", "splits")
]


@pytest.mark.slow
def test_new_files_pass_the_contract(tmp_path: Path) -> None:
    for part in ("src", "conf", "tests/contract", "tests/support", "docs/_site", "data/embedded"):
        shutil.copytree(REPOSITORY / part, tmp_path / part, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for file in ("pyproject.toml", "params.yaml", "tests/conftest.py"):
        shutil.copy(REPOSITORY / file, tmp_path / file)
    own_table().to_csv(tmp_path / "mine.csv", index=False)
    call(tmp_path, "perfcast", "new", "predictor", "mean_score", cold=True)
    call(tmp_path, "perfcast", "new", "dataset", "mine.csv", cold=True)
    call(tmp_path, "perfcast", "new", "domain", "bikes", cold=True)
    install = ("install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", "src")
    call(tmp_path, sys.executable, "-m", "pip", *install, "./bikes", cold=True)
    chosen = ("-vv", "-k", "mine or mean_score or bikes or test_every_", "-m", "not slow", "-p", "no:cacheprovider")
    output = call(tmp_path, sys.executable, "-m", "pytest", *TESTS, *chosen, cold=True)
    assert all(
        re.search(rf"\[{name}\b.*PASSED", output) for name in ("mean_score", "mine", "bikes_runs", "unseen_bikes")
    )
    call(tmp_path, "ruff", "check", "src/perfcast/predictors/mean_score.py", "bikes")
    call(tmp_path, "ruff", "format", "--check", "src/perfcast/predictors/mean_score.py", "bikes")
