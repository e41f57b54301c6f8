"""Hybrid predictors of servers: weights of learners from backtests, by shift."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
import pytest
from generated_servers import COLUMNS, compute_scores, daily_dates, generate_servers

import perfcast
from perfcast.domains.servers.predictors.training_shift import (
    ANY,
    SEEN_CPU,
    UNSEEN_CPU,
    UNSEEN_MICROARCHITECTURE,
    TrainingShift,
)
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.predictors.residual_stack import ResidualStack
from perfcast.schema.table import Column, Kind, Role, Tag

CPU_MODEL = Column("cpu_model", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,))


@dataclass(kw_only=True, eq=False, repr=False)
class ConstantLearner(Predictor):
    """Predicts a residual of `gain` for machines of one base clock, or for all."""

    gain: float = 0.2
    base_mhz: float | None = 2000.0

    def _fit(self, X, log_y, validation):
        self.residual_ = log_y

    def _predict(self, X):
        if self.base_mhz is None:
            return np.full((len(X), 1), self.gain)
        return np.where(X[["base_mhz"]].to_numpy() == self.base_mhz, self.gain, 0.0)

    def _save(self, folder): ...

    def _load(self, folder): ...


@dataclass(kw_only=True, eq=False, repr=False)
class ConstantStack(ResidualStack):
    def _construct_one(self, conf):
        return ConstantLearner(**conf) if "gain" in conf else super()._construct_one(conf)


def hybrid_trees(**trees):
    return perfcast.estimator("hybrid_trees", learners={"extra_trees": trees})


def hybrid_constant(gain=0.2, base_mhz=2000.0):
    params = hybrid_trees().get_params()
    return ConstantStack(**{**params, "learners": {"constant": {"gain": gain, "base_mhz": base_mhz}}})


def shifted_scores(frame: pd.DataFrame, gain: float) -> pd.DataFrame:
    """Return scores above every analytical model for validation machines of one clock."""
    late = np.arange(len(frame)) >= 500
    factor = np.where(late & (frame["base_mhz"] == 2000.0), np.exp(gain), 1.0)
    return compute_scores(frame).mul(factor, axis=0)


def fit(predictor: Predictor, y: pd.DataFrame, train: pd.DataFrame) -> Predictor:
    validation = np.arange(len(train)) >= 500
    dates = daily_dates(len(train), "2022-12-31")
    return predictor.fit(train, y, columns=COLUMNS, validation=validation, when=dates)


def predict_structure(predictor: Predictor, X: pd.DataFrame) -> np.ndarray:
    models = predictor.structure_
    return np.sqrt(models["analytical"].predict(X) * models["analytical_time"].predict(X)).to_numpy()


@pytest.mark.parametrize(("gain", "weight"), [(0.2, 1.0), (0.1, 0.5), (0.0, 0.0), (-0.2, 0.0)])
def test_weight_of_a_learner_is_that_of_the_backtest(gain, weight):
    train = generate_servers()
    fitted = fit(hybrid_constant(), shifted_scores(train, gain), train)
    assert fitted.weights_[ANY]["constant"] == pytest.approx(weight, abs=0.1)


def test_learner_without_weight_does_not_change_the_prediction():
    train = generate_servers()
    y = shifted_scores(train, 0.0)
    first, second = (fit(hybrid_constant(gain=gain), y, train).predict(train) for gain in (0.2, 5.0))
    pd.testing.assert_frame_equal(first, second)


def test_residuals_of_learners_are_clipped():
    train = generate_servers()
    y = compute_scores(train)
    y.iloc[3] *= 50
    residual = fit(hybrid_constant(), y, train).learners_["constant"].residual_
    assert residual.max() == pytest.approx(0.3)
    assert np.median(np.abs(residual)) < 0.05


def test_weights_are_equal_without_validation_rows():
    train = generate_servers()
    fitted = hybrid_constant().fit(train, compute_scores(train), columns=COLUMNS)
    assert fitted.weights_[ANY] == {"constant": 1.0}


def test_trees_learn_the_residual_of_the_analytical_models():
    train = generate_servers(1500)
    y = compute_scores(train).mul(np.where((train["tdp_w"] == 96) & (train["base_mhz"] == 2400), 0.9, 1.1), axis=0)
    validation, dates = np.arange(len(train)) >= 1300, daily_dates(len(train), "2022-12-31")
    fitted = hybrid_trees(n_estimators=20).fit(train, y, columns=COLUMNS, validation=validation, when=dates)
    structure, hybrid = (
        np.abs(prediction / y.to_numpy() - 1).mean()
        for prediction in (predict_structure(fitted, train), fitted.predict(train).to_numpy())
    )
    assert hybrid < structure / 2


def test_several_targets_are_loaded_in_their_order(tmp_path):
    train = generate_servers(200)
    y = compute_scores(train).assign(energy=lambda frame: frame["score"] * 3)
    fitted = hybrid_trees(n_estimators=2).fit(train, y, columns=COLUMNS)
    fitted.save(tmp_path)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(train), fitted.predict(train))


def test_cpu_models_and_microarchitectures_are_separate() -> None:
    train = pd.DataFrame({"cpu_model": ["a", "b"], "family": ["Naples", "Rome"]})
    test = pd.DataFrame({"cpu_model": ["a", "c", "d", "e"], "family": ["Naples", "Rome", "Milan", None]})
    shift = TrainingShift.fit(train, (CPU_MODEL,))
    assert shift.of(test).tolist() == [SEEN_CPU, UNSEEN_CPU, UNSEEN_MICROARCHITECTURE, UNSEEN_MICROARCHITECTURE]
    assert TrainingShift(**asdict(shift)) == shift


def test_without_an_entity_every_shift_is_any() -> None:
    train = pd.DataFrame({"family": ["Naples"]})
    assert TrainingShift.fit(train, ()).of(train).tolist() == [ANY]


def test_weight_of_a_learner_depends_on_the_shift() -> None:
    train = generate_servers(1200)
    late = np.arange(len(train)) >= 1000
    seen = np.arange(len(train)) % 2 == 0
    train["cpu_model"] = np.where(seen, "old", np.where(late, "new", "other"))
    y = compute_scores(train).mul(np.where(late & seen, np.exp(0.2), 1.0), axis=0)
    fitted = hybrid_constant(base_mhz=None).fit(train, y, columns=(*COLUMNS, CPU_MODEL), validation=late)
    weight = {shift: weights["constant"] for shift, weights in fitted.weights_.items()}
    assert (weight[SEEN_CPU], weight[UNSEEN_CPU]) == (1.0, 0.0)
    assert weight[UNSEEN_MICROARCHITECTURE] == weight[ANY]
    test = generate_servers(2, seed=3).assign(cpu_model=["old", "never seen"])
    residual = np.log(fitted.predict(test).to_numpy() / predict_structure(fitted, test))
    assert residual[0, 0] == pytest.approx(0.2)


def test_far_machines_have_the_structure_of_the_analytical_model_alone() -> None:
    train = generate_servers(600)
    train["cpu_model"] = np.where(np.arange(len(train)) % 2 == 0, "old", "other")
    y = compute_scores(train)
    fitted = hybrid_trees(n_estimators=2).fit(train, y, columns=(*COLUMNS, CPU_MODEL))
    fitted.weights_ = {shift: {"extra_trees": 0.0} for shift in fitted.weights_}
    test = generate_servers(3, seed=3).assign(cpu_model=["old", "new", "new"])
    test.loc[test.index[:2], "family"] = train["family"].iloc[0]
    test.loc[test.index[2], "family"] = "a family of no known core"
    analytical, by_time = (
        np.log(fitted.structure_[name].predict(test).to_numpy()) for name in ("analytical", "analytical_time")
    )
    share = np.array([[0.5], [0.75], [1.0]])
    np.testing.assert_allclose(np.log(fitted.predict(test)), share * analytical + (1 - share) * by_time)
