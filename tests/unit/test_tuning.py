"""Tuning: each fold chooses for itself, on rows that its question does not test on, and goes on where it stopped."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import optuna
import pytest
import tuned_question
import yaml
from tuned_question import CONF, NAME, PART, make_table, search

from perfcast.config.experiment import read_predictor
from perfcast.experiment import selection, tuning
from perfcast.experiment.tuning import studies, trial_runs
from perfcast.experiment.tuning.search import write_tuned
from perfcast.utils.errors import UserError

TRIALS = 8
OWN = {"min_samples_leaf": 7, "max_features": 0.5}


@pytest.fixture(scope="module")
def table():
    return make_table()


class Study:
    """A study in a file of its own, and what it said."""

    def __init__(self, folder, table, part=PART):
        self.path, self.table, self.part, self.said = folder / "study.db", table, part, []

    def go_on(self, trials, *, timeout=None, fold=0, **how):
        asked = search(**how)
        store = tuning.open_store(self.path.with_suffix(""))
        tuning.tune(
            asked, store, self.table, {fold: self.part}, trials=trials, timeout=timeout, report=self.said.append
        )
        return tuning.outcome(asked, store, fold, trials)

    @property
    def trials(self):
        name = f"{NAME}/fold_0"
        return [
            (trial.state.name, trial.params, trial.value)
            for trial in optuna.load_study(study_name=name, storage=f"sqlite:///{self.path}").trials
        ]


@pytest.fixture
def study(tmp_path, table):
    return Study(tmp_path, table)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, table):
    """One uninterrupted study of thirteen trials, beyond the ten random ones; tests only read it."""
    study = Study(tmp_path_factory.mktemp("whole"), table)
    return study.go_on(13), study.trials


def test_the_first_trial_is_the_confs_own_and_the_best_is_reported_beside_it(whole, table):
    outcome, trials = whole
    assert [state for state, _, _ in trials] == ["COMPLETE"] * 13
    assert trials[0][1] == OWN

    def make(seed):
        return selection.make_predictor(CONF["_target_"], CONF["params"], seed)

    assert trials[0][2] == selection.inner_error(table, PART, make, 0, None) == outcome.own_inner_mape
    assert outcome.inner_mape == min(value for _, _, value in trials) < outcome.own_inner_mape
    assert outcome.values == next(values for _, values, value in trials if value == outcome.inner_mape)
    assert (outcome.trials, outcome.failed) == (13, 0)


def test_a_resumed_study_repeats_nothing_and_ends_as_an_uninterrupted_one(study, whole):
    study.go_on(1)
    study.go_on(11)
    assert len(study.said) == 11
    assert study.go_on(13) == whole[0]
    assert study.trials == whole[1]
    assert len({tuple(values.values()) for _, values, _ in study.trials}) == 13
    assert [line.split(":")[0].split()[-3] for line in study.said] == [str(number) for number in range(1, 14)]
    study.go_on(13)
    assert len(study.said) == 13


def test_the_outcome_of_fewer_trials_is_that_of_a_study_which_made_no_more(study, tmp_path, table):
    study.go_on(6)
    (tmp_path / "short").mkdir()
    assert study.go_on(3) == Study(tmp_path / "short", table).go_on(3)


@pytest.mark.parametrize("left", [0, 3, 11])
def test_a_killed_trial_is_done_again_and_not_counted(study, whole, monkeypatch, left):
    if left:
        study.go_on(left)
    with monkeypatch.context() as patched:
        patched.setattr(selection, "inner_error", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            study.go_on(13)
    assert len(study.trials) == left
    assert study.go_on(13) == whole[0]
    assert study.trials == whole[1]


@pytest.mark.parametrize("poison", [np.nan, 1e12, -1.0])
def test_scores_of_test_rows_take_no_part(study, whole, table, poison):
    frame = table.frame.copy()
    frame.loc[PART == "test", "score"] = poison
    study.table = dataclasses.replace(table, frame=frame)
    assert study.go_on(13) == whole[0]
    assert study.trials == whole[1]


def test_folds_and_seeds_search_elsewhere_and_equal_ones_alike(study, whole):
    assert study.go_on(2, fold=1).trials == 2
    study.go_on(2)
    storage = f"sqlite:///{study.path}"
    first, second = (optuna.load_study(study_name=f"{NAME}/fold_{fold}", storage=storage).trials for fold in (0, 1))
    assert first[0].params == second[0].params
    assert first[1].params == whole[1][1][1] != second[1].params
    assert tuning.outcome(search(), tuning.open_store(study.path.with_suffix("")), 2, 2) is None


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"space": {**CONF["space"], "min_samples_leaf": {"low": 1, "high": 21, "log": True}}}, "space"),
        ({"params": {**CONF["params"], "n_estimators": 3}}, "params"),
        ({"seed": 1}, "seed"),
        ({"origin": ("table", "other")}, "table"),
    ],
)
def test_a_study_that_was_asked_something_else_is_refused_in_one_line(study, changes, what):
    study.go_on(1)
    before = study.trials
    with pytest.raises(UserError, match=f"changed since: {what};") as raised:
        study.go_on(2, **changes)
    assert "\n" not in str(raised.value)
    assert study.trials == before


def test_a_failing_trial_is_recorded_with_its_reason_and_the_study_goes_on(study, monkeypatch):
    real, answers = selection.inner_error, iter(["mistake", "nan", "fine", "fine"])

    def sometimes(*given):
        answer = next(answers)
        if answer == "mistake":
            raise UserError("width must be even", "found 3")
        return float("nan") if answer == "nan" else real(*given)

    monkeypatch.setattr(selection, "inner_error", sometimes)
    outcome = study.go_on(4)
    assert [state for state, _, _ in study.trials] == ["FAIL", "FAIL", "COMPLETE", "COMPLETE"]
    assert (outcome.own_inner_mape, outcome.trials, outcome.failed) == (None, 4, 2)
    assert "width must be even, but found 3" in study.said[0]
    stored = optuna.load_study(study_name=f"{NAME}/fold_0", storage=f"sqlite:///{study.path}").trials[0]
    assert stored.user_attrs["reason"] == "width must be even, but found 3"
    assert len(study.said) == 4


def test_a_study_in_which_all_failed_has_no_outcome_but_the_first_reason(study, monkeypatch):
    monkeypatch.setattr(selection, "inner_error", lambda *_: float("inf"))
    with pytest.raises(UserError, match="all 2 failed, the first because the inner MAPE is inf"):
        study.go_on(2)


def test_any_other_exception_is_raised(study, monkeypatch):
    monkeypatch.setattr(selection, "inner_error", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        study.go_on(2)


def test_without_inner_rows_there_is_nothing_to_tune_by(tmp_path, table):
    with pytest.raises(UserError, match="inner validation rows"):
        Study(tmp_path, table, np.where(PART == "validation", "train", PART)).go_on(1)


def test_after_the_timeout_no_trial_begins(study, monkeypatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(trial_runs.time, "monotonic", lambda: float(next(clock)))
    assert 0 < study.go_on(13, timeout=45).trials < 13


def found(folder, at_once, place="sqlite"):
    """What two folds' studies hold, by slot, and what is chosen from them."""
    asked, store = search(at_once=at_once), tuning.open_store(folder / "study", place)
    own = [studies.Study(asked, store, fold) for fold in (0, 1)]
    held = [
        [(slot, trial.state, trial.params, trial.value) for slot, trial in study.finished().items()] for study in own
    ]
    everything = optuna.load_study(study_name=f"{NAME}/fold_0", storage=store.storage).trials
    assert len(everything) == len(held[0])
    return held, [tuning.outcome(asked, store, fold, TRIALS) for fold in (0, 1)]


@pytest.mark.parametrize(("place", "at_once"), [("sqlite", 1), ("journal", 3)])
def test_three_processes_one_of_them_killed_end_as_one_does(tmp_path, place, at_once):
    alone = tmp_path / "alone"
    tuned_question.main(alone, "sqlite", TRIALS, at_once)

    def start(*marker):
        words = [sys.executable, tuned_question.__file__, tmp_path, place, TRIALS, at_once, *marker]
        environment = {**os.environ, "PYTHONPATH": str(Path(tuning.__file__).parents[3])}
        return subprocess.Popen(list(map(str, words)), env=environment, stdout=subprocess.PIPE, text=True)

    hanging = start(tmp_path / "hangs")
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "hangs").exists() and hanging.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        others = [start(), start()]
        time.sleep(1)
    finally:
        hanging.kill()
    told = [process.communicate(timeout=120)[0].splitlines() for process in (hanging, *others)]
    assert hanging.returncode == -signal.SIGKILL
    assert [process.returncode for process in others] == [0, 0]
    assert (len(told[0]), sum(map(len, told))) == (2, 2 * TRIALS)
    assert found(tmp_path, at_once, place) == found(alone, at_once)


def test_a_slot_is_never_worked_on_twice_and_a_round_waits_for_its_last_one(tmp_path):
    store = tuning.open_store(tmp_path / "study")
    study = studies.Study(search(at_once=3), store, 0)
    assert study.open_slots(5) == [0, 1, 2]
    with study.claimed(1) as ours:
        assert ours
        assert study.open_slots(2) == [0, 1]
    for slot in (0, 2):
        study.record(slot, study.proposal(slot), datetime.now(), 1.0, None)
    assert study.open_slots(5) == [1]
    with study.claimed(2) as ours:
        assert not ours
    study.record(1, study.proposal(1), datetime.now(), 2.0, None)
    assert study.open_slots(5) == [3, 4]
    assert study.open_slots(3) == []


def test_trials_proposed_together_do_not_know_of_each_other(tmp_path):
    study = studies.Study(search(at_once=15), tuning.open_store(tmp_path / "study"), 0)
    before = [study.proposal(slot) for slot in range(15)]
    assert len({tuple(values.values()) for values in before}) == 15
    for slot in range(14):
        study.record(slot, before[slot], datetime.now(), float(slot), None)
    assert study.proposal(14) == before[14]


def test_a_study_goes_on_with_as_many_at_once_as_it_began_with(study):
    study.go_on(1)
    with pytest.raises(UserError, match="changed since: at_once;"):
        study.go_on(2, at_once=2)


@pytest.mark.parametrize("place", ["oracle", "nothing://at/all", "sqlite:////nowhere/at/all.db"])
def test_a_place_that_cannot_hold_studies_is_one_line(tmp_path, place):
    with pytest.raises(UserError, match="--storage must be") as raised:
        tuning.open_store(tmp_path / "study", place)
    assert "\n" not in str(raised.value)


def test_the_quick_preset_searches_only_what_it_does_not_fix():
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
def test_a_space_that_cannot_be_searched_is_one_line(changes, words):
    with pytest.raises(UserError, match=words) as raised:
        search(**changes)
    assert "\n" not in str(raised.value)


def write_conf(folder):
    path = folder / "predictor" / "random_forest.yaml"
    path.parent.mkdir()
    path.write_text(
        "_target_: perfcast.predictors.trees.RandomForest\nstochastic: true\nparams: {n_estimators: 2}\nquick: {n_estimators: 1}\n"
    )


def test_written_values_are_read_back_by_settings_with_their_types(tmp_path):
    write_conf(tmp_path)
    command = "perfcast tune demo random random_forest --table 'a: b #.parquet'"
    folds = [
        {"min_samples_leaf": 2, "bootstrap": True, "tiny": 1e-5},
        {"min_samples_leaf": 1, "bootstrap": None, "tiny": 0.1},
    ]
    path = write_tuned(tmp_path, "demo", "random_forest", ["random"], command=command, folds=folds)
    assert path == tmp_path / "tuned" / "demo" / "random_forest.yaml"
    conf = read_predictor(tmp_path, "random_forest")
    settings = conf.tuned_settings("full", "demo", "random")
    assert settings == [{"tuned": {"n_estimators": 2, **values}} for values in folds]
    assert [type(value) for setting in settings for value in setting["tuned"].values()] == [
        type(value) for values in folds for value in (2, *values.values())
    ]
    assert conf.tuned["demo"]["random"].command == command
    before = path.read_text()
    write_tuned(tmp_path, "demo", "random_forest", ["random"], command=command, folds=folds)
    assert path.read_text() == before


def test_splits_with_equal_values_share_an_entry_and_other_splits_keep_theirs(tmp_path):
    write_conf(tmp_path)
    path = write_tuned(
        tmp_path, "demo", "random_forest", ["random", "later", "last"], command="first", folds=[{"leaf_rows": 3}]
    )
    (entry,) = yaml.safe_load(path.read_text())["entries"]
    assert entry == {"splits": ["last", "later", "random"], "command": "first", "folds": [{"leaf_rows": 3}]}
    write_tuned(tmp_path, "demo", "random_forest", ["later"], command="second", folds=[{"leaf_rows": 4}])
    write_tuned(tmp_path, "other", "random_forest", ["random"], command="third", folds=[{"leaf_rows": 5}])
    tuned = read_predictor(tmp_path, "random_forest").tuned
    found = {(name, split): entry.command for name, splits in tuned.items() for split, entry in splits.items()}
    assert found == {
        ("demo", "last"): "first",
        ("demo", "later"): "second",
        ("demo", "random"): "first",
        ("other", "random"): "third",
    }
