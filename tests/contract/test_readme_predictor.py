"""The predictor of README.md passes the contract of predictors and is planned by Snakemake, also as a plain class."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from small_project import call

PROJECT = Path(__file__).parents[2]
COPIED = ("src", "conf", "data", "docs/_site", "tests/contract", "workflow")
PLAIN_CLASS = '''
import numpy as np

from perfcast.predictors.predictor import Predictor


class MeanScore(Predictor):
    """Mean of the training scores, by target."""

    def __init__(self, *, shift: float = 0.0) -> None:
        self.shift = shift

    def _fit(self, X, log_y, validation):
        self.means_ = np.nanmean(log_y, axis=0).tolist()

    def _predict(self, X):
        return np.tile(self.means_, (len(X), 1)) + self.shift
'''


@pytest.mark.slow
def test_the_predictor_of_the_readme_passes_the_contract_and_is_planned(tmp_path: Path) -> None:
    section = (PROJECT / "README.md").read_text().partition("## Add a predictor")[2].partition("\n## ")[0]
    for folder in COPIED:
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for file in ("pyproject.toml", "params.yaml", "Snakefile"):
        shutil.copy(PROJECT / file, tmp_path / file)
    new, check, run = map(shlex.split, re.findall(r"```bash\n(.*?)```", section, re.DOTALL)[0].splitlines())
    call(tmp_path, *new, cold=True)
    passed = call(tmp_path, sys.executable, *check[1:], "-p", "no:cacheprovider", cold=True)
    count = re.search(r"(\d+) passed", passed)
    assert count and int(count[1]) >= 20
    plan = ["snakemake", "-n", "--configfile", f"conf/experiment/{run[-1].partition('=')[2]}.yaml"]
    assert "predictor=mean_score" in call(tmp_path, *plan, cold=True)
    (tmp_path / "src/perfcast/predictors/mean_score.py").write_text(PLAIN_CLASS)
    conf = tmp_path / "conf/predictor/mean_score.yaml"
    conf.write_text(conf.read_text().replace("params: {}", "params: {shift: 0.1}"))
    assert "predictor=mean_score" in call(tmp_path, *plan, cold=True)
    conf.write_text(conf.read_text().replace("shift", "shfit"))
    refused = call(tmp_path, *plan, check=False, cold=True)
    assert "did you mean 'shift'" in refused
    assert "Traceback" not in refused
