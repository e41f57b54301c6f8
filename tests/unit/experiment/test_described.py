"""Described test machines: what a prediction of them may read, and factors of the half-width by level."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from champion_project import FEATURES, KNOWN, project

from perfcast.experiment import described
from perfcast.experiment.described import DescribedData, draw_machines, find_cut, fit_scales, predict_described_fold
from perfcast.experiment.fitting import fit_rows, plan_backtests, predict_rows, run_backtests
from perfcast.experiment.uncertainty_fit import fold_distances
from perfcast.inference import parse_machines, read_machines
from perfcast.inference.champion import build_features
from perfcast.inference.imputation import impute_machines
from perfcast.inference.machine_predictions import MachinePredictions
from perfcast.predictors.linear import Ridge


@pytest.fixture(scope="module")
def data():
    known = project()
    table = build_features("spec_cpu2017", known.standard.frame, known.standard.columns, FEATURES)
    return DescribedData(known.standard, table, known.raw, FEATURES)


@pytest.fixture(scope="module")
def subset(data):
    """The newest fifth is tested, the fifth before it is for validation."""
    place = data.table.frame["published_month"].rank(method="min", pct=True).to_numpy()
    return np.where(place > 0.8, "test", np.where(place > 0.6, "validation", "train")).astype(object)


@pytest.fixture(scope="module")
def predictor(data, subset):
    training = subset != "test"
    return fit_rows(Ridge(), data.table, training, (subset == "validation")[training])


@pytest.fixture(scope="module")
def predict(data, subset, predictor, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fold")
    predictor.save(folder / "model")
    backtests = plan_backtests(data.table, subset, None, 1)
    run_backtests(data.table, backtests, lambda seed: Ridge(), 0, 0).to_parquet(folder / "backtest.parquet")
    distances = folder / "distances.parquet"
    fold_distances(data.table, pd.DataFrame({"fold_0": subset}), None, 1).to_parquet(distances)
    options = {"distances": distances, "label_outlier": None, "seed": 0}
    return partial(predict_described_fold, data, subset, folder, lambda seed: Ridge(), **options)


@pytest.fixture(scope="module")
def predictions(predict):
    return predict()


def test_every_level_and_both_states_of_the_facts_are_predicted(predictions, data, subset):
    assert set(predictions["facts"]) == {"at the cut", "all"}
    assert set(predictions["level"]) == {1, 2, 3, 4, 5}
    tested = set(data.table.frame.loc[subset == "test", "result_id"])
    assert set(predictions["row"]) <= tested
    assert (predictions["low"] < predictions["predicted"]).all()
    assert (predictions["predicted"] < predictions["high"]).all()


def test_a_full_description_is_predicted_nearly_as_the_row_itself(predictions, predictor, data, subset):
    whole = predict_rows(predictor, data.table, subset == "test", 0, 0).set_index("row")["predicted"]
    full = predictions[(predictions["level"] == 5) & (predictions["facts"] == "all")].set_index("row")["predicted"]
    assert (full / whole.loc[full.index] - 1).abs().median() < 0.02


def test_reference_data_has_training_rows_and_earlier_facts_alone(data, subset, predict, monkeypatch):
    seen = []
    monkeypatch.setattr(described, "fit_scales", lambda *_, **__: ())
    monkeypatch.setattr(described, "predict_described", lambda champion, *_: seen.append(champion) or pd.DataFrame())
    predict()
    cut = data.table.frame.loc[subset == "test", "published_month"].min()
    assert [champion.reference_data.measured.frame["published_month"].max() < cut for champion in seen] == [True, True]
    at_cut, everything = (champion.reference_data.entity_facts["launch_quarter"] for champion in seen)
    assert at_cut.dropna().max() < cut
    assert everything.notna().sum() > at_cut.notna().sum()


def test_only_a_forward_split_has_a_cut_and_whole_machines_are_drawn_by_a_seed(data, subset):
    tested = subset == "test"
    assert find_cut(data.table, ~tested, tested) == data.table.frame.loc[tested, "published_month"].min()
    mixed = np.arange(len(subset)) % 2 == 0
    assert find_cut(data.table, mixed, ~mixed) is None
    drawn = draw_machines(data.table, tested, 3, 7)
    blocks = data.table.frame["submission_id"]
    assert blocks.iloc[drawn].nunique() == 7
    assert (blocks.isin(blocks.iloc[drawn]).to_numpy() & tested).sum() == len(drawn)
    assert (drawn == draw_machines(data.table, tested, 3, 7)).all()
    assert set(drawn) != set(draw_machines(data.table, tested, 4, 7))


def lines(level, backtest, error):
    """Return predictions with a half-width of 0.1, kinds that add 0.05, and errors evenly up to `error`."""
    errors = np.linspace(0, error, 400) * np.where(np.arange(400) % 2, 1, -1)
    ends = {"low": 100 * np.exp(-0.15), "high": 100 * np.exp(0.15), "half_width": 0.1, "predicted": 100.0}
    about = {"row": np.arange(400), "task": "CINT2017rate", "target": "base_score"}
    return pd.DataFrame({"measured": 100 * np.exp(errors)}).assign(level=level, backtest=backtest, **about, **ends)


@pytest.mark.parametrize(
    ("parts", "factors"),
    [
        # 90 % of the errors are up to 0.45: the kinds add 0.05, the half-width of one must be 0.40
        ([(1, 0, 0.5), (4, 0, 0.5)], (4.0, 4.0, 4.0, 1.0)),
        # the worst backtest counts, the last level has none, and no level is narrower than a fuller one
        ([(1, 0, 0.1), (1, 1, 0.5), (2, 0, 0.1), (3, 0, 0.5)], (4.0, 1.0, 1.0)),
        # the second description of the same machines at one level counts for nothing
        ([(1, 0, 0.5), (1, 0, 0.9), (4, 0, 0.5)], (4.0, 4.0, 4.0, 1.0)),
    ],
)
def test_factors_make_intervals_hold_the_level_and_leave_other_spread(monkeypatch, parts, factors):
    known = project()
    monkeypatch.setattr(described, "_predict_backtests", lambda *_, **__: iter(lines(*part) for part in parts))
    data = DescribedData(known.standard, known.standard, known.raw, ())
    fitted = fit_scales(data, [(None, None)], known.champion.calibrated, seed=0)
    assert fitted == pytest.approx(factors, rel=0.01, abs=0.01)


def test_a_factor_widens_by_the_half_width():
    champion = project().champion
    machines = parse_machines(read_machines([{**KNOWN, "suite": "CINT2017rate"}]), champion)
    imputed = impute_machines(machines, champion)
    narrow, wide = (
        MachinePredictions(imputed, replace(champion, calibrated=replace(champion.calibrated, scales=(factor,) * 4)))
        for factor in (1.0, 3.0)
    )
    first, second = narrow.intervals(0).iloc[0], wide.intervals(0).iloc[0]
    for side in ("below", "above"):
        assert second[side] == pytest.approx(first[side] + 2 * first["half_width"])
