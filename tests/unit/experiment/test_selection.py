"""Training rows, test rows and model selection."""

import numpy as np
import pandas as pd
import pytest

from perfcast.config.predictor_conf import PredictorConf
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.fitting import label_outliers
from perfcast.experiment.selection import (
    CandidateChoice,
    fold_candidates,
    inner_error,
    make_predictor,
    predictor_factories,
)
from perfcast.experiment.training import fit_folds, summarize_errors
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.utils.errors import UserError

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY, Tag.IDENTITY)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("month", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


class Spy(Predictor):
    """Stores its training rows; predicts the mean of the logs."""

    seen: pd.DataFrame

    def __init__(self, random_state=0):
        self.random_state = random_state

    def _fit(self, X, log_y, validation):
        self.seen, self.validation, self.mean_ = X, validation, float(np.nanmean(log_y))

    def _predict(self, X):
        return np.full((len(X), 1), self.mean_)

    def _save(self, folder): ...

    def _load(self, folder): ...


def table(rows=40):
    frame = pd.DataFrame(
        {
            "id": [f"r{i}" for i in range(rows)],
            "part": [f"p{i % 4}" for i in range(rows)],
            "suite": ["int" if i % 2 else "fp" for i in range(rows)],
            "month": pd.date_range("2020-01-01", periods=rows, freq="MS"),
            "cores": np.arange(rows) + 1.0,
            "score": 100.0,
        }
    )
    return build_table("demo", frame, COLUMNS)


def folds_of(demo, test, validation=()):
    part = np.full(len(demo.frame), "train", dtype=object)
    part[list(test)] = "test"
    part[list(validation)] = "validation"
    return pd.DataFrame({"fold_0": part})


def shared(candidates):
    """Return the same candidates for every fold."""
    return lambda fold: candidates


def test_fit_folds_ignores_test_rows():
    demo = table()
    demo.frame.loc[[3, 5], "score"] = 7.0
    made = []

    def make(seed):
        made.append(Spy(seed))
        return made[-1]

    (fitted,) = fit_folds(demo, folds_of(demo, [3, 5], [7, 9]), shared({"only": make}), [0], None)
    inner, final = made
    assert set(inner.seen.index) == set(range(40)) - {3, 5, 7, 9}
    assert set(final.seen.index) == set(range(40)) - {3, 5}
    assert final.validation.sum() == 2
    assert "score" not in final.seen
    assert fitted.test["row"].tolist() == ["r3", "r5"]
    assert fitted.test["predicted"].to_numpy() == pytest.approx(100.0)
    assert fitted.test["measured"].tolist() == [7.0, 7.0]


def test_fit_folds_does_not_evaluate_excluded_rows():
    demo = table()
    marks = Column("odd", Kind.NUMERICAL, Role.PROVENANCE, "provenance", tags=(Tag.EXCLUDED,))
    demo = build_table("demo", demo.frame.assign(odd=(np.arange(40) == 5).astype(float)), (*COLUMNS, marks))
    (fitted,) = fit_folds(demo, folds_of(demo, [3, 5]), shared({"only": Spy}), [0], None)
    assert fitted.test["row"].tolist() == ["r3"]


def test_fit_folds_runs_every_fold_and_seed():
    demo = table()
    folds = pd.concat([folds_of(demo, [0]), folds_of(demo, [1]).rename(columns={"fold_0": "fold_1"})], axis=1)
    done = [(f.fold, f.seed) for f in fit_folds(demo, folds, shared({"only": Spy}), [0, 1], None)]
    assert done == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_label_outliers_are_training_rows_only():
    demo = table()
    demo.frame.loc[[4, 8], "score"] = 50.0
    rows = np.ones(40, dtype=bool)
    rows[8] = False
    marked = label_outliers(demo, rows, 0.3)
    assert np.flatnonzero(marked).tolist() == [4]
    assert not label_outliers(demo, rows, None).any()


def test_label_outliers_need_enough_peers():
    demo = table(8)
    demo.frame.loc[0, "score"] = 1.0
    assert not label_outliers(demo, np.ones(8, dtype=bool), 0.3).any()


def test_inner_error_uses_validation_rows_only_for_evaluation():
    demo = table()
    demo.frame.loc[[7, 9], "score"] = 200.0
    error = inner_error(demo, folds_of(demo, [3], [7, 9])["fold_0"].to_numpy(), Spy, 0, None)
    assert error == pytest.approx(50.0)
    assert inner_error(demo, folds_of(demo, [3])["fold_0"].to_numpy(), Spy, 0, None) is None


class Biased(Spy):
    """Predictor of a multiple of the mean."""

    def __init__(self, factor=1.0, random_state=0):
        self.factor, self.random_state = factor, random_state

    def _predict(self, X):
        return super()._predict(X) + np.log(self.factor)


def candidates(*factors):
    return {f"times {factor}": lambda seed, factor=factor: Biased(factor, seed) for factor in factors}


def test_selection_uses_the_inner_rows_of_each_fold():
    demo = table()
    demo.frame.loc[[7, 9], "score"] = 200.0  # validation of fold 0, test of fold 1
    demo.frame.loc[[11, 13], "score"] = 50.0  # validation of fold 1, test of fold 0
    other = folds_of(demo, [7, 9], [11, 13])["fold_0"]
    folds = folds_of(demo, [11, 13], [7, 9]).assign(fold_1=other)
    first, second = fit_folds(demo, folds, shared(candidates(1.0, 2.0, 0.5)), [0], None)
    assert (first.choice.candidate, second.choice.candidate) == ("times 2.0", "times 0.5")
    assert first.choice.validation_mape["times 2.0"] == pytest.approx(0.0, abs=1e-9)
    assert first.choice.validation_mape["times 1.0"] == pytest.approx(50.0)
    assert isinstance(first.predictor, Biased) and first.predictor.factor == 2.0


def test_single_candidate_has_an_inner_error():
    demo = table()
    demo.frame.loc[[7, 9], "score"] = 200.0
    folds = folds_of(demo, [3], [7, 9]).assign(fold_1=folds_of(demo, [4], [11, 13])["fold_0"])
    by_fold = [candidates(2.0), candidates(1.0)]
    first, second = fit_folds(demo, folds, by_fold.__getitem__, [0], None)
    assert (first.predictor.factor, second.predictor.factor) == (2.0, 1.0)
    assert first.choice.validation_mape["times 2.0"] == pytest.approx(0.0, abs=1e-9)
    assert 0 < second.choice.validation_mape["times 1.0"] < 10


def test_each_fold_is_backtested_once_for_all_seeds():
    demo = table()
    folds = folds_of(demo, [3], [7, 9]).assign(fold_1=folds_of(demo, [4], [11, 13])["fold_0"])
    runs = list(fit_folds(demo, folds, shared(candidates(1.0)), [0, 1], None, max_backtests=4))
    assert [set(run.backtest["row"]) for run in runs] == [{"r7", "r9"}] * 2 + [{"r11", "r13"}] * 2
    assert runs[0].backtest is runs[1].backtest


def test_tuned_values_apply_by_fold_in_the_full_preset():
    conf = PredictorConf.model_validate(
        {
            "_target_": "perfcast.predictors.trees.RandomForest",
            "stochastic": True,
            "params": {"n_estimators": 3},
            "candidates": {"few": {"n_estimators": 1}, "many": {}},
            "tuned": {
                "demo": {"random": {"command": "c", "folds": [{"min_samples_leaf": 2}, {"min_samples_leaf": 4}]}}
            },
        }
    )

    def candidates_for(preset, split, folds=2):
        return fold_candidates(conf, preset, {}, split, folds)

    made = [candidates_for("full", ("demo", "random"))(fold) for fold in (0, 1)]
    assert [list(setting) for setting in made] == [["tuned"], ["tuned"]]
    assert [setting["tuned"](5).get_params()["min_samples_leaf"] for setting in made] == [2, 4]
    assert {(m.n_estimators, m.random_state) for m in (setting["tuned"](5) for setting in made)} == {(3, 5)}
    assert list(candidates_for("full", ("demo", "other"))(1)) == ["few", "many"]
    assert list(candidates_for("full", ("another", "random"))(0)) == ["few", "many"]
    assert list(candidates_for("quick", ("demo", "random"))(0)) == ["quick"]
    learning_curve_point = candidates_for("full", ("demo", "random_05_percent", "random"))
    assert [learning_curve_point(fold)["tuned"](5).get_params()["min_samples_leaf"] for fold in (0, 1)] == [2, 4]
    assert list(predictor_factories(conf, "full", {})) == ["few", "many"]  # the final model on all rows
    with pytest.raises(UserError, match=r"demo/random .* 5 folds, but .* has 2") as raised:
        candidates_for("full", ("demo", "random"), folds=5)
    assert "\n" not in str(raised.value)


def test_selection_without_inner_rows_takes_the_first_candidate():
    demo = table()
    (fitted,) = fit_folds(demo, folds_of(demo, [3]), shared(candidates(2.0, 1.0)), [0], None)
    assert fitted.choice == CandidateChoice("times 2.0", {"times 2.0": None, "times 1.0": None})


def test_final_model_is_selected_by_the_last_year():
    demo = table()
    demo.frame.loc[28:, "score"] = 300.0
    fitted, choice = fit_all_rows(demo, candidates(1.0, 3.0), 0, None)
    assert choice.candidate == "times 3.0"
    assert fitted.factor == 3.0


def test_final_model_is_fitted_on_every_row():
    fitted, choice = fit_all_rows(table(), {"only": Spy}, 0, None)
    assert choice == CandidateChoice("only", {})
    assert len(fitted.seen) == 40
    assert np.flatnonzero(fitted.validation).tolist() == list(range(28, 40))


def test_unmeasured_targets_are_ignored():
    demo = table()
    demo.frame.loc[[0, 3], "score"] = np.nan
    (fitted,) = fit_folds(demo, folds_of(demo, [3, 5]), shared({"only": Spy}), [0], None)
    assert fitted.test["row"].tolist() == ["r5"]
    assert 0 not in fitted.predictor.seen.index


class PerTask(Spy):
    """Predictor of one number for every target."""

    def _predict(self, X):
        return np.full((len(X), len(self.targets_)), self.mean_)


def test_outputs_without_training_scores_are_predicted_for_new_tasks_only():
    demo = table()
    is_int = demo.frame["suite"] == "int"
    frame = demo.frame.assign(second=demo.frame["score"].where(is_int))
    frame.loc[[0, 3], "second"] = 50.0  # row 0 is of fp, which has no other
    demo = build_table("demo", frame, (*COLUMNS, Column("second", Kind.NUMERICAL, Role.TARGET, "workload")))
    (fitted,) = fit_folds(demo, folds_of(demo, [0, 3]), shared({"only": PerTask}), [0], None)
    assert fitted.test[["row", "target"]].to_numpy().tolist() == [["r0", "score"], ["r3", "score"], ["r3", "second"]]
    assert list(fitted.predictor.partial_.values()) == [["score"]]
    fp = np.flatnonzero(~is_int)
    (new,) = fit_folds(demo, folds_of(demo, fp), shared({"only": PerTask}), [0], None)
    assert new.predictor.partial_ == {}
    assert new.test["row"].value_counts()["r0"] == 2


def test_error_summary_is_per_task_and_averaged_over_tasks():
    predictions = pd.DataFrame({"task": ["a", "a", "b"], "measured": [100, 100, 100], "predicted": [110, 130, 90]})
    summary = summarize_errors(predictions)
    assert summary["mape/a"] == pytest.approx(20)
    assert summary["medape/b"] == pytest.approx(10)
    assert summary["mape"] == pytest.approx(15)


def test_trainer_conf_reaches_neural_predictors():
    made = make_predictor("perfcast.predictors.neural.mlp.MLP", {}, 3, {"accelerator": "cpu", "devices": 2})
    assert (made.trainer_config.accelerator, made.trainer_config.devices, made.random_state) == ("cpu", 2, 3)
    assert "trainer_config" not in made.get_params()
    assert not hasattr(
        make_predictor("perfcast.predictors.linear.Ridge", {}, None, {"accelerator": "cpu", "devices": 2}),
        "trainer_config",
    )
