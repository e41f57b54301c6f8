"""Splits of training runs, on generated ladders: bounds, twins, reserved rows, and checks that find a wrong row."""

import numpy as np
import pytest

from perfcast import splits
from perfcast.domains.scaling.datasets import ladder, overtraining
from perfcast.domains.scaling.testing import mlfoundations_scaling, olmo_ladder


@pytest.fixture(scope="module")
def rungs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("olmo_ladder")
    olmo_ladder.write(folder, rows=60, seed=0)
    return ladder.build({"olmo_ladder": folder}, {}).table


@pytest.fixture(scope="module")
def overtrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlfoundations_scaling")
    mlfoundations_scaling.write(folder, rows=60, seed=0)
    return overtraining.build({"mlfoundations_scaling": folder}, {}).table


COUNTS = {
    "published": (20, 2),
    "published_more": (30, 2),
    "larger_model_2b": (24, 5),
    "larger_model_1b": (18, 10),
    "longer_training": (20, 10),
}
"""Runs in training, repetitions included, and in test."""


@pytest.mark.parametrize("name", COUNTS)
def test_runs_are_those_of_the_protocol(rungs, name):
    fold = splits.make(name, rungs, 0)["fold_0"]
    runs = rungs.frame["run"]
    learned, tested = set(runs[fold.isin(["train", "validation"])]), set(runs[fold == "test"])
    assert (len(learned), len(tested)) == COUNTS[name]
    assert not any(run.endswith("rerun") for run in tested)
    assert not {f"{run}-rerun" for run in tested} & learned
    assert any("target" in run for run in tested) == name.startswith("published")


def test_a_target_of_300_times_the_compute_has_runs_of_its_own_training_set(overtrained):
    folds = splits.make("compute_300x", overtrained, 0)
    frame = overtrained.frame
    assert folds.shape[1] > 1
    for fold in folds:
        tested, learned = (frame[folds[fold].isin(parts)] for parts in (["test"], ["train", "validation"]))
        assert tested["model"].nunique() == 1
        assert set(learned["training_set"]) == set(tested["training_set"])
        assert learned["compute"].max() * 300 <= tested["compute"].min() * 1.001


def test_the_check_finds_a_run_of_too_much_compute(overtrained):
    folds = splits.make("compute_300x", overtrained, 0)
    row = overtrained.frame.index[(folds["fold_0"] == "unused") & (overtrained.frame["params"] > 1e8)][0]
    folds.loc[row, "fold_0"] = "train"
    assert any("of the compute" in problem for problem in splits.leaks(overtrained, folds, "compute_300x"))


@pytest.mark.parametrize("name", ["larger_model_1b", "longer_training"])
def test_the_check_finds_a_twin_and_a_row_on_the_wrong_side(rungs, name):
    folds = splits.make(name, rungs, 0)
    row = rungs.frame.index[folds["fold_0"] == "train"][0]
    folds.loc[row, "fold_0"] = "test"
    assert any("wrong side" in problem for problem in splits.leaks(rungs, folds, name))
    folds = splits.make("larger_model_1b", rungs, 0)
    twin = rungs.frame.index[rungs.frame["run"] == "3B-1xC-rerun"][0]
    folds.loc[twin, "fold_0"] = "train"
    assert any("configurations" in problem for problem in splits.leaks(rungs, folds, "larger_model_1b"))


def test_validation_runs_are_larger_than_the_others(rungs):
    fold = splits.make("larger_model_1b", rungs, 0)["fold_0"]
    params = rungs.frame["params"]
    assert params[fold == "validation"].min() > params[fold == "train"].max()
    assert np.isin(["train", "validation", "test", "unused"], fold.unique()).all()
