"""The laws: what they know of a core that nobody has measured, and what limits a machine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from law_machines import COLUMNS, dates, machines, scores

from perfcast.features.server_physics import power_clock_mhz
from perfcast.predictors.analytical.analytical import AnalyticalPredictor, robust_ridge
from perfcast.predictors.analytical.analytical_time import AnalyticalTimePredictor
from perfcast.predictors.analytical.server_quantities import Quantities
from perfcast.predictors.analytical.terms import AnalyticalTerms
from perfcast.predictors.predictor import load_predictor

GENOA = 1.14 * 1.25**0.5
"""What was announced of Zen 4 over Zen 3: its gain per clock, and half of what its process gives at the same power."""


@pytest.mark.parametrize("kind", [AnalyticalPredictor, AnalyticalTimePredictor])
def test_a_core_never_measured_is_its_predecessor_times_the_announced_gain(kind):
    train = machines()
    law = kind().fit(train, scores(train), columns=COLUMNS, when=dates(len(train), "2022-12-31"))
    asked = machines(200, ("Milan",), seed=1)
    before, after = law.predict(asked), law.predict(asked.assign(family="Genoa"))
    ratio = (after / before)["score"]
    assert ratio.max() < GENOA + 0.03
    if kind is AnalyticalPredictor:
        # what the family's own name had explained stays behind
        assert ratio.to_numpy() == pytest.approx(GENOA, abs=0.03)


def test_the_analytical_time_knows_that_a_faster_core_does_not_help_where_memory_is_the_limit():
    train = machines(2000)
    law = AnalyticalTimePredictor().fit(train, scores(train), columns=COLUMNS, when=dates(len(train), "2022-12-31"))
    asked = machines(300, ("Milan",), seed=2).assign(suite="rate", cores_enabled_total=128.0)
    starved, fed = asked.assign(mem_gbps_total=100.0), asked.assign(mem_gbps_total=400.0)
    gains = [(law.predict(one.assign(family="Genoa")) / law.predict(one)).mean().item() for one in (starved, fed)]
    assert gains[0] < gains[1] < GENOA


def test_an_announcement_made_after_the_last_training_row_is_not_known():
    train = machines()
    early = AnalyticalPredictor().fit(train, scores(train), columns=COLUMNS, when=dates(len(train), "2022-11-09"))
    asked = machines(50, ("Milan",), seed=1)
    ratio = early.predict(asked.assign(family="Genoa")) / early.predict(asked)
    assert ratio["score"].to_numpy() == pytest.approx((1 + (0.15 + 0.19) / 2) * 1.25**0.5, abs=0.03)


def test_a_compiler_never_seen_counts_as_the_last_one_seen():
    train = machines()
    law = AnalyticalPredictor().fit(train, scores(train), columns=COLUMNS)
    asked = machines(50, seed=3)
    last, next_one = (law.predict(asked.assign(compiler_version=version)) for version in (3.0, 9.0))
    pd.testing.assert_frame_equal(last, next_one)
    first = law.predict(asked.assign(compiler_version=2.0))
    assert (last / first)["score"].mean() == pytest.approx(1.1, abs=0.02)


def test_turbo_and_power_of_a_part_that_no_catalog_knows_are_filled_from_the_others():
    train = machines()
    train["max_turbo_mhz"] = train["base_mhz"] * 1.5
    quantities = Quantities().fit(train)
    unknown = train.head(20).assign(max_turbo_mhz=np.nan, tdp_w=np.nan)
    filled, known = quantities.of(unknown), quantities.of(train.head(20))
    assert filled["turbo"] == pytest.approx(known["turbo"], abs=0.02)
    assert filled["power_clock"] == pytest.approx(known["power_clock"], abs=0.05)


def test_the_power_clock_of_the_laws_is_the_feature():
    frame = machines(200).assign(max_turbo_mhz=np.linspace(1500.0, 5000.0, 200))
    assert np.exp(Quantities().fit(frame).of(frame)["power_clock"]) == pytest.approx(power_clock_mhz(frame).to_numpy())


def test_terms_without_their_columns_are_left_out():
    train = machines()[["suite", "chips", "base_mhz"]]
    columns = tuple(column for column in COLUMNS if column.name in train)
    terms = AnalyticalTerms()
    fitted = terms.fit_transform(train, columns, None)
    assert "sockets" in terms.names_ and "bandwidth" not in terms.names_
    np.testing.assert_array_equal(terms.transform(train), fitted)
    assert np.isfinite(fitted).all()


def test_an_absurd_value_is_held_near_the_training_range():
    train = machines()
    law = AnalyticalPredictor().fit(train, scores(train), columns=COLUMNS)
    asked = machines(10, seed=4)
    huge, absurd = (law.predict(asked.assign(cores_enabled_total=n)) for n in (1e9, 1e12))
    pd.testing.assert_frame_equal(huge, absurd)


def test_one_wild_residual_hardly_moves_the_robust_ridge():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(200, 1))
    values = 2 + 3 * matrix[:, 0] + rng.normal(0, 0.01, 200)
    values[0] += 50
    found = robust_ridge(matrix, values, np.ones(200), np.array([1e-9]))
    assert found == pytest.approx([2, 3], abs=0.02)


def test_old_rows_count_less():
    matrix = np.zeros((4, 1))
    found = robust_ridge(matrix, np.array([0.0, 0.0, 1.0, 1.0]), np.array([1e-6, 1e-6, 1, 1]), np.ones(1))
    assert found[0] == pytest.approx(1, abs=1e-3)


def test_a_saved_law_does_not_change_with_the_table_of_announcements(tmp_path, monkeypatch):
    train = machines()
    law = AnalyticalPredictor().fit(train, scores(train), columns=COLUMNS, when=dates(len(train), "2022-12-31"))
    law.save(tmp_path)
    monkeypatch.setattr("perfcast.predictors.analytical.terms.announced_index", lambda as_of: {})
    monkeypatch.setattr("perfcast.predictors.analytical.terms.announced_power_index", lambda as_of: {})
    asked = machines(20, ("Genoa",), seed=5)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(asked), law.predict(asked))


def test_what_a_process_gives_counts_where_all_cores_work():
    X = machines(40, ("Naples", "Rome")).assign(metric=["speed", "speed", "rate", "rate"] * 10)
    terms = AnalyticalTerms()
    terms.fit_transform(X, COLUMNS, pd.Timestamp("2019-01-01"))
    rome, speed = X["family"] == "Rome", X["metric"] == "speed"
    by_kind = pd.Series(terms.announced(X)).groupby([rome, speed]).agg(["min", "max"])
    assert (by_kind["min"] == by_kind["max"]).all()
    announced = by_kind["min"]
    gain = announced[True, False] - announced[True, True]
    assert gain == pytest.approx(np.log(1.25) / 2)
    assert announced[False, False] == announced[False, True] == 0


def test_a_law_may_take_a_share_of_what_was_announced_per_clock():
    X = machines(40, ("Naples", "Rome")).assign(metric="speed")
    terms = AnalyticalTerms()
    terms.fit_transform(X, COLUMNS, pd.Timestamp("2022-12-31"))
    assert terms.announced(X).max() > 0
    assert terms.announced(X, 0.5) == pytest.approx(terms.announced(X) / 2)


def test_strength_and_memory_are_chosen_on_valid_rows():
    train = machines()
    validation = np.arange(len(train)) >= 500
    law = AnalyticalPredictor(strengths=(1e-4, 1e3)).fit(
        train, scores(train), columns=COLUMNS, validation=validation, when=dates(len(train), "2022-12-31")
    )
    assert law.chosen_["strength"] == 1e-4
