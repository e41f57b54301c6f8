"""Roofline model: rates, extrapolation, disturbed rows; stacks of learners on its residual: weights by task."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.predictors.residual_stack import ResidualStack, TaskWeights
from perfcast.predictors.roofline import RooflinePredictor
from perfcast.schema.table import Column, Kind, Role, Tag
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
    model = fit(RooflinePredictor(), frame, times(frame))
    assert list(model.medians_) == ["bytes", "operations"]
    for task, coefficients in model.coefficients_["score"].items():
        factor = {"time": 1, "ener": 10}.get(task[:4])
        if factor:
            assert coefficients == pytest.approx([2 * factor, 5 * factor, 3 * factor], rel=1e-6)
    far = frame.assign(operations=frame["operations"] * 1e4)
    assert error(model, far, times(far)) < 1e-6


def test_rate_is_work_over_time():
    frame = cases()
    rate = frame["work"] / times(frame)
    assert error(fit(RooflinePredictor(), frame, rate, RATED), frame, rate) < 1e-6
    missing = frame.assign(work=np.nan)
    assert np.isfinite(fit(RooflinePredictor(), frame, rate, RATED).predict(missing)).all(axis=None)


def test_disturbed_rows_have_little_influence():
    frame = cases()
    clean = times(frame)
    disturbed = clean * np.where(np.arange(len(frame)) % 5 == 0, 3.0, 1.0)
    assert error(fit(RooflinePredictor(), frame, disturbed), frame, clean) < 0.01


def test_constant_amount_has_no_influence_and_predictions_stay_positive():
    frame = cases().assign(bytes=0.0)
    score = 4 * frame["operations"]
    model = fit(RooflinePredictor(), frame, score)
    assert error(model, frame, score) < 1e-6
    zero = frame.assign(operations=0.0)
    assert (model.predict(zero)["score"] > 0).all()


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


@pytest.mark.parametrize(("gain", "weight"), [(0.2, 1.0), (0.1, 0.5), (0.0, 0.0), (-0.2, 0.0)])
def test_weight_of_a_learner_is_that_of_inner_folds(gain, weight):
    # Few rows are odd, so the robust roofline model is that of the others.
    frame = cases(600)
    frame["odd"] = (np.arange(len(frame)) % 4 == 0).astype(float)
    fitted = fit(odd_stack(), frame, odd_scores(frame, gain))
    weights = [by_learner["odd"] for by_learner in fitted.weights_.values()]
    assert weights == pytest.approx([weight] * 3, abs=0.13)


def test_inner_folds_hold_out_whole_entities():
    frame = cases()
    validation = np.zeros(len(frame), dtype=bool)
    folds = list(TaskWeights()._inner_folds(frame, COLUMNS, validation))
    assert np.sum(folds, axis=0).tolist() == [1] * len(frame)
    for rows in folds:
        assert not set(frame["shape"][rows]) & set(frame["shape"][~rows])


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
    **{"epochs": 20, "min_steps": 300, "d_token": 8, "d_block": 16, "linear_skip": False},
}


@pytest.mark.parametrize("learner", [RIDGE, TREES, ATTENTION], ids=["ridge", "trees", "attention"])
def test_learner_reduces_the_error_of_the_roofline_model(learner, tmp_path):
    frame = cases(400)
    score = odd_scores(frame, 0.2)
    model, corrected = fit(RooflinePredictor(), frame, score), fit(stack(learner=learner), frame, score)
    assert error(corrected, frame, score) < error(model, frame, score) / 2
    corrected.save(tmp_path)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(frame), corrected.predict(frame))


def test_attention_and_learning_curve_are_those_of_the_learner_that_has_them():
    frame = cases(60)
    with_network = stack(ridge=RIDGE, network={**ATTENTION, "epochs": 1, "min_steps": 2})
    fitted = fit(with_network, frame, times(frame))
    assert list(fitted.attention(frame).inter.index) == ["kernel", "memory", "problem"]
    assert fitted.history_
    plain = fit(stack(ridge=RIDGE), frame, times(frame))
    assert not hasattr(plain, "attention") and not hasattr(plain, "history_")


def test_learners_get_the_seed_the_devices_and_their_own_columns():
    frame = cases(60)
    predictor = stack(
        trees={**TREES, "without_columns": ["od*"]}, seeded={**TREES, "random_state": 5}, network=ATTENTION, none=None
    ).set_params(random_state=3)
    predictor.trainer_config = {"devices": 2}
    made = predictor._construct(predictor.learners)
    assert [learner.random_state for learner in made.values()] == [3, 5, 3]
    assert made["network"].trainer_config.devices == 2
    trees = made["trees"].fit(frame, times(frame).to_frame("score"), columns=COLUMNS)
    assert "odd" not in trees.input_names() and predictor.learner_names == ["trees", "seeded", "network"]


def noisy(frame):
    return times(frame) * np.exp(np.random.default_rng(3).normal(0, 0.4, len(frame)))


def test_all_tasks_share_one_weight_chosen_on_validation_rows():
    frame = cases(400)
    score = np.where(frame["quantity"] == "time", odd_scores(frame, 0.2), odd_scores(frame, 0.1))
    validation = frame["shape"].str.endswith("3").to_numpy()
    for shared in (True, False):
        fitted = fit(
            odd_stack(validation_only=True, shared=shared), frame, pd.Series(score, frame.index), validation=validation
        )
        weights = {by_learner["odd"] for by_learner in fitted.weights_.values()}
        assert (len(weights) == 1) == shared
        assert 0.5 <= max(weights) <= 1


def test_trees_of_noise_get_no_weight():
    frame = cases(400)
    fitted = fit(
        stack(weights={"validation_only": True, "shared": True}, trees=TREES),
        frame.assign(odd=np.random.default_rng(0).normal(size=400)),
        noisy(frame),
        validation=frame["shape"].str.endswith("3").to_numpy(),
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
