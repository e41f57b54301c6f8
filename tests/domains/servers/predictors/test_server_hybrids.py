"""Hybrid predictors of servers: weights of learners from backtests, by shift; group attention and four learners."""

from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from generated_servers import COLUMNS, compute_scores, daily_dates, generate_servers
from reloaded import reloaded
from torch import nn

import perfcast
from perfcast.domains.servers.predictors.training_shift import (
    ANY,
    SEEN_CPU,
    UNSEEN_CPU,
    UNSEEN_MICROARCHITECTURE,
    TrainingShift,
)
from perfcast.features.encoding.tokens import TokenEncoder
from perfcast.nn.embedding import TokenBatch
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.predictors.predictor import Predictor
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


def shifted_scores(frame, gain):
    """Return scores above every analytical model for validation machines of one clock."""
    late = np.arange(len(frame)) >= 500
    factor = np.where(late & (frame["base_mhz"] == 2000.0), np.exp(gain), 1.0)
    return compute_scores(frame).mul(factor, axis=0)


def fit(predictor, y, train, validated=500):
    validation = np.arange(len(train)) >= validated
    dates = daily_dates(len(train), "2022-12-31")
    return predictor.fit(train, y, columns=COLUMNS, validation=validation, when=dates)


def predict_structure(predictor, X):
    models = predictor.structure_
    return np.sqrt(models["analytical"].predict(X) * models["analytical_time"].predict(X)).to_numpy()


@pytest.mark.parametrize(("gain", "weight"), [(0.2, 1.0), (0.1, 0.5), (0.0, 0.0), (-0.2, 0.0)])
def test_weight_of_a_learner_is_that_of_the_backtest(gain, weight):
    train = generate_servers()
    y = shifted_scores(train, gain)
    fitted = fit(hybrid_constant(), y, train)
    assert fitted.weights_[ANY]["constant"] == pytest.approx(weight, abs=0.1)
    if gain == 0:  # a learner without weight does not change the prediction
        other = fit(hybrid_constant(gain=5.0), y, train)
        pd.testing.assert_frame_equal(fitted.predict(train), other.predict(train))


def test_shifts_are_separate_residuals_clipped_and_weights_equal_without_validation_rows():
    train = generate_servers()
    y = compute_scores(train)
    y.iloc[3] *= 50
    fitted = hybrid_constant().fit(train, y, columns=COLUMNS)
    assert fitted.weights_[ANY] == {"constant": 1.0}
    residual = fitted.learners_["constant"].residual_
    assert residual.max() == pytest.approx(0.3) and np.median(np.abs(residual)) < 0.05
    train = pd.DataFrame({"cpu_model": ["a", "b"], "family": ["Naples", "Rome"]})
    test = pd.DataFrame({"cpu_model": ["a", "c", "d", "e"], "family": ["Naples", "Rome", "Milan", None]})
    shift = TrainingShift.fit(train, (CPU_MODEL,))
    assert shift.of(test).tolist() == [
        SEEN_CPU,
        UNSEEN_CPU,
        UNSEEN_MICROARCHITECTURE,
        UNSEEN_MICROARCHITECTURE,
    ]
    assert TrainingShift(**asdict(shift)) == shift
    assert TrainingShift.fit(train[["family"]], ()).of(train).tolist() == [ANY, ANY], "without an entity"


def test_trees_learn_the_residual_of_the_analytical_models():
    train = generate_servers(1500)
    y = compute_scores(train).mul(
        np.where(
            (train["tdp_w"] == 96) & (train["base_mhz"] == 2400),
            0.9,
            1.1,
        ),
        axis=0,
    )
    fitted = fit(hybrid_trees(n_estimators=20), y, train, validated=1300)
    predictions = predict_structure(fitted, train), fitted.predict(train).to_numpy()
    structure, hybrid = (np.abs(prediction / y.to_numpy() - 1).mean() for prediction in predictions)
    assert hybrid < structure / 2
    two = y.assign(energy=lambda frame: frame["score"] * 3).head(200)
    fitted = hybrid_trees(n_estimators=2).fit(train.head(200), two, columns=COLUMNS)
    pd.testing.assert_frame_equal(reloaded(fitted).predict(train), fitted.predict(train))


def test_weight_of_a_learner_depends_on_the_shift():
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


def test_far_machines_have_the_structure_of_the_analytical_model_alone():
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


SMALL = {"d_token": 8, "d_block": 16, "epochs": 4}
BOOSTING = {"n_estimators": 5}
LEARNERS = {"attention", "boosting", "boosting_median", "gaussian_process"}


def hybrid_attention(network, **options):
    return perfcast.estimator("hybrid_attention", learners={"attention": {**SMALL, **network}}, **options)


def hybrid_ensemble(leave_out, **options):
    learners = {"attention": SMALL, "boosting": BOOSTING, "boosting_median": BOOSTING}
    learners["gaussian_process"] = {"length_scale_steps": 2}
    return perfcast.estimator("hybrid_ensemble", learners={**learners, **dict.fromkeys(leave_out)}, **options)


def interacting_scores(frame):
    """Return scores with an effect that no analytical model has: an interaction of clock and sockets."""
    odd = (frame["base_mhz"] == 2400.0) ^ (frame["chips"] == 2)
    return compute_scores(frame).mul(np.where(odd, 0.9, 1.1), axis=0)


def test_learners_reduce_the_error_of_the_analytical_models():
    train = generate_servers(400)
    test = generate_servers(200, seed=5)
    predictor = hybrid_attention({"epochs": 8}, weights_by={"backtests": False})
    fit(predictor, interacting_scores(train), train, validated=350)
    truth = interacting_scores(test).to_numpy()
    predicted = predictor.predict(test).to_numpy()
    errors = [np.abs(scores / truth - 1).mean() for scores in (predict_structure(predictor, test), predicted)]
    assert errors[1] < errors[0] / 2
    assert len(predictor.history_) >= SMALL["epochs"]


def build_network():
    frame = generate_servers(64)
    frame.loc[::5, "mem_gbps_total"] = np.nan
    encoder = TokenEncoder().fit(frame, COLUMNS)
    torch.manual_seed(0)
    network = GroupPoolingPredictor(d_token=8, d_block=16).build_network(encoder.spec, 2)
    nn.init.normal_(network.head[-1].weight)
    return network.eval(), TokenBatch.from_tokens(encoder.transform(frame), np.zeros((64, 2)))


def test_groups_pool_their_columns_and_attend_to_the_others():
    network, rows = build_network()
    network(rows).pow(2).sum().backward()
    assert not [name for name, p in network.named_parameters() if p.grad is None or p.grad.abs().max() == 0]
    pooled = []
    related = []
    network.inter[0].register_forward_hook(lambda _, given, out: pooled.append(given[0]) or related.append(out))
    first = torch.zeros(rows.numbers.shape[1])
    first[0] = 1.0
    with torch.inference_mode():
        network(rows)
        network(TokenBatch(**{**vars(rows), "numbers": rows.numbers + first}))
    moved = [(a - b).abs().amax(dim=(0, 2)) > 1e-6 for a, b in (pooled, related)]
    assert moved[0].sum() == 1 and moved[1].all()


def test_ablation_parameters_remove_components():
    train = generate_servers(200)
    y = compute_scores(train)
    validation = np.arange(200) >= 150
    structure = {name: {"announced_gains": False} for name in ("analytical", "analytical_time")}
    plain = hybrid_attention({"grouped": False}, structure=structure, weights_by={"backtests": False})
    plain.fit(train, y, columns=COLUMNS, validation=validation)
    assert plain.structure_["analytical"].terms_.clock_gains == {}
    assert set(plain.weights_["any"].values()) == {1.0}
    assert list(plain.learners_["attention"].encoder_.groups) == ["all"]


@pytest.mark.parametrize(
    "left_out",
    [
        ["attention"],
        [
            "boosting",
            "boosting_median",
            "gaussian_process",
        ],
    ],
)
def test_a_learner_can_be_left_out(left_out):
    train = generate_servers(200)
    predictor = hybrid_ensemble(left_out, weights_by={"backtests": False})
    predictor.fit(train, compute_scores(train), columns=COLUMNS)
    assert sorted(predictor.weights_["any"]) == sorted(LEARNERS - set(left_out))
    pd.testing.assert_frame_equal(reloaded(predictor).predict(train), predictor.predict(train))
    # callers read learning curves only where hasattr reports them
    assert hasattr(predictor, "history_") == ("attention" not in left_out)
