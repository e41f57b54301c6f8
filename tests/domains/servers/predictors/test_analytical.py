"""Analytical models: announced gains of unmeasured cores, memory limits, robust weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from generated_servers import COLUMNS, compute_scores, daily_dates, generate_servers

from perfcast.domains.servers.features.server_physics import power_clock_mhz
from perfcast.domains.servers.predictors.analytical import AnalyticalPredictor, robust_ridge
from perfcast.domains.servers.predictors.analytical_time import AnalyticalTimePredictor
from perfcast.domains.servers.predictors.server_quantities import ServerQuantities
from perfcast.domains.servers.predictors.terms import AnalyticalTerms
from perfcast.predictors.predictor import load_predictor

GENOA = 1.14 * 1.25**0.5
"""Announced gain of Zen 4 over Zen 3: that per clock, and half of the process's gain at the same power."""


def fit(predictor, train, last="2022-12-31", **options):
    dates = daily_dates(len(train), last)
    return predictor.fit(train, compute_scores(train), columns=COLUMNS, when=dates, **options)


@pytest.mark.parametrize("kind", [AnalyticalPredictor, AnalyticalTimePredictor])
def test_unmeasured_core_is_its_predecessor_times_the_announced_gain(kind):
    model = fit(kind(), generate_servers())
    test = generate_servers(200, ("Milan",), seed=1)
    before, after = model.predict(test), model.predict(test.assign(family="Genoa"))
    ratio = (after / before)["score"]
    assert ratio.max() < GENOA + 0.03
    if kind is AnalyticalPredictor:
        # The effect of the family's name does not carry over.
        assert ratio.to_numpy() == pytest.approx(GENOA, abs=0.03)


def test_analytical_time_gains_less_where_memory_is_the_limit():
    model = fit(AnalyticalTimePredictor(), generate_servers(2000))
    test = generate_servers(300, ("Milan",), seed=2).assign(suite="rate", cores_enabled_total=128.0)
    frames = [test.assign(mem_gbps_total=bandwidth) for bandwidth in (100.0, 400.0)]
    slow, fast = [
        (model.predict(frame.assign(family="Genoa")) / model.predict(frame)).mean().item() for frame in frames
    ]
    assert slow < fast < GENOA


def test_announcement_after_the_last_training_row_does_not_count():
    early = fit(AnalyticalPredictor(), generate_servers(), last="2022-11-09")
    test = generate_servers(50, ("Milan",), seed=1)
    ratio = early.predict(test.assign(family="Genoa")) / early.predict(test)
    assert ratio["score"].to_numpy() == pytest.approx((1 + (0.15 + 0.19) / 2) * 1.25**0.5, abs=0.03)


def test_unseen_compiler_counts_as_the_last_seen():
    train = generate_servers()
    model = AnalyticalPredictor().fit(train, compute_scores(train), columns=COLUMNS)
    test = generate_servers(50, seed=3)
    last, later = (model.predict(test.assign(compiler_version=version)) for version in (3.0, 9.0))
    pd.testing.assert_frame_equal(last, later)
    first = model.predict(test.assign(compiler_version=2.0))
    assert (last / first)["score"].mean() == pytest.approx(1.1, abs=0.02)


def test_unknown_turbo_and_power_are_imputed():
    train = generate_servers()
    train["max_turbo_mhz"] = train["base_mhz"] * 1.5
    quantities = ServerQuantities().fit(train)
    unknown = train.head(20).assign(max_turbo_mhz=np.nan, tdp_w=np.nan)
    imputed, known = quantities.compute(unknown), quantities.compute(train.head(20))
    assert imputed["turbo"] == pytest.approx(known["turbo"], abs=0.02)
    assert imputed["power_clock"] == pytest.approx(known["power_clock"], abs=0.05)


def test_power_clock_equals_the_feature():
    frame = generate_servers(200).assign(max_turbo_mhz=np.linspace(1500.0, 5000.0, 200))
    power_clock = np.exp(ServerQuantities().fit(frame).compute(frame)["power_clock"])
    assert power_clock == pytest.approx(power_clock_mhz({name: frame[name].to_numpy() for name in frame}))


def test_terms_without_their_columns_are_left_out():
    train = generate_servers()[["suite", "chips", "base_mhz"]]
    columns = tuple(column for column in COLUMNS if column.name in train)
    terms = AnalyticalTerms()
    fitted = terms.fit_transform(train, columns, None)
    assert "sockets" in terms.names_ and "bandwidth" not in terms.names_
    np.testing.assert_array_equal(terms.transform(train), fitted)
    assert np.isfinite(fitted).all()


def test_absurd_value_is_clipped_near_the_training_range():
    model = fit(AnalyticalPredictor(), generate_servers())
    test = generate_servers(10, seed=4)
    huge, absurd = (model.predict(test.assign(cores_enabled_total=n)) for n in (1e9, 1e12))
    pd.testing.assert_frame_equal(huge, absurd)


def test_robust_ridge_ignores_an_outlier():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(200, 1))
    values = 2 + 3 * matrix[:, 0] + rng.normal(0, 0.01, 200)
    values[0] += 50
    weights = robust_ridge(matrix, values, np.ones(200), np.array([1e-9]))
    assert weights == pytest.approx([2, 3], abs=0.02)


def test_robust_ridge_uses_sample_weights():
    sample_weight = np.array([1e-6, 1e-6, 1, 1])
    weights = robust_ridge(np.zeros((4, 1)), np.array([0.0, 0.0, 1.0, 1.0]), sample_weight, np.ones(1))
    assert weights[0] == pytest.approx(1, abs=1e-3)


def test_saved_model_is_independent_of_the_announcements_table(tmp_path, monkeypatch):
    model = fit(AnalyticalPredictor(), generate_servers())
    model.save(tmp_path)
    monkeypatch.setattr("perfcast.domains.servers.predictors.terms.announced_index", lambda as_of: {})
    monkeypatch.setattr("perfcast.domains.servers.predictors.terms.announced_power_index", lambda as_of: {})
    test = generate_servers(20, ("Genoa",), seed=5)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(test), model.predict(test))


def test_process_gain_counts_where_all_cores_work():
    X = generate_servers(40, ("Naples", "Rome")).assign(metric=["speed", "speed", "rate", "rate"] * 10)
    terms = AnalyticalTerms()
    terms.fit_transform(X, COLUMNS, pd.Timestamp("2019-01-01"))
    rome, speed = X["family"] == "Rome", X["metric"] == "speed"
    by_kind = pd.Series(terms.core_gains(X)).groupby([rome, speed]).agg(["min", "max"])
    assert (by_kind["min"] == by_kind["max"]).all()
    gains = by_kind["min"]
    assert gains[True, False] - gains[True, True] == pytest.approx(np.log(1.25) / 2)
    assert gains[False, False] == gains[False, True] == 0


def test_core_gains_take_a_share_of_the_gain_per_clock():
    X = generate_servers(40, ("Naples", "Rome")).assign(metric="speed")
    terms = AnalyticalTerms()
    terms.fit_transform(X, COLUMNS, pd.Timestamp("2022-12-31"))
    assert terms.core_gains(X).max() > 0
    assert terms.core_gains(X, 0.5) == pytest.approx(terms.core_gains(X) / 2)


def test_alpha_is_chosen_on_validation_rows():
    train = generate_servers()
    model = fit(AnalyticalPredictor(alphas=(1e-4, 1e3)), train, validation=np.arange(len(train)) >= 500)
    assert model.hyperparameters_["alpha"] == 1e-4
