"""A domain of another distribution: installed, run by Snakemake, asked by `perfcast predict`, shown and recorded."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from small_project import REPOSITORY, call, small_project


@pytest.mark.slow
def test_a_domain_of_another_distribution_is_like_those_of_perfcast(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    example = shutil.copytree(REPOSITORY / "examples" / "a_domain", tmp_path / "a_domain")
    assert sum(len(path.read_bytes().splitlines()) for path in example.rglob("*.*") if path.suffix != ".pyc") <= 200
    project = small_project(tmp_path / "project", tracking=True)
    install = ("install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", "src")
    call(project, sys.executable, "-m", "pip", *install, str(example), cold=True)
    experiment = call(project, "perfcast", "config", "--path", "experiment/coffee", cold=True).strip()
    call(project, "snakemake", "--configfile", experiment, cold=True)
    cup = ("--dataset", "coffee_brews", "--results", "results/coffee", "--dose", "18", "--grind", "300", "--json")
    answer = json.loads(call(project, "perfcast", "predict", *cup, cold=True).partition("\n2 estimates")[0])
    assert {each["task"] for each in answer["machines"][0]["estimates"]} == {"espresso", "lungo"}
    assert "unseen espresso machines" in (project / "results/coffee/report.html").read_text()
    client = MlflowClient(f"sqlite:///{project}/results/mlflow/mlflow.db")
    experiment = client.get_experiment_by_name("perfcast/coffee_brews")
    runs = {run.info.run_name for run in client.search_runs([experiment.experiment_id])}
    assert {"nearest-unseen_machine", "ridge-unseen_machine", "champion: ridge"} <= runs
