"""Paths of predictor classes; baselines by hand; regressions: the library's numbers, choices, tasks, bounds of rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

import perfcast
from perfcast.config.conf_files import validated
from perfcast.config.predictor_conf import PredictorConf, read_predictor
from perfcast.predictors.baselines import NearestPredictor, PowerLawPredictor
from perfcast.predictors.factory import predictor_class
from perfcast.predictors.gaussian_process import GaussianProcessPredictor, OutputSample, fit_inverse_length_scales
from perfcast.predictors.linear import Ridge
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Column, Kind, Role, Tag
from perfcast.utils.errors import UserError

ROOT = Path(__file__).parents[3]


def test_predictor_class_accepts_path_and_name() -> None:
    assert predictor_class("perfcast.predictors.linear.Ridge") is Ridge
    assert perfcast.estimator("Ridge", clip=2.0).get_params()["clip"] == 2.0
    assert type(perfcast.estimator("perfcast.predictors.linear.Ridge")) is Ridge


@pytest.mark.parametrize(
    ("target", "part"),
    [
        ("os.system", "'os.system' is none"),
        ("perfcast.predictors.linear.Rigde", "did you mean 'perfcast.predictors.linear.Ridge'"),
        ("perfcast.predictors.linear.np", "is none"),
        (
            "perfcast.predictors.trees.BoostingPredictor",
            "must be a subclass of perfcast.predictors.predictor.Predictor",
        ),
        ("perfcast.predictors.linear._Moments", "another kind of class"),
        ("perfcast.predictors.predictor.Predictor", "has no _fit and _predict"),
    ],
)
def test_predictor_class_refuses_other_paths(target: str, part: str) -> None:
    with pytest.raises(UserError) as raised:
        predictor_class(target)
    assert part in str(raised.value)
    assert "\n" not in str(raised.value)


def test_conf_names_the_modules_of_all_classes() -> None:
    assert read_predictor(ROOT / "conf", "roofline_trees").modules == [
        "perfcast.predictors.residual_stack",
        "perfcast.predictors.roofline",
        "perfcast.predictors.trees",
    ]


def test_missing_target_is_named_as_written() -> None:
    with pytest.raises(UserError, match=r"must have the key '_target_'.*its keys are _target_, stochastic"):
        validated(PredictorConf, "conf/predictor/x.yaml", {"stochastic": False})


MACHINE_COLUMNS = (
    Column("suite", Kind.CATEGORICAL, Role.KEY, "workload", tags=(Tag.TASK,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.IDENTITY,)),
    Column("chips", Kind.NUMERICAL, Role.FEATURE, "system", tags=(Tag.IDENTITY,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor"),
)
TRAIN = pd.DataFrame(
    [
        ("rate", "a", 1.0, 8.0, 10.0),
        ("rate", "a", 1.0, 8.0, 12.0),
        ("rate", "a", 1.0, 8.0, 99.0),
        ("rate", "a", 2.0, 16.0, 20.0),
        ("rate", "b", 1.0, 64.0, 80.0),
        ("speed", "a", 1.0, 8.0, 3.0),
    ],
    columns=["suite", "part", "chips", "cores", "score"],
)


@pytest.mark.parametrize(
    ("machine", "score"),
    [
        (("rate", "a", 1.0, 8.0), 12.0),
        (("speed", "a", 1.0, 8.0), 3.0),
        (("rate", "a", 2.0, 16.0), 20.0),
        (("rate", "new", 1.0, 60.0), 80.0),
        (("rate", "new", 1.0, 9.0), 12.0),
        (("speed", "new", 1.0, 64.0), 3.0),
        (("other", "new", 1.0, 64.0), 80.0),
        (("rate", None, 1.0, 64.0), 80.0),
    ],
    ids=[
        "median of the same machine",
        "of the same task",
        "of as many chips",
        "nearest machine",
        "another nearest",
        "nearest of its task",
        "nearest of any task",
        "an unknown part is not the same machine",
    ],
)
def test_a_machine_gets_the_median_of_the_same_or_of_the_nearest(machine: tuple[object, ...], score: float) -> None:
    predictor = NearestPredictor().fit(TRAIN, TRAIN[["score"]], columns=MACHINE_COLUMNS)
    X = pd.DataFrame([machine], columns=["suite", "part", "chips", "cores"])
    assert predictor.predict(X)["score"].tolist() == pytest.approx([score])


def test_a_machine_not_measured_on_one_target_uses_its_neighbor() -> None:
    y = TRAIN[["score"]].assign(other=[np.nan, np.nan, np.nan, np.nan, 7.0, 9.0])
    answer = NearestPredictor().fit(TRAIN, y, columns=MACHINE_COLUMNS).predict(TRAIN.iloc[:1])
    assert answer.iloc[0].to_dict() == pytest.approx({"score": 12.0, "other": 7.0})
    X = TRAIN[["cores"]]  # without identity columns, equal features are the same machine
    assert NearestPredictor().fit(X, TRAIN["score"]).predict(X.iloc[[4]]) == pytest.approx(80.0)


SCALING_COLUMNS = (
    Column("suite", Kind.CATEGORICAL, Role.KEY, "workload", tags=(Tag.TASK,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor", tags=(Tag.SCALING,)),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor", tags=(Tag.SCALING,)),
    Column("noise", Kind.NUMERICAL, Role.FEATURE, "system"),
)


def machines(exponent: float, rows: int = 60) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "suite": np.where(np.arange(rows) % 2 == 0, "rate", "speed"),
            "cores": rng.choice([4.0, 8.0, 32.0, 64.0], rows),
            "mhz": rng.uniform(2000, 4000, rows),
            "noise": rng.normal(size=rows),
        }
    )
    cores_exponent = np.where(X["suite"] == "rate", exponent, 0.2)
    return X, pd.DataFrame({"score": 5.0 * X["cores"] ** cores_exponent * (X["mhz"] / 1000) ** 0.7})


def powers(predictor: PowerLawPredictor, task: str) -> dict[str, float]:
    return next(value for name, value in predictor.powers_["score"].items() if name.startswith(task))


@pytest.mark.parametrize(("true", "fitted"), [(0.9, 0.9), (1.8, 1.0), (-0.5, 0.0)])
def test_exponents_of_every_task_are_found_between_none_and_perfect_scaling(true: float, fitted: float) -> None:
    X, y = machines(true)
    predictor = PowerLawPredictor(shrinkage=1e-9).fit(X, y, columns=SCALING_COLUMNS)
    assert powers(predictor, "rate")["cores"] == pytest.approx(fitted, abs=1e-4)
    speed = powers(predictor, "speed")
    assert (speed["cores"], speed["mhz"]) == pytest.approx((0.2, 0.7), abs=1e-4)
    questions = pd.DataFrame({"suite": "rate", "cores": [64.0, 640.0], "mhz": 3000.0, "noise": 0.0})
    small, large = predictor.predict(questions)["score"]
    assert large / small == pytest.approx(10**fitted, rel=1e-3), "a power also beyond the training rows"
    # a missing or impossible quantity is the training median
    questions = pd.DataFrame(
        {"suite": "rate", "cores": 8.0, "mhz": [np.nan, 0.0, -1.0, X["mhz"].median()], "noise": 0.0}
    )
    assert predictor.predict(questions)["score"].nunique() == 1


def test_without_scaling_columns_it_is_the_mean_log_score_of_the_task() -> None:
    X, y = machines(0.9)
    predicted = PowerLawPredictor().fit(X, y, columns=[SCALING_COLUMNS[0], SCALING_COLUMNS[3]]).predict(X)["score"]
    expected = np.exp(np.log(y["score"]).groupby(X["suite"]).mean())
    assert predicted[:2].tolist() == pytest.approx(expected[["rate", "speed"]].tolist())


LATE = np.arange(200) >= 150


def data(rows: int = 200, noise: float = 0.0, columns: int = 4) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, columns)), columns=[f"x{index:02d}" for index in range(columns)])
    return X, pd.DataFrame({"score": np.exp(np.sin(0.3 * X["x00"]) - 0.2 * X["x01"] + noise * rng.normal(size=rows))})


def error(predictor: Predictor, X: pd.DataFrame, y: pd.DataFrame) -> float:
    return float(np.abs(np.log(predictor.predict(X) / y)).to_numpy().mean())


def test_weights_agree_with_scikit_learn() -> None:
    X, y = data(noise=0.1, columns=30)
    predictor = Ridge(default_alpha=0.1).fit(X, y)
    # the library's ridge penalizes the sum over the 200 rows
    reference = linear_model.Ridge(alpha=0.1 * 200, solver="cholesky")
    reference.fit(predictor.encoder_.transform(X), np.log(y["score"]))
    expected = [reference.intercept_, *reference.coef_]
    np.testing.assert_allclose(np.array(predictor.weights_["score"][""]), expected, atol=1e-10)


def test_a_gaussian_process_agrees_with_scikit_learn_and_ends_at_the_median() -> None:
    (X, y), new = data(), data(50)[0] + 0.5
    median = np.log(y["score"]).median()
    plain = {"noise": 0.05, "n_reweightings": 0, "length_scale_steps": 0, "clip": 1e6}
    predictor = GaussianProcessPredictor(**plain).fit(X, y)
    points, questions = (predictor.encoder_.transform(rows) @ predictor.projection_ for rows in (X, new))
    reference = GaussianProcessRegressor(Matern(np.sqrt(3.0), nu=1.5), alpha=0.05, optimizer=None)
    reference.fit(points, np.log(y["score"]) - median)
    np.testing.assert_allclose(
        np.log(predictor.predict(new)["score"]), median + reference.predict(questions), atol=1e-6
    )
    assert predictor.predict(X.head(1) + 1e3)["score"][0] == pytest.approx(np.exp(median))


def test_a_penalty_grows_with_the_noise_and_validation_rows_are_learned_too() -> None:
    for noise, strongest in ((0.0, 1e-5), (3.0, 1.0)):
        X, y = data(60, noise, 30)
        chosen = Ridge(alphas=(1e-5, 1.0)).fit(X, y, validation=np.arange(60) >= 40)
        assert chosen.penalties_["score"][""] == {"alpha": strongest}
        plain = Ridge(default_alpha=strongest).fit(X, y)
        pd.testing.assert_frame_equal(chosen.predict(X), plain.predict(X))


@pytest.mark.parametrize(
    "predictor",
    [Ridge(default_alpha=1e-5), GaussianProcessPredictor()],
)
def test_every_task_has_a_model_of_its_own_and_a_new_one_that_of_all_rows(predictor: Predictor) -> None:
    X, y = data()
    X = X.assign(suite=np.where(np.arange(len(X)) % 2 == 0, "rate", "speed"))
    y = y.where(X["suite"] == "rate", 1 / y, axis=0)
    columns = [Column(name, Kind.NUMERICAL, Role.FEATURE, "all") for name in X.columns if name != "suite"]
    columns.append(Column("suite", Kind.CATEGORICAL, Role.KEY, "all", tags=(Tag.TASK,)))
    predictor.fit(X, y, columns=columns)
    assert error(predictor, X, y) < 0.06
    # the two tasks mirror each other, so all rows together have next to no slope
    new = np.log(predictor.predict(X.assign(suite="new"))["score"])
    assert new.std() < 0.8 * np.log(y["score"]).std()


def test_a_seed_draws_no_more_rows_than_allowed_and_many_are_answered_as_few() -> None:
    X, y = data(noise=0.5)
    first, second = (GaussianProcessPredictor(max_samples=50, random_state=seed).fit(X, y) for seed in (0, 1))
    assert len(first.processes_["score"][""].points) == 50
    few = first.predict(X)
    assert not few.equals(second.predict(X))
    many = first.predict(pd.concat([X] * 12, ignore_index=True))["score"].to_numpy().reshape(-1, len(X))
    np.testing.assert_allclose(many, np.tile(few["score"], (12, 1)), rtol=1e-12)


def test_a_variable_of_no_effect_has_a_longer_length_scale_and_levels_share_one() -> None:
    X, y = data(400, noise=0.02)
    output = OutputSample.standardize(np.arange(len(X)), np.log(y["score"].to_numpy()))
    assert output is not None
    scales = fit_inverse_length_scales(X.to_numpy(), list(X), [output], steps=60, batch_size=200, seed=0)
    assert scales[:2].min() > 2 * scales[2:].max()
    X["kind"] = np.where(X["x03"] > 0, "x", "y")
    X.loc[::7, "x02"] = np.nan
    y.loc[::7] *= 1.3
    predictor = GaussianProcessPredictor(length_scale_steps=20, n_components=100).fit(X, y)
    assert predictor.encoder_.variables_ == ["kind", "kind", "x00", "x01", "x02", "x02=missing", "x03"]
    norms = np.linalg.norm(predictor.projection_, axis=1)
    assert norms[0] == pytest.approx(norms[1])
    assert norms[4] != pytest.approx(norms[5])


def test_a_gaussian_process_of_few_rows_does_not_follow_the_rounding_of_its_inputs() -> None:
    """Few rows vary in few directions: others, and steps along gradients of zero, would be those of the rounding."""
    X, y = data(40, columns=60)
    new = data(50, columns=60)[0] + 0.5
    moved = X * (1 + 1e-15 * np.random.default_rng(0).choice([-1, 1], X.shape))
    first, second = (GaussianProcessPredictor(n_components=50).fit(inputs, y).predict(new) for inputs in (X, moved))
    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_an_outlier_has_less_influence_when_reweighted() -> None:
    X, y = data()
    wrong = y.mul(np.where(X.index % 30 == 0, 3.0, 1.0), axis=0)
    plain, robust = (
        np.log(GaussianProcessPredictor(n_reweightings=count).fit(X, wrong).predict(X) / y).abs().median().item()
        for count in (0, 2)
    )
    assert robust < plain / 1.5


def test_a_champion_of_both_suites_predicts_without_torch() -> None:
    """The wheel installs no torch: its champion is a mean of ratio models, one of them a Gaussian process."""
    modules = "perfcast.predictors.gaussian_process, perfcast.predictors.mean, perfcast.cli.predict"
    code = f"import sys, {modules}; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
