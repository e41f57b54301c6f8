"""`perfcast tune` on a miniature project: search, write, train with what was found."""

import json

import pytest
import yaml
from small_project import call, rules_run, small_project

RUN_NAME = ("host_gemm", "random", "random_forest")
RUN = "results/runs/host_gemm/random/random_forest"
FILES = ("--table", "results/features/host_gemm.parquet", "--folds", "results/splits/host_gemm/random.parquet")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose random forest was trained in the full preset, with two candidates and untuned."""
    folder = small_project(
        tmp_path_factory.mktemp("tune") / "project", predictors=["nearest", "random_forest"], preset="full"
    )
    path = folder / "conf" / "predictor" / "random_forest.yaml"
    candidates = "candidates:\n  per_task: {}\n  joint: {min_samples_per_task: 1000000000}\n"
    path.write_text("# kept\n" + path.read_text().replace("n_estimators: 100", "n_estimators: 5") + candidates)
    call(folder, "snakemake", f"{RUN}/validation.json")
    return folder


def tune(project, *options, check=True, cold=False):
    command = ("perfcast", "tune", *RUN_NAME, *FILES, "--out", "results/tuning", *options)
    return call(project, *command, check=check, cold=cold)


def test_tune_writes_values_that_each_fold_trains_with(project):
    untuned = json.loads((project / RUN / "validation.json").read_text())
    assert [set(choice["validation_mape"]) for choice in untuned["choices"]] == [{"per_task", "joint"}]

    output = tune(project, "--trials", "1", cold=True)
    assert output.count("inner MAPE") == 1
    output = tune(project, "--trials", "3", "--write")
    assert [line.split(":")[0] for line in output.splitlines() if "inner MAPE" in line] == [
        f"host_gemm/random/random_forest/fold_0 trial {number} of 3" for number in (2, 3)
    ]

    tuned = yaml.safe_load((project / "results/tuning/host_gemm/random/random_forest.yaml").read_text())
    assert tuned["command"] == (
        "perfcast tune host_gemm random random_forest --table results/features/host_gemm.parquet "
        "--folds results/splits/host_gemm/random.parquet --out results/tuning "
        "--trials 3 --seed 0 --preset full --write"
    )
    fold = tuned["folds"]["fold_0"]
    assert (fold["trials"], fold["failed"]) == (3, 0)
    assert fold["own_inner_mape"] == untuned["choices"][0]["validation_mape"]["per_task"]
    assert fold["inner_mape"] <= fold["own_inner_mape"]
    assert (project / "conf/predictor/random_forest.yaml").read_text().startswith("# kept\n")
    (entry,) = yaml.safe_load((project / "conf/tuned/host_gemm/random_forest.yaml").read_text())["entries"]
    assert entry == {"splits": ["random"], "command": tuned["command"], "folds": [fold["values"]]}

    assert rules_run(call(project, "snakemake", "-n", f"{RUN}/validation.json")) == {"train"}
    call(project, "snakemake", f"{RUN}/validation.json")
    assert json.loads((project / RUN / "validation.json").read_text())["choices"] == [
        {"candidate": "tuned", "validation_mape": {"tuned": fold["inner_mape"]}}
    ]
    used = yaml.safe_load((project / RUN / "config.yaml").read_text())["predictor"]["settings"]
    params = yaml.safe_load((project / "conf/predictor/random_forest.yaml").read_text())["params"]
    assert used == [{"tuned": {**params, **fold["values"]}}]


def test_tune_reports_invalid_options_in_one_line(project):
    tune(project, "--trials", "1")
    for options, words in {
        ("--trials", "0"): "--trials must be a whole number from 1 to",
        ("--seed", "1"): "changed since: seed",
    }.items():
        output = tune(project, *options, check=False).strip()
        assert words in output
        assert "\n" not in output
