"""Tuning: every fold chooses on its inner rows, and an interrupted study continues."""

import dataclasses
from contextlib import nullcontext

import numpy as np
import optuna
import pandas as pd
import pytest
import yaml
from tuned_split import CONF, NAME, PART, make_table, search

from perfcast.config.predictor_conf import read_predictor
from perfcast.experiment import selection, tuning
from perfcast.experiment.tuning import check_unseen, write_tuned
from perfcast.utils.errors import UserError
from perfcast.utils.io import write_text

OWN = {"min_samples_leaf": 7, "max_features": 0.5}


@pytest.fixture(scope="module")
def table():
    return make_table()


class Study:
    """Study in its own file, with the messages it reported."""

    def __init__(self, folder, table, part=PART):
        self.path, self.table, self.part, self.messages = folder / "study.db", table, part, []

    def go_on(self, trials, *, timeout=None, fold=0, **how):
        tuning_search = search(**how)
        store = tuning.open_storage(self.path.with_suffix(""))
        options = {"trials": trials, "timeout": timeout, "report": self.messages.append}
        tuning.tune(tuning_search, store, self.table, {fold: self.part}, **options)
        return tuning.outcome(tuning_search, store, fold, trials)

    def stored(self, fold=0):
        return optuna.load_study(study_name=f"{NAME}/fold_{fold}", storage=f"sqlite:///{self.path}").trials

    @property
    def trials(self):
        return [(trial.state.name, trial.params, trial.value) for trial in self.stored()]


@pytest.fixture
def study(tmp_path, table):
    return Study(tmp_path, table)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, table):
    """One uninterrupted study of thirteen trials, beyond the ten random ones; tests only read it."""
    study = Study(tmp_path_factory.mktemp("whole"), table)
    return study.go_on(13), study.trials


def test_tune_starts_with_the_configured_values(whole, table):
    outcome, trials = whole
    assert [state for state, _, _ in trials] == ["COMPLETE"] * 13
    assert trials[0][1] == OWN

    def make(seed):
        return selection.make_predictor(CONF["_target_"], CONF["params"], seed)

    assert trials[0][2] == selection.inner_error(table, PART, make, 0, None) == outcome.own_inner_mape
    assert outcome.inner_mape == min(value for _, _, value in trials) < outcome.own_inner_mape
    assert outcome.values == next(values for _, values, value in trials if value == outcome.inner_mape)
    assert (outcome.trials, outcome.failed) == (13, 0)


def test_tune_resumes_a_study_without_repetition(study, whole, tmp_path, table):
    study.go_on(1)
    study.go_on(11)
    assert len(study.messages) == 11
    assert study.go_on(13) == whole[0]
    assert study.trials == whole[1]
    assert len({tuple(values.values()) for _, values, _ in study.trials}) == 13
    assert [line.split(":")[0].split()[-3] for line in study.messages] == [str(number) for number in range(1, 14)]
    fewer = study.go_on(3)
    assert len(study.messages) == 13
    (tmp_path / "short").mkdir()
    assert fewer == Study(tmp_path / "short", table).go_on(3), "later trials do not count"


@pytest.mark.parametrize("left", [0, 11])
def test_tune_repeats_a_killed_trial(study, whole, monkeypatch, left):
    if left:
        study.go_on(left)
    with monkeypatch.context() as patched:
        patched.setattr(selection, "inner_error", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            study.go_on(13)
    assert len(study.trials) == left
    assert study.go_on(13) == whole[0]
    assert study.trials == whole[1]


def test_tune_ignores_scores_of_test_rows(study, whole, table):
    frame = table.frame.copy()
    frame.loc[PART == "test", "score"] = np.resize([np.nan, 1e12, -1.0], (PART == "test").sum())
    study.table = dataclasses.replace(table, frame=frame)
    assert study.go_on(13) == whole[0]
    assert study.trials == whole[1]


def test_tune_is_seeded_by_fold_and_seed(study, whole):
    assert study.go_on(2, fold=1).trials == 2
    study.go_on(2)
    first, second = study.stored(0), study.stored(1)
    assert first[0].params == second[0].params
    assert first[1].params == whole[1][1][1] != second[1].params
    assert tuning.outcome(search(), tuning.open_storage(study.path.with_suffix("")), 2, 2) is None


def test_tune_refuses_a_study_of_another_search(study):
    study.go_on(1)
    before = study.trials
    for what, changes in {
        "space": {"space": {**CONF["space"], "min_samples_leaf": {"low": 1, "high": 21, "log": True}}},
        "params": {"params": {**CONF["params"], "n_estimators": 3}},
        "seed": {"seed": 1},
        "table": {"origin": ("table", "other")},
    }.items():
        with pytest.raises(UserError, match=f"changed since: {what};") as raised:
            study.go_on(2, **changes)
        assert "\n" not in str(raised.value)
    assert study.trials == before


def test_tune_records_failing_trials_and_continues(study, monkeypatch):
    real, answers = selection.inner_error, iter(["mistake", "nan", "fine", "fine"])

    def sometimes(*arguments):
        answer = next(answers)
        if answer == "mistake":
            raise UserError("width must be even", "found 3")
        return float("nan") if answer == "nan" else real(*arguments)

    monkeypatch.setattr(selection, "inner_error", sometimes)
    outcome = study.go_on(4)
    assert [state for state, _, _ in study.trials] == ["FAIL", "FAIL", "COMPLETE", "COMPLETE"]
    assert (outcome.own_inner_mape, outcome.trials, outcome.failed) == (None, 4, 2)
    assert "width must be even, but found 3" in study.messages[0]
    assert study.stored()[0].user_attrs["reason"] == "width must be even, but found 3"
    assert len(study.messages) == 4


def test_failed_trials_alone_raise_the_first_reason_and_unexpected_exceptions_pass(study, monkeypatch):
    monkeypatch.setattr(selection, "inner_error", lambda *_: float("inf"))
    with pytest.raises(UserError, match="all 2 failed, the first because the inner MAPE is inf"):
        study.go_on(2)
    monkeypatch.setattr(selection, "inner_error", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        study.go_on(3)


def test_tune_needs_inner_rows(tmp_path, table):
    with pytest.raises(UserError, match="inner validation rows"):
        Study(tmp_path, table, np.where(PART == "validation", "train", PART)).go_on(1)


def test_tune_starts_no_trial_after_the_timeout(study, monkeypatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(tuning.time, "monotonic", lambda: float(next(clock)))
    assert 0 < study.go_on(13, timeout=45).trials < 13


def test_quick_preset_searches_only_free_hyperparameters():
    quick = search("quick")
    assert set(quick.space) == {"min_samples_leaf"}
    assert quick.arguments == {"n_estimators": 1, "min_samples_leaf": 7, "max_features": 0.9}
    assert quick.default_values == {"min_samples_leaf": 7}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"space": {}}, "random_forest has none"),
        ({"space": {"leafs": {"low": 1, "high": 2}}}, "leafs"),
        ({"params": {"min_samples_leaf": 21}}, "21 is outside"),
        ({"quick": OWN, "preset": "quick"}, "quick preset"),
    ],
)
def test_invalid_search_space_gets_one_line(changes, words):
    with pytest.raises(UserError, match=words) as raised:
        search(**changes)
    assert "\n" not in str(raised.value)


def test_write_tuned_keeps_types_and_merges_splits_with_equal_values(tmp_path):
    conf = {key: CONF[key] for key in ("_target_", "stochastic")}
    text = yaml.safe_dump({**conf, "params": {"n_estimators": 2}, "quick": {"n_estimators": 1}})
    write_text(tmp_path / "predictor" / "random_forest.yaml", text)

    def write(dataset, names, command, *folds):
        path = write_tuned(tmp_path, dataset, "random_forest", names, command=command, folds=list(folds))
        return path, read_predictor(tmp_path, "random_forest")

    names, command = ("min_samples_leaf", "bootstrap", "tiny"), "perfcast tune --table 'a: b #.parquet'"
    folds = [dict(zip(names, values, strict=True)) for values in ((2, True, 1e-5), (1, None, 0.1))]
    path, conf = write("demo", ["random", "later", "last"], command, *folds)
    assert path == tmp_path / "tuned" / "demo" / "random_forest.yaml"
    settings = conf.tuned_settings("full", "demo", "random")
    assert repr(settings) == repr([{"tuned": {"n_estimators": 2, **values}} for values in folds])
    before = path.read_text()
    (entry,) = yaml.safe_load(before)["entries"]
    assert entry == {"splits": ["last", "later", "random"], "command": command, "folds": folds}
    write("demo", ["random"], command, *folds)
    assert path.read_text() == before
    write("demo", ["later"], "second", {"leaf_rows": 4})
    tuned = write("other", ["random"], "third", {"leaf_rows": 5})[1].tuned
    commands = {(name, split): entry.command for name, splits in tuned.items() for split, entry in splits.items()}
    of_demo = {("demo", "last"): command, ("demo", "later"): "second", ("demo", "random"): command}
    assert commands == of_demo | {("other", "random"): "third"}


PARTS = ["train", "train", "validation", "test", "test", "unused"]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ([["train", "validation", "train", "train", "test", "test"]], None),
        ([["train", "train", "test", "test", "test", "test"]], "tests on 1 of them"),
        ([["test", "train", "train", "train", "test", "validation"]], "tests on 1 of them"),
        ([PARTS, PARTS], "has 2 folds of 6 rows"),
        ([PARTS[:5]], "has 1 folds of 5 rows"),
        (None, "run snakemake"),
    ],
)
def test_also_refuses_splits_whose_test_rows_took_part_in_tuning(tmp_path, other, words):
    if other is not None:
        pd.DataFrame({f"fold_{number}": fold for number, fold in enumerate(other)}).to_parquet(
            tmp_path / "later.parquet"
        )
    tuned = pd.DataFrame({"fold_0": PARTS})
    expected = pytest.raises(UserError, match=words) if words else nullcontext()
    with expected as raised:
        check_unseen("later", "forward", tmp_path / "forward.parquet", tuned)
    assert "\n" not in str(raised and raised.value)
