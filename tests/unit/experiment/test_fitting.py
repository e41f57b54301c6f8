"""Which rows a fold trains on, is tested on, chooses on and is backtested on; what a final model is fitted to."""

import numpy as np
import pandas as pd
import pytest

from perfcast.config.predictor_conf import PredictorConf
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.fitting import first_error, label_outliers, plan_backtests, run_backtests
from perfcast.experiment.selection import (
    fold_factories,
    predictor_factory,
)
from perfcast.experiment.training import fit_folds, summarize_errors
from perfcast.experiment.uncertainty_fit import fit_uncertainty, fold_distances, independent_units, plan_final_backtests
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.uncertainty.conformal import TEST
from perfcast.utils.errors import UserError

COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY, Tag.IDENTITY)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("month", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("odd", Kind.NUMERICAL, Role.PROVENANCE, "provenance", tags=(Tag.EXCLUDED,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


class Spy(Predictor):
    """Stores its training rows; predicts a multiple of the mean of the logs, for every target."""

    seen: pd.DataFrame

    def __init__(self, factor=1.0, random_state=0):
        self.factor, self.random_state = factor, random_state

    def _fit(self, X, log_y, validation):
        self.seen, self.validation, self.mean_ = X, validation, float(np.nanmean(log_y))

    def _predict(self, X):
        return np.full((len(X), len(self.targets_)), self.mean_ + np.log(self.factor))

    def _save(self, folder): ...

    def _load(self, folder): ...


class Largest(Spy):
    """Predicts the largest training score."""

    def _fit(self, X, log_y, validation):
        super()._fit(X, log_y, validation)
        self.mean_ = float(np.nanmax(log_y))


def spy(seed):
    return Spy(random_state=seed)


def largest(seed):
    return Largest(random_state=seed)


def table(rows=40, **changes):
    """Return a row a month, of four parts, two tasks and one score."""
    number = np.arange(rows)
    frame = pd.DataFrame({"id": [f"r{i}" for i in number], "part": [f"p{i % 4}" for i in number]}).assign(
        suite=np.where(number % 2, "int", "fp"),
        month=pd.date_range("2020-01-01", periods=rows, freq="MS"),
        odd=0.0,
        cores=number + 1.0,
        score=100.0,
    )
    return build_table("demo", frame.assign(**changes), COLUMNS)


def growing(rows=72, **changes):
    """Eight years, a row every second month, each of a part of its own, with growing scores."""
    dates = pd.date_range("2014-01-01", periods=rows, freq="2MS")
    columns = {"part": [f"p{i}" for i in range(rows)], "suite": "int", "month": dates, "score": np.arange(rows) + 1.0}
    return table(rows, **columns | changes)


def undated(demo):
    columns = tuple(column for column in demo.columns if column.name != "month")
    return build_table("demo", demo.frame[[column.name for column in columns]], columns)


def subsets(rows, test, validation=()):
    part = np.full(rows, "train", dtype=object)
    part[list(test)], part[list(validation)] = "test", "validation"
    return part


FORWARD = subsets(72, range(60, 72), range(54, 60))


def folds_of(*folds, rows=40):
    return pd.DataFrame({f"fold_{number}": subsets(rows, *fold) for number, fold in enumerate(folds)})


def fit(demo, folds, make, seeds=(0,), **options):
    """Fit every fold with the same factory."""
    return list(fit_folds(demo, folds, [make] * folds.shape[1], list(seeds), None, **options))


def positions(mask):
    return np.flatnonzero(mask).tolist()


def test_backtests_of_a_forward_split_have_earlier_origins():
    backtests = plan_backtests(growing(), FORWARD, None, 4)
    assert [backtest.number for backtest in backtests] == [0, 1, 2, 3]
    for backtest in backtests:
        fitting, testing = positions(backtest.fitting), positions(backtest.testing)
        assert fitting[-1] + 1 == testing[0]
        assert testing[-1] < 60, "no test row takes part"
    assert positions(backtests[0].testing) == list(range(54, 60))
    assert backtests[1].testing.sum() == 12, "the next 24 months"
    assert [backtest.number for backtest in plan_backtests(growing(), FORWARD, None, 2)] == [0, 1]


def test_backtests_of_a_few_shot_split_reveal_the_first_results_of_new_entities():
    part = FORWARD.copy()
    part[60:72:3] = part[61:72:3] = "train"  # two results of each new part
    first, second = plan_backtests(growing(part=[f"p{number // 3}" for number in range(72)]), part, None, 2)
    assert (positions(first.testing), positions(first.fitting)) == ([56, 59], [*range(56), 57, 58])
    assert positions(second.testing) == [50, 53, 56, 59]
    assert not second.fitting[60:].any(), "what the split reveals is later than a backtest"


@pytest.mark.parametrize("demo", [growing(), undated(growing())], ids=["dated", "undated"])
def test_backtests_of_other_splits_use_validation_rows(demo):
    part = FORWARD.copy()
    part[[3, 55]] = part[[55, 3]]  # validation rows are not the last ones
    (backtest,) = plan_backtests(demo, part, None, 4)
    assert positions(backtest.testing) == [3, 54, 56, 57, 58, 59]
    assert plan_backtests(demo, np.where(part == "validation", "train", part), None, 4) == []
    nothing = run_backtests(demo, [], largest, 0, 0)
    assert nothing.empty
    assert first_error(nothing) is None


def test_backtests_skip_excluded_rows_and_outliers():
    demo = growing(part="p", score=100.0)
    demo.frame.loc[57, "odd"] = 1.0
    demo.frame.loc[5, "score"] = 500.0
    (first,) = plan_backtests(demo, FORWARD, 0.3, 1)
    assert not first.testing[57] and first.testing.sum() == 5
    assert not first.fitting[5] and first.fitting.sum() == 53


def test_backtests_fit_without_their_test_rows_and_distances_are_from_fitted_rows():
    demo = growing()
    predictions = run_backtests(demo, plan_backtests(demo, FORWARD, None, 2), largest, 0, 3)
    first, second = (predictions[predictions["backtest"] == number] for number in (0, 1))
    assert first["predicted"].unique() == pytest.approx(54)
    assert second["predicted"].unique() == pytest.approx(48)
    assert set(predictions["fold"]) == {3}
    assert first_error(predictions) == pytest.approx(100 * np.mean(1 - 54 / np.arange(55, 61)))
    far = fold_distances(demo, pd.DataFrame({"fold_0": FORWARD}), None, 2)
    tested = far[far["backtest"] == TEST]
    assert tested["row"].tolist() == [f"r{i}" for i in range(60, 72)]
    assert far[far["backtest"] == 0]["row"].tolist() == [f"r{i}" for i in range(54, 60)]
    assert tested["years ahead"].iloc[0] == pytest.approx(2 / 12, abs=0.01)
    assert tested["few results"].iloc[0] == 1
    assert (np.diff(tested["processor"]) >= 0).all(), "later machines have more cores"


@pytest.mark.parametrize("demo", [growing(), undated(growing())], ids=["dated", "undated"])
def test_uncertainty_is_calibrated_on_backtests(demo):
    when = pd.Series(pd.Timestamp("2026-06-01"), index=demo.frame.index) if "month" in demo.frame else None
    first, second = (
        fit_uncertainty(demo, largest, 0, None, 2).intervals(demo.frame, np.full(72, "int\x1fscore"), when)
        for _ in range(2)
    )
    assert (first[["below", "above"]] > 0).all(axis=None) and first["in_domain_score"].between(0, 1).all()
    pd.testing.assert_frame_equal(first, second)
    assert fit_uncertainty(growing(1), largest, 0, None, 2) is None


def test_a_last_year_without_an_earlier_date_is_no_forecast():
    demo = growing()
    dates = demo.frame["month"].where(np.arange(72) >= 36)
    partly = growing(month=dates.where(dates > dates.max() - pd.DateOffset(months=12)))
    each = plan_final_backtests(partly, 0, None, 1)
    assert [backtest.testing.sum() for backtest in each] == [12] * 6, "of few machines each is held out, dated or not"
    assert np.sum([backtest.testing for backtest in each], axis=0).tolist() == [1] * 72
    assert all(not (backtest.fitting & backtest.testing).any() for backtest in each)
    (first,) = plan_final_backtests(undated(growing(3000)), 0, None, 1)
    assert first.testing.sum() == 500, "a sixth of many is drawn"


def test_a_late_label_outlier_leaves_the_earlier_backtests():
    demo = growing(part=[f"p{number % 12}" for number in range(72)], score=100.0)
    demo.frame.loc[69, "score"] = 500.0
    each = plan_final_backtests(demo, 0, 0.3, 2)
    assert [backtest.testing.sum() for backtest in each] == [5, 11], "the outlier is of the last year and not in it"


def test_of_few_entities_each_is_held_out_once():
    names = np.array(["a", "a", "b", "b", "b", "c"])[np.arange(72) % 6]
    names[0] = "d"
    each = plan_final_backtests(growing(part=names, month=pd.NaT), 0, None, 1)
    assert [sorted(set(names[backtest.testing])) for backtest in each] == [["a"], ["b"], ["c"]], "one row tests nothing"
    assert all(set(names[backtest.fitting]).isdisjoint(names[backtest.testing]) for backtest in each)
    assert [backtest.number for backtest in each] == [1, 2, 3]


def test_entities_err_alike_few_ones_by_their_setup_and_few_setups_by_their_blocks():
    assert independent_units(growing()).tolist() == [f"p{i}" for i in range(72)]
    units = independent_units(growing(part=np.where(np.arange(72) % 2, "a", "b")))
    assert units.nunique() >= 2 and all(unit.split("\x1f")[0] in "ab" for unit in units)
    alike = growing(part="a", suite="b").frame.assign(run=[f"run {row // 2}" for row in range(72)])
    run = Column("run", Kind.CATEGORICAL, Role.KEY, "provenance", tags=(Tag.BLOCK,))
    assert independent_units(build_table("demo", alike, (*COLUMNS, run))).tolist() == alike["run"].tolist()


def test_a_fold_learns_nothing_of_its_test_rows():
    demo = table()
    demo.frame.loc[[3, 5], "score"] = 7.0
    made = []

    def make(seed):
        made.append(spy(seed))
        return made[-1]

    (fitted,) = fit(demo, folds_of(([3, 5], [7, 9])), make)
    inner, final = made
    assert set(inner.seen.index) == set(range(40)) - {3, 5, 7, 9}
    assert set(final.seen.index) == set(range(40)) - {3, 5}
    assert final.validation.sum() == 2
    assert "score" not in final.seen
    assert fitted.test["row"].tolist() == ["r3", "r5"]
    assert fitted.test["predicted"].to_numpy() == pytest.approx(100.0)
    assert fitted.test["measured"].tolist() == [7.0, 7.0]


def test_excluded_and_unmeasured_rows_are_not_evaluated():
    demo = growing()
    demo.frame.loc[[62, 65, 20], "odd"] = 1.0
    demo.frame.loc[[0, 65, 66], "score"] = np.nan
    folds = pd.DataFrame({"fold_0": FORWARD})
    (fitted,) = fit(demo, folds, spy)
    assert set(fitted.test["row"]) == {f"r{number}" for number in range(60, 72)} - {"r62", "r65", "r66"}
    assert 0 not in fitted.predictor.seen.index


def test_every_fold_and_seed_runs_and_each_fold_is_backtested_once():
    runs = fit(table(), folds_of(([3], [7, 9]), ([4], [11, 13])), spy, (0, 1), max_backtests=4)
    assert [(run.fold, run.seed) for run in runs] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [set(run.backtest["row"]) for run in runs] == [{"r7", "r9"}] * 2 + [{"r11", "r13"}] * 2
    assert runs[0].backtest is runs[1].backtest


def test_label_outliers_are_training_rows_with_enough_peers():
    demo, rows = table(), np.arange(40) != 8
    demo.frame.loc[[4, 8], "score"] = 50.0
    assert positions(label_outliers(demo, rows, 0.3)) == [4]
    assert not label_outliers(demo, rows, None).any()
    small = table(8, score=[1.0] + [100.0] * 7)
    assert not label_outliers(small, np.ones(8, dtype=bool), 0.3).any()


def test_inner_error_uses_validation_rows_only_for_evaluation():
    demo = table()
    demo.frame.loc[[7, 9], "score"] = 200.0
    errors = [
        first_error(run_backtests(demo, plan_backtests(demo, subset, None, 1), spy, 0, 0))
        for subset in (subsets(40, [3], [7, 9]), subsets(40, [3]))
    ]
    assert errors == [pytest.approx(50.0), None]


def test_each_fold_has_an_inner_error_of_its_own_factory():
    demo = table()
    demo.frame.loc[[7, 9], "score"] = 200.0  # validation of fold 0, test of fold 1
    demo.frame.loc[[11, 13], "score"] = 50.0  # validation of fold 1, test of fold 0
    folds = folds_of(([11, 13], [7, 9]), ([7, 9], [11, 13]))
    first, second = fit_folds(demo, folds, [lambda seed: Spy(2.0, seed), lambda seed: Spy(1.0, seed)], [0], None)
    assert (first.predictor.factor, second.predictor.factor) == (2.0, 1.0)
    assert first.validation_mape == pytest.approx(0.0, abs=1e-9)
    assert second.validation_mape == pytest.approx(100.0)
    (without,) = fit(demo, folds_of(([3],)), spy)
    assert without.validation_mape is None


def test_tuned_values_apply_by_fold_in_the_full_preset():
    folds = [{"min_samples_leaf": 2}, {"min_samples_leaf": 4}]
    conf = PredictorConf.model_validate(
        {
            "_target_": "perfcast.predictors.trees.RandomForest",
            "stochastic": True,
            "params": {"n_estimators": 3},
            "tuned": {"demo": {"random": {"command": "c", "folds": folds}}},
        }
    )

    def values_for(preset, *split, folds=2):
        makes = fold_factories(conf, preset, {}, split, folds)
        return [make(5).get_params() for make in makes]

    for split in (("demo", "random"), ("demo", "random_05_percent", "random")):
        values = values_for("full", *split)
        assert [each["min_samples_leaf"] for each in values] == [2, 4]
        assert {(each["n_estimators"], each["random_state"]) for each in values} == {(3, 5)}
    plain = predictor_factory(conf, conf.params, {})(5).get_params()
    for preset, *split in (("full", "demo", "other"), ("full", "another", "random"), ("quick", "demo", "random")):
        assert values_for(preset, *split) == [plain, plain]
    with pytest.raises(UserError, match=r"demo/random .* 5 folds, but .* has 2") as raised:
        values_for("full", "demo", "random", folds=5)
    assert "\n" not in str(raised.value)


def test_a_final_model_is_fitted_on_every_row_and_validated_on_the_last_year():
    fitted = fit_all_rows(table(), spy, 0, None)
    assert len(fitted.seen) == 40
    assert positions(fitted.validation) == list(range(28, 40))


def test_outputs_without_training_scores_are_predicted_for_new_tasks_only():
    demo = table()
    is_int = demo.frame["suite"] == "int"
    frame = demo.frame.assign(second=demo.frame["score"].where(is_int))
    frame.loc[[0, 3], "second"] = 50.0  # row 0 is of fp, which has no other
    demo = build_table("demo", frame, (*COLUMNS, Column("second", Kind.NUMERICAL, Role.TARGET, "workload")))
    (fitted,), (new,) = fit(demo, folds_of(([0, 3],)), spy), fit(demo, folds_of((positions(~is_int),)), spy)
    assert fitted.test[["row", "target"]].to_numpy().tolist() == [["r0", "score"], ["r3", "score"], ["r3", "second"]]
    assert list(fitted.predictor.partial_.values()) == [["score"]]
    assert new.predictor.partial_ == {}
    assert new.test["row"].value_counts()["r0"] == 2


def test_error_summary_is_per_task_and_averaged_over_tasks():
    predictions = pd.DataFrame({"task": ["a", "a", "b"], "measured": [100, 100, 100], "predicted": [110, 130, 90]})
    summary = summarize_errors(predictions)
    assert [summary[name] for name in ("mape/a", "medape/b", "mape")] == pytest.approx([20, 10, 15])


def test_a_task_without_an_earlier_row_is_in_no_backtest():
    demo = growing(suite=["new" if number in (56, 57, 62) else "int" for number in range(72)])
    (first,) = plan_backtests(demo, FORWARD, None, 1)
    assert np.flatnonzero(first.testing).tolist() == [54, 55, 58, 59]
