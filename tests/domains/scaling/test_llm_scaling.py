"""Tables of trained language models, and their splits: accounting, defects, chance, twins."""

import numpy as np
import pytest

from perfcast import splits
from perfcast.domains.scaling.datasets import ladder, overtraining
from perfcast.domains.scaling.sources.mlfoundations_scaling import list_models
from perfcast.domains.scaling.testing import mlfoundations_scaling, olmo_ladder
from perfcast.utils.errors import UserError


@pytest.fixture(scope="module")
def rungs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("olmo_ladder")
    olmo_ladder.write(folder, rows=60, seed=0)
    return ladder.build({"olmo_ladder": folder}, {})


@pytest.fixture(scope="module")
def overtrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlfoundations_scaling")
    mlfoundations_scaling.write(folder, rows=60, seed=0)
    return overtraining.build({"mlfoundations_scaling": folder}, {})


def test_the_ladder_keeps_the_last_evaluation_of_every_run(rungs):
    # 25 runs, 5 repetitions and 2 targets; 4 evaluations of each but one of 7B, and 27 tasks
    assert len(rungs.table.frame) == 32 * 27
    assert rungs.merged == {"earlier_checkpoint": (31 * 3) * 27}
    assert rungs.rows_in == (31 * 4 + 1) * 27 + 5
    defects = [
        "above_one",
        "not_a_number",
        "not_positive",
        "repeated_step",
        "wrong_field_count",
    ]
    assert sorted(rungs.rejected["reason"]) == defects


def test_the_authors_train_on_16_runs_of_four_sizes_and_test_two_models(rungs):
    frame = rungs.table.frame
    runs = frame.drop_duplicates("run")
    assert set(runs.loc[runs["published_subset"] == "test", "model_size"]) == {
        "7B",
        "13B",
    }
    learned = runs[runs["published_subset"].isin(["train", "validation"])]
    assert learned["configuration"].nunique() == 16
    assert set(learned.loc[learned["published_subset"] == "validation", "model_size"]) == {"1B"}
    np.testing.assert_allclose(frame["compute"], 6 * frame["params"] * frame["tokens"] / 1e18)
    accuracy = frame["task_kind"] == "accuracy"
    assert set(frame.loc[accuracy, "loss_task"]) <= set(frame["task"]), "of the same run"
    assert (frame["loss_task"].notna() == accuracy).all()


def test_over_trained_models_are_counted_defects_rejected_and_chance_excluded(
    overtrained,
):
    assert overtrained.rows_in == 48 * 6 + 1  # one unknown task
    assert sorted(overtrained.rejected["reason"]) == [
        "above_one",
        "not_positive",
        "unknown_task",
    ]
    assert overtrained.quality["models"] == 48
    frame = overtrained.table.frame
    zero = frame[(frame["model"] == "c4_original-d=96_l=8_h=4-0.5") & (frame["task"] == "jeopardy_accuracy")]
    assert (zero["value"].item(), zero["at_chance"].item()) == (
        pytest.approx(0.5 / 2117),
        1,
    )
    piqa = frame[frame["task"] == "piqa_accuracy"]
    limit = 0.5 + 2 * np.sqrt(0.25 / 1838)
    np.testing.assert_array_equal(piqa["at_chance"] == 1, piqa["value"] <= limit)
    assert (frame.loc[frame["task_kind"] == "loss", "at_chance"] == 0).all()


def test_a_model_without_its_evaluation_is_refused(tmp_path):
    mlfoundations_scaling.write(tmp_path, rows=60, seed=0)
    name = list_models(tmp_path)[0]
    (tmp_path / f"evaluation_{name}_heavy.json").unlink()
    with pytest.raises(UserError, match=f"evaluation_{name}_heavy.json must exist"):
        overtraining.build({"mlfoundations_scaling": tmp_path}, {})


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
    fold = splits.make(name, rungs.table, 0)["fold_0"]
    runs = rungs.table.frame["run"]
    params = rungs.table.frame["params"]
    learned = set(runs[fold.isin(["train", "validation"])])
    tested = set(runs[fold == "test"])
    assert (len(learned), len(tested)) == COUNTS[name]
    assert not any(run.endswith("rerun") for run in tested)
    assert not {f"{run}-rerun" for run in tested} & learned
    assert any("target" in run for run in tested) == name.startswith("published")
    if name == "larger_model_1b":
        assert params[fold == "validation"].min() > params[fold == "train"].max()


def test_a_target_of_300_times_the_compute_has_runs_of_its_own_training_set(
    overtrained,
):
    frame = overtrained.table.frame
    folds = splits.make("compute_300x", overtrained.table, 0)
    assert folds.shape[1] > 1
    for fold in folds:
        tested, learned = (frame[folds[fold].isin(parts)] for parts in (["test"], ["train", "validation"]))
        assert tested["model"].nunique() == 1
        assert set(learned["training_set"]) == set(tested["training_set"])
        assert learned["compute"].max() * 300 <= tested["compute"].min() * 1.001
    folds.loc[
        frame.index[(folds["fold_0"] == "unused") & (frame["params"] > 1e8)][0],
        "fold_0",
    ] = "train"
    assert any("of the compute" in problem for problem in splits.leaks(overtrained.table, folds, "compute_300x"))


def test_the_check_finds_a_twin_and_a_row_on_the_wrong_side(rungs):
    folds = splits.make("larger_model_1b", rungs.table, 0)
    row = rungs.table.frame.index[folds["fold_0"] == "train"][0]
    folds.loc[row, "fold_0"] = "test"
    assert any("wrong side" in problem for problem in splits.leaks(rungs.table, folds, "larger_model_1b"))
    folds = splits.make("larger_model_1b", rungs.table, 0)
    twin = rungs.table.frame.index[rungs.table.frame["run"] == "3B-1xC-rerun"][0]
    folds.loc[twin, "fold_0"] = "train"
    assert any("configurations" in problem for problem in splits.leaks(rungs.table, folds, "larger_model_1b"))
