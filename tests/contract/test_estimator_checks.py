"""scikit-learn's checks of estimators, on every kind of predictor: arrays, clones, pickles, wrong input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.ensemble import VotingRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from test_predictors import LEVEL_ALONE, OF_ITS_KIND, build, is_neural, need_packages, predictor_class

import perfcast

SINGLE_PRECISION = "a network computes in 32 bits, and the check compares to 1e-7"
ENOUGH = {"lightgbm": {"n_estimators": 300}, "help_maml": {"episodes_per_epoch": 12}}
"""What else a predictor needs to learn as much as the checks ask for."""
BY_NAME = "it reads the columns of accelerators by name, and knows the level of any other table alone"
TWO_EPOCHS = "two epochs, which keep this test short, teach attention and recurrence little"


def expected_failures(name: str) -> dict[str, str]:
    if not is_neural(name):
        return {"check_regressors_train": BY_NAME} if name in LEVEL_ALONE else {}
    failures = dict.fromkeys(
        ["check_methods_subset_invariance", "check_methods_sample_order_invariance"], SINGLE_PRECISION
    )
    is_slow = name.endswith("_attention") or predictor_class(name).reads_sequences
    return failures | ({"check_regressors_train": TWO_EPOCHS} if is_slow else {})


@pytest.mark.parametrize("name", OF_ITS_KIND.values())
def test_passes_the_checks_of_scikit_learn(name: str) -> None:
    need_packages(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            build(name, **ENOUGH.get(name, {})),
            expected_failed_checks=expected_failures(name),
            on_fail=None,
            on_skip=None,
        )
    failed = [(each["check_name"], repr(each["exception"])[:300]) for each in results if each["status"] == "failed"]
    assert failed == []
    assert len(results) > 45


@pytest.fixture(scope="module")
def machines() -> tuple[np.ndarray, np.ndarray]:
    """Cores and MHz, and scores that are nearly a product of powers of them."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(4, 128, 120), rng.integers(1800, 4200, 120)]).astype(float)
    return X, 2.0 * X[:, 0] ** 0.9 * X[:, 1] / 2000 * np.exp(rng.normal(0, 0.02, 120))


class TestMetaEstimators:
    def test_pipeline_with_arrays(self, machines: tuple[np.ndarray, np.ndarray]) -> None:
        X, y = machines
        holes = X.copy()
        holes[::17, 1] = np.nan
        pipeline = make_pipeline(
            SimpleImputer(), StandardScaler(), perfcast.estimator("random_forest", n_estimators=20)
        )
        assert pipeline.fit(holes[:90], y[:90]).score(holes[90:], y[90:]) > 0.9
        assert pipeline.predict(holes).shape == y.shape

    def test_search_without_scoring_maximizes_r2(self, machines: tuple[np.ndarray, np.ndarray]) -> None:
        X, y = machines
        search = GridSearchCV(perfcast.estimator("ridge"), {"clip": [0.5, 2.0]}, cv=3).fit(X, y)
        assert search.best_score_ == pytest.approx(
            cross_val_score(perfcast.estimator("ridge", **search.best_params_), X, y, cv=3).mean()
        )
        assert search.best_score_ > 0.9

    def test_voting_is_the_mean_of_its_predictors(self, machines: tuple[np.ndarray, np.ndarray]) -> None:
        X, y = machines
        members = [("linear", perfcast.estimator("ridge")), ("boosted", perfcast.estimator("lightgbm", preset="quick"))]
        voting = VotingRegressor(members).fit(X, y)
        np.testing.assert_allclose(
            voting.predict(X), np.mean([each.predict(X) for each in voting.estimators_], axis=0), rtol=1e-12
        )

    def test_several_targets_come_back_as_they_were_given(self, machines: tuple[np.ndarray, np.ndarray]) -> None:
        X, y = machines
        model = perfcast.estimator("ridge").fit(X, np.column_stack([y, 10 * y]))
        predicted = model.predict(X[:5])
        assert predicted.shape == (5, 2)
        np.testing.assert_allclose(predicted[:, 1], 10 * predicted[:, 0], rtol=1e-6)
