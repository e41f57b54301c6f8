"""The profile for Slurm puts short jobs together: the default experiment is few entries of a queue."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from small_project import PATIENCE, REPOSITORY, environment, located, small_project

pytestmark = pytest.mark.slow
DEFAULT = yaml.safe_load((REPOSITORY / "params.yaml").read_text())
SHORT = {"standardize", "features", "split", "in_domain", "train", "roll", "leakage", "evaluate", "plots"}


def test_the_default_experiment_is_few_entries_of_the_queue(tmp_path):
    kinds = ("sources", "datasets", "splits", "predictors", "plots")
    project = small_project(tmp_path / "project", **{kind: DEFAULT[kind] for kind in kinds})
    profile = project / "workflow" / "profiles" / "slurm" / "config.yaml"
    settings = yaml.safe_load(profile.read_text())
    del settings["slurm-status-command"]
    counted = settings | {"executor": "counting", "latency-wait": 5, "seconds-between-status-checks": 1}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(counted))
    variables = environment(project, cold=True)
    plugin = str(Path(__file__).parents[1] / "support" / "counting")
    variables["PYTHONPATH"] = os.pathsep.join([variables["PYTHONPATH"], plugin])
    ends = [f"results/{end}/{dataset}" for end in ("plots", "champion") for dataset in DEFAULT["datasets"]]
    command = ["snakemake", *ends, "--profile", str(tmp_path), "--workflow-profile", "none"]
    done = subprocess.run(
        located(command, variables),
        check=False,
        cwd=project,
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    entries = [line.split() for line in (project / "queue.txt").read_text().splitlines()]
    short = [entry for entry in entries if SHORT.issuperset(entry)]
    assert sum(map(len, short)) > 130, "jobs"
    assert len(short) < 40, "entries"
    # what takes long has an entry of its own
    assert sorted(entry for entry in entries if entry not in short) == [["bridge"], *4 * [["champion"]], ["described"]]
