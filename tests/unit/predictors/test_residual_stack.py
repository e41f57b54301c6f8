"""Roofline model: rates, extrapolation, disturbed rows; stacks of learners on its residual: weights by task."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from perfcast.predictors.predictor import Predictor
from perfcast.predictors.residual_stack import ResidualStack
from perfcast.predictors.roofline import RooflinePredictor
from perfcast.schema.table import Column, Kind, Role, Tag
from perfcast.training.loop import TrainerConfig
from perfcast.utils.errors import UserError


def number(name, group, *tags):
    return Column(name, Kind.NUMERICAL, Role.FEATURE, group, tags=tags)


COLUMNS = (
    Column("shape", Kind.CATEGORICAL, Role.KEY, "problem", tags=(Tag.ENTITY,)),
    Column("quantity", Kind.CATEGORICAL, Role.FEATURE, "problem", tags=(Tag.TASK,)),
    number("operations", "problem", Tag.COST),
    number("bytes", "memory", Tag.COST),
    number("odd", "kernel"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "problem"),
)
RATED = (*COLUMNS, number("work", "problem", Tag.WORK))


def cases(rows=300, seed=0):
    """Return products of two quantities: a time is 2 + 3 x operations + 5 x bytes, an energy is ten times that."""
    random = np.random.default_rng(seed)
    shape = random.integers(0, max(2, rows // 4), rows)
    amounts = np.exp(np.random.default_rng(1).normal(0, 2, (rows, 2)))[shape]
    frame = pd.DataFrame(
        {
            "shape": [f"s{number}" for number in shape],
            "quantity": random.choice(["energy", "time"], rows),
            "operations": amounts[:, 0],
            "bytes": amounts[:, 1],
            "odd": random.integers(0, 2, rows).astype(float),
        }
    )
    return frame.assign(work=frame["operations"] * 2)


def times(frame):
    factor = np.where(frame["quantity"] == "time", 1.0, 10.0)
    return (2 + 3 * frame["operations"] + 5 * frame["bytes"]) * factor


def fit(predictor, frame, score, columns=COLUMNS, **options):
    return predictor.fit(frame, score.to_frame("score"), columns=columns, **options)


def error(predictor, frame, score):
    return float(np.abs(predictor.predict(frame)["score"] / score - 1).mean())


def test_roofline_fits_the_rates_of_every_task_and_extrapolates():
    frame = cases()
    clean = times(frame)
    model = fit(RooflinePredictor(), frame, clean)
    assert list(model.medians_) == ["bytes", "operations"]
    for task, factor in (("time", 1), ("ener", 10)):
        (rates,) = (rates for name, rates in model.coefficients_["score"].items() if name.startswith(task))
        assert rates == pytest.approx([2 * factor, 5 * factor, 3 * factor], rel=1e-6)
    far = frame.assign(operations=frame["operations"] * 1e4)
    assert error(model, far, times(far)) < 1e-6
    disturbed = clean * np.where(np.arange(len(frame)) % 5 == 0, 3.0, 1.0)
    assert error(fit(RooflinePredictor(), frame, disturbed), frame, clean) < 0.01


def test_rate_is_work_over_time():
    frame = cases()
    rate = frame["work"] / times(frame)
    model = fit(RooflinePredictor(), frame, rate, RATED)
    assert error(model, frame, rate) < 1e-6
    assert np.isfinite(model.predict(frame.assign(work=np.nan))).all(axis=None)


def test_constant_amounts_have_no_influence_no_rate_is_negative_and_predictions_stay_positive():
    frame = cases().assign(bytes=0.0)
    score = 4 * frame["operations"]
    model = fit(RooflinePredictor(), frame, score)
    assert error(model, frame, score) < 1e-6
    assert (model.predict(frame.assign(operations=0.0))["score"] > 0).all()
    falling = fit(RooflinePredictor(), frame, 1 / (1 + frame["operations"]))
    assert min(min(rates) for rates in falling.coefficients_["score"].values()) >= 0


@dataclass(kw_only=True, eq=False, repr=False)
class OddLearner(Predictor):
    """Predicts a residual of `gain` for odd rows."""

    gain: float = 0.2

    def _fit(self, X, log_y, validation):
        self.residual_ = log_y

    def _predict(self, X):
        return np.where(X[["odd"]].to_numpy() == 1.0, self.gain, 0.0)

    def _save(self, folder): ...

    def _load(self, folder): ...


@dataclass(kw_only=True, eq=False, repr=False)
class OddStack(ResidualStack):
    def _construct_one(self, conf):
        return OddLearner(gain=conf["gain"]) if "gain" in conf else super()._construct_one(conf)


def stack(kind=ResidualStack, weights=None, **learners):
    return kind(
        structure={"roofline": {"_target_": "perfcast.predictors.roofline.RooflinePredictor"}},
        learners=learners,
        weights_by={"_target_": "perfcast.predictors.residual_stack.TaskWeights", **(weights or {})},
        residual_medians=4.0,
        max_samples_per_task=10_000,
    )


def odd_stack(gain=0.2, **weights):
    return stack(OddStack, weights, odd={"gain": gain})


def odd_scores(frame, gain):
    return times(frame) * np.exp(gain * frame["odd"])


class CountingStack(OddStack):
    """Counts the rows of every fit of its components."""

    def _fit_components(self, X, log_y, rows):
        self.__dict__.setdefault("fits", []).append(int(rows.sum()))
        super()._fit_components(X, log_y, rows)


def test_components_that_were_fitted_to_the_rows_of_a_backtest_are_not_fitted_again():
    frame, validation = cases(), np.arange(300) >= 200
    score = odd_scores(frame, 0.1)
    first, again, earlier = (stack(CountingStack, {"validation_only": True}, odd={"gain": 0.2}) for _ in range(3))
    for each in (first, again, earlier):
        each.max_samples_per_task = None
    fit(earlier, frame[~validation], score[~validation])
    again.backtested = {np.flatnonzero(~validation).tobytes(): earlier}
    for each in (first, again):
        fit(each, frame, score, validation=validation)
    assert (first.fits, again.fits) == ([200, 300], [300])
    assert again.weights_ == first.weights_
    assert again.predict(frame).equals(first.predict(frame)) and again.backtested is None


@pytest.mark.parametrize(("gain", "weight"), [(0.2, 1.0), (0.1, 0.5), (0.0, 0.0), (-0.2, 0.0)])
def test_weight_of_a_learner_is_that_of_inner_folds(gain, weight):
    # Few rows are odd, so the robust roofline model is that of the others.
    frame = cases(600)
    frame["odd"] = (np.arange(len(frame)) % 4 == 0).astype(float)
    fitted = fit(odd_stack(), frame, odd_scores(frame, gain))
    weights = [by_learner["odd"] for by_learner in fitted.weights_.values()]
    assert weights == pytest.approx([weight] * 3, abs=0.13)


def test_repetitions_are_replaced_by_their_median_and_residuals_are_clipped():
    frame = cases(80)
    score = times(frame)
    many, scores = pd.concat([frame] * 5, ignore_index=True), pd.concat([score] * 5, ignore_index=True)
    scores[: len(frame)] *= 40.0
    fitted = fit(odd_stack(), many, scores)
    assert len(fitted.learners_["odd"].residual_) == len(frame.drop_duplicates(list(frame.columns)))
    assert np.abs(fitted.learners_["odd"].residual_).max() < 0.01
    wild = score.mask(frame.index == 3, score * 40)
    assert np.abs(fit(odd_stack(), frame, wild).learners_["odd"].residual_).max() == pytest.approx(0.3)


RIDGE = {"_target_": "perfcast.predictors.linear.Ridge", "default_alpha": 0.01, "min_count": 2, "clip": 0.25}
TREES = {"_target_": "perfcast.predictors.trees.ExtraTrees", "n_estimators": 30, "max_features": 0.5}
ATTENTION = {
    "_target_": "perfcast.predictors.neural.group_pooling.GroupPoolingPredictor",
    "epochs": 20,
    "min_steps": 300,
    "d_token": 8,
    "d_block": 16,
    "linear_skip": False,
}


@pytest.mark.parametrize("learner", [RIDGE, TREES], ids=["ridge", "trees"])
def test_learner_reduces_the_error_of_the_roofline_model(learner):
    frame = cases(400)
    score = odd_scores(frame, 0.2)
    model, corrected = fit(RooflinePredictor(), frame, score), fit(stack(learner=learner), frame, score)
    assert error(corrected, frame, score) < error(model, frame, score) / 2


def test_learners_get_the_seed_the_devices_and_their_own_columns():
    frame = cases(60)
    learners = {
        "trees": {**TREES, "without_columns": ["od*"]},
        "seeded": {**TREES, "random_state": 5},
        "network": {**ATTENTION, "epochs": 1, "min_steps": 2},
    }
    predictor = stack(**learners, none=None).set_params(random_state=3)
    predictor.trainer_config = {"accelerator": "cpu"}
    made = fit(predictor, frame, times(frame)).learners_
    assert {name: learner.random_state for name, learner in made.items()} == {"trees": 3, "seeded": 5, "network": 3}
    assert made["network"].trainer_config == TrainerConfig(accelerator="cpu")
    assert "odd" not in made["trees"].input_names() and "odd" in made["seeded"].input_names()
    # what a learner tells of itself, the stack tells
    assert predictor.history_
    plain = fit(stack(ridge=RIDGE), frame, times(frame))
    assert not hasattr(plain, "history_")


def test_all_tasks_share_one_weight_chosen_on_validation_rows():
    frame = cases(400)
    score = odd_scores(frame, np.where(frame["quantity"] == "time", 0.2, 0.1))
    validation = frame["shape"].str.endswith("3").to_numpy()
    for shared in (True, False):
        fitted = fit(odd_stack(validation_only=True, shared=shared), frame, score, validation=validation)
        weights = {by_learner["odd"] for by_learner in fitted.weights_.values()}
        assert (len(weights) == 1) == shared
        assert 0.5 <= max(weights) <= 1


@pytest.mark.parametrize("weights", [{"validation_only": True, "shared": True}, {}], ids=["validation", "inner folds"])
def test_what_is_known_by_heart_gets_no_weight(weights):
    """Noise of a shape in all of its rows: whoever has one of them knows the others, so whole shapes are held out."""
    frame = cases(400)
    numbers = frame["shape"].str.removeprefix("s").astype(int)
    noise = np.exp(np.random.default_rng(3).normal(0, 0.4, 100))[numbers]
    fitted = fit(
        stack(weights=weights, trees=TREES), frame, times(frame) * noise, validation=(numbers % 10 == 3).to_numpy()
    )
    assert max(weights["trees"] for weights in fitted.weights_.values()) <= 0.5


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"weights_by": {"_target_": "perfcast.predictors.linear.Ridge"}}, "must be a subclass of"),
        ({"learners": {"a": {"alpha": 1.0}}}, "_target_ of a predictor must be the path of a class"),
        ({"learners": {"a": {"_target_": "os.system"}}}, "'os.system' is none"),
    ],
)
def test_components_are_classes_of_predictors_and_weights(change, part):
    frame = cases(60)
    with pytest.raises(UserError, match=part):
        fit(stack(ridge=RIDGE).set_params(**change), frame, times(frame))
