"""Analytical models: announced gains of unmeasured cores and nothing announced later, memory limits, robust weights."""

import dataclasses
from math import log1p

import numpy as np
import pandas as pd
import pytest
from generated_servers import COLUMNS, compute_scores, daily_dates, generate_servers

import perfcast
from perfcast import splits
from perfcast.domains.servers.features.server_physics import power_clock_mhz
from perfcast.domains.servers.predictors.analytical import AnalyticalPredictor, robust_ridge
from perfcast.domains.servers.predictors.analytical_time import AnalyticalTimePredictor
from perfcast.domains.servers.predictors.server_quantities import ServerQuantities
from perfcast.domains.servers.predictors.terms import AnalyticalTerms
from perfcast.domains.servers.processors import announcements
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

GENOA = 1.14 * 1.25**0.5
"""Announced gain of Zen 4 over Zen 3: that per clock, and half of the process's gain at the same power."""


def fit(predictor, train, last="2022-12-31", **options):
    dates = daily_dates(len(train), last)
    return predictor.fit(train, compute_scores(train), columns=COLUMNS, when=dates, **options)


@pytest.mark.parametrize("kind", [AnalyticalPredictor, AnalyticalTimePredictor])
def test_unmeasured_core_is_its_predecessor_times_the_announced_gain(kind):
    test = generate_servers(200, ("Milan",), seed=1)
    # the last training row is later than the announcement, or not
    for last, gain in (("2022-12-31", GENOA), ("2022-11-09", (1 + (0.15 + 0.19) / 2) * 1.25**0.5)):
        model = fit(kind(), generate_servers(), last=last)
        ratio = (model.predict(test.assign(family="Genoa")) / model.predict(test))["score"].to_numpy()
        assert ratio.max() < gain + 0.03
        if kind is AnalyticalPredictor:
            # The effect of the family's name does not carry over.
            assert ratio == pytest.approx(gain, abs=0.03)


def test_analytical_time_gains_less_where_memory_is_the_limit():
    model = fit(AnalyticalTimePredictor(), generate_servers(2000))
    test = generate_servers(300, ("Milan",), seed=2).assign(suite="rate", cores_enabled_total=128.0)
    frames = [test.assign(mem_gbps_total=bandwidth) for bandwidth in (100.0, 400.0)]
    slow, fast = [
        (model.predict(frame.assign(family="Genoa")) / model.predict(frame)).mean().item() for frame in frames
    ]
    assert slow < fast < GENOA


def test_unseen_compiler_counts_as_the_last_seen_and_alpha_is_chosen_on_validation_rows():
    train = generate_servers()
    model = AnalyticalPredictor().fit(train, compute_scores(train), columns=COLUMNS)
    test = generate_servers(50, seed=3)
    last, later = (model.predict(test.assign(compiler_version=version)) for version in (3.0, 9.0))
    pd.testing.assert_frame_equal(last, later)
    first = model.predict(test.assign(compiler_version=2.0))
    assert (last / first)["score"].mean() == pytest.approx(1.1, abs=0.02)
    train = generate_servers()
    model = fit(
        AnalyticalPredictor(alphas=(1e-4, 1e3)),
        train,
        validation=np.arange(len(train)) >= 500,
    )
    assert model.hyperparameters_["alpha"] == 1e-4


def test_unknown_turbo_and_power_are_imputed_and_the_power_clock_equals_the_feature():
    train = generate_servers()
    train["max_turbo_mhz"] = train["base_mhz"] * 1.5
    quantities = ServerQuantities().fit(train)
    unknown = train.head(20).assign(max_turbo_mhz=np.nan, tdp_w=np.nan)
    imputed = quantities.compute(unknown)
    known = quantities.compute(train.head(20))
    assert imputed["turbo"] == pytest.approx(known["turbo"], abs=0.02)
    assert imputed["power_clock"] == pytest.approx(known["power_clock"], abs=0.05)
    frame = train.head(200).assign(max_turbo_mhz=np.linspace(1500.0, 5000.0, 200))
    power_clock = np.exp(ServerQuantities().fit(frame).compute(frame)["power_clock"])
    assert power_clock == pytest.approx(power_clock_mhz({name: frame[name].to_numpy() for name in frame}))


def test_a_stated_all_core_clock_counts_against_its_family_in_training():
    def stated(frame, seed):
        headroom = np.random.default_rng(seed).choice([1.2, 1.3, 1.4], len(frame))
        return frame.assign(all_core_turbo_mhz=frame["base_mhz"] * headroom * np.where(frame["family"] == "Rome", 2, 1))

    train = stated(generate_servers(), 1).assign(weight=1.0)
    headroom = train["all_core_turbo_mhz"] / train["base_mhz"] / np.where(train["family"] == "Rome", 2, 1)
    scores = compute_scores(train).mul(headroom**0.5, axis=0)
    train.loc[train["family"] == "Naples", "all_core_turbo_mhz"] = np.nan
    columns = (*COLUMNS, Column("all_core_turbo_mhz", Kind.NUMERICAL, Role.FEATURE, "processor"))
    model = AnalyticalPredictor().fit(train, scores, columns=columns, when=daily_dates(len(train), "2022-12-31"))

    def gain(family, low, high):
        test = generate_servers(20, (family,), seed=5)
        at = [model.predict(test.assign(all_core_turbo_mhz=test["base_mhz"] * clock)) for clock in (low, high)]
        return (at[1] / at[0])["score"].to_numpy()

    assert gain("Milan", 1.2, 1.4) == pytest.approx((1.4 / 1.2) ** 0.5, abs=0.02)
    assert gain("Rome", 2.6, np.nan) == pytest.approx(1, abs=0.02), "no clock is the mean of the family"
    for family in ("Naples", "Genoa"):
        assert gain(family, 1.2, 1.4) == pytest.approx(1, abs=1e-9), "nothing to compare with in training"


def test_robust_ridge_ignores_an_outlier_and_uses_sample_weights():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(200, 1))
    values = 2 + 3 * matrix[:, 0] + rng.normal(0, 0.01, 200)
    values[0] += 50
    assert robust_ridge(matrix, values, np.ones(200), np.array([1e-9])) == pytest.approx([2, 3], abs=0.02)
    sample_weight = np.array([1e-6, 1e-6, 1, 1])
    weights = robust_ridge(
        np.zeros((4, 1)),
        np.array([0.0, 0.0, 1.0, 1.0]),
        sample_weight,
        np.ones(1),
    )
    assert weights[0] == pytest.approx(1, abs=1e-3)


def test_saved_model_is_independent_of_the_announcements_table(tmp_path, monkeypatch):
    model = fit(AnalyticalPredictor(), generate_servers())
    model.save(tmp_path)
    for name in ("announced_index", "announced_power_index"):
        monkeypatch.setattr(f"perfcast.domains.servers.predictors.terms.{name}", lambda as_of: {})
    test = generate_servers(20, ("Genoa",), seed=5)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(test), model.predict(test))
    huge, absurd = (model.predict(test.assign(cores_enabled_total=n)) for n in (1e9, 1e12))
    pd.testing.assert_frame_equal(huge, absurd)  # clipped near the training range


def test_process_gain_counts_where_all_cores_work():
    X = generate_servers(40, ("Naples", "Rome")).assign(metric=["speed", "speed", "rate", "rate"] * 10)
    terms = AnalyticalTerms()
    terms.fit_transform(X, COLUMNS, pd.Timestamp("2019-01-01"))
    rome = X["family"] == "Rome"
    speed = X["metric"] == "speed"
    by_kind = pd.Series(terms.core_gains(X)).groupby([rome, speed]).agg(["min", "max"])
    assert (by_kind["min"] == by_kind["max"]).all()
    gains = by_kind["min"]
    assert gains[True, False] - gains[True, True] == pytest.approx(np.log(1.25) / 2)
    assert gains[False, False] == gains[False, True] == 0
    terms.fit_transform(X, COLUMNS, pd.Timestamp("2022-12-31"))
    assert terms.core_gains(X[speed]).max() > 0
    assert terms.core_gains(X[speed], 0.5) == pytest.approx(terms.core_gains(X[speed]) / 2), "a share of that per clock"


CUT = pd.Timestamp("2022-12-31")
KINDS = {
    "analytical": AnalyticalPredictor,
    "analytical_time": AnalyticalTimePredictor,
    "hybrid_trees": lambda: perfcast.estimator("hybrid_trees", learners={"extra_trees": {"n_estimators": 2}}),
}
LATER = ("Sapphire Rapids", "Emerald Rapids", "Granite Rapids-SP", "Sierra Forest", "Turin", "Turin Dense")


def rewritten(table, day):
    """Give every design of a later day than `day` another gain: one where none was announced, and the reverse."""
    changed = {}
    for name, design in table.items():
        later = design.announced > day and design.gain != 0.0
        changed[name] = dataclasses.replace(design, gain=None if design.gain else 0.9) if later else design
    return changed


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_the_same_whatever_was_announced_later(kind, monkeypatch):
    train = generate_servers(families=("Ice Lake-SP", "Cascade Lake-SP", "Milan"))
    scores = compute_scores(train.assign(family="Milan"))
    test = pd.concat([train.head(40), *[generate_servers(20, (family,), seed=3) for family in LATER]])
    test["cpu_vendor"] = np.where(test["family"].str.startswith(("Turin", "Milan")), "AMD", "Intel")

    def predict():
        model = KINDS[kind]()
        return model.fit(
            train,
            scores,
            columns=COLUMNS,
            when=daily_dates(len(train), str(CUT.date())),
        ).predict(test)

    before = predict()
    for name in ("core_table", "process_table"):
        table = rewritten(getattr(announcements, name)(), CUT)
        assert table != getattr(announcements, name)(), "the table must have later designs"
        monkeypatch.setattr(announcements, name, lambda table=table: table)
    pd.testing.assert_frame_equal(predict(), before, check_exact=True)


def test_a_blank_counts_from_its_day_on_and_the_mean_of_the_vendor_before_it():
    """Redwood Cove was sold from 2023-12-14 without a claim, and Raptor Cove from 2022-09-27."""
    cores = announcements.core_table()
    gains = [
        cores[name].gain
        for name in (
            "Broadwell",
            "Skylake",
            "Sunny Cove",
            "Cypress Cove",
            "Golden Cove",
        )
    ]
    mean = log1p(sum(gains) / len(gains))
    train = generate_servers(families=("Ice Lake-SP", "Cascade Lake-SP"))
    scores = compute_scores(train.assign(family="Milan"))
    for last, levels in {
        "2022-09-26": (mean, mean),
        "2022-12-31": (0.0, mean),
        "2023-12-14": (0.0, 0.0),
    }.items():
        model = AnalyticalPredictor().fit(train, scores, columns=COLUMNS, when=daily_dates(600, last))
        families = pd.DataFrame({"family": ["Sapphire Rapids", *LATER[1:3]], "metric": "speed"})
        assert np.diff(model.terms_.core_gains(families)) == pytest.approx(levels)


def test_every_split_has_the_gains_of_its_last_training_row():
    """Also where the split is no forward split; its training rows may be as late as its test rows."""
    rows = 900
    months = pd.date_range("2018-01-01", "2024-12-01", freq="MS")
    frame = generate_servers(rows, ("Naples", "Rome", "Milan", "Ice Lake-SP"))
    frame["score"] = compute_scores(frame.assign(family="Milan"))["score"]
    frame["published"] = months[np.sort(np.random.default_rng(0).integers(0, len(months), rows))]
    frame["row"], frame["cpu_model"] = ([f"{number // each}" for number in range(rows)] for each in (1, 12))
    columns = (
        Column("row", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
        Column("cpu_model", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
        Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
        *COLUMNS,
    )
    table = build_table("generated", frame, columns)
    days = {}
    for name in ("random", "unseen_cpu", "forward_2023", "forward_2024", "few_shot_3", "forward_2024_last_2_years"):
        folds = splits.make(name, table, 0)["fold_0"]
        known = folds.isin(["train", "validation"]).to_numpy()
        train = table.frame[known]
        when = table.frame.loc[known, "published"]
        validation = (folds[known] == "validation").to_numpy()
        given = {"columns": table.columns, "validation": validation, "when": when}
        terms = AnalyticalPredictor().fit(train.drop(columns="score"), train[["score"]], **given).terms_
        assert terms.clock_gains == announcements.announced_index(when.max())
        assert terms.power_gains == announcements.announced_power_index(when.max())
        days[name] = when.max()
    assert days["forward_2023"] < pd.Timestamp("2023-01-01") <= days["forward_2024"] < pd.Timestamp("2024-01-01")
