"""Described test machines: what a prediction of them may read."""

import numpy as np
import pandas as pd
import pytest
from champion_project import FEATURES, project

from perfcast.experiment import described
from perfcast.experiment.described import DescribedData, draw_machines, find_cut, predict_described_fold
from perfcast.experiment.fitting import fit_rows, plan_backtests, predict_rows, run_backtests
from perfcast.experiment.uncertainty_fit import fold_distances
from perfcast.inference.champion import build_features
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
def run(data, subset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fold")
    training = subset != "test"
    predictor = fit_rows(Ridge(), data.table, training, (subset == "validation")[training])
    predictor.save(folder / "model")
    backtests = plan_backtests(data.table, subset, None, 1)
    run_backtests(data.table, backtests, lambda seed: Ridge(), 0, 0).to_parquet(folder / "backtest.parquet")
    fold_distances(data.table, pd.DataFrame({"fold_0": subset}), None, 1).to_parquet(folder / "distances.parquet")
    return folder


@pytest.fixture(scope="module")
def predictions(data, subset, run):
    return predict_described_fold(
        data, subset, run, lambda seed: Ridge(), distances=run / "distances.parquet", label_outlier=None, seed=0
    )


def test_every_level_and_both_states_of_the_facts_are_predicted(predictions, data, subset):
    assert set(predictions["facts"]) == {"at the cut", "all"}
    assert set(predictions["level"]) == {1, 2, 3, 4, 5}
    tested = set(data.table.frame.loc[subset == "test", "result_id"])
    assert set(predictions["row"]) <= tested
    assert (predictions["low"] < predictions["predicted"]).all()
    assert (predictions["predicted"] < predictions["high"]).all()


def test_a_full_description_is_predicted_nearly_as_the_row_itself(predictions, data, subset):
    training = subset != "test"
    predictor = fit_rows(Ridge(), data.table, training, (subset == "validation")[training])
    whole = predict_rows(predictor, data.table, subset == "test", 0, 0).set_index("row")["predicted"]
    full = predictions[(predictions["level"] == 5) & (predictions["facts"] == "all")].set_index("row")["predicted"]
    assert (full / whole.loc[full.index] - 1).abs().median() < 0.02


def test_reference_data_has_training_rows_and_earlier_facts_alone(data, subset, run, monkeypatch):
    seen = []
    monkeypatch.setattr(described, "fit_scales", lambda *_, **__: ())
    monkeypatch.setattr(described, "predict_described", lambda champion, *_: seen.append(champion) or pd.DataFrame())
    predict_described_fold(
        data, subset, run, lambda seed: Ridge(), distances=run / "distances.parquet", label_outlier=None, seed=0
    )
    cut = data.table.frame.loc[subset == "test", "published_month"].min()
    assert [champion.reference_data.measured.frame["published_month"].max() < cut for champion in seen] == [True, True]
    at_cut, everything = (champion.reference_data.entity_facts["launch_quarter"] for champion in seen)
    assert at_cut.dropna().max() < cut
    assert everything.notna().sum() > at_cut.notna().sum()


def test_only_a_forward_split_has_a_cut(data, subset):
    assert find_cut(data.table, subset != "test", subset == "test") == (
        data.table.frame.loc[subset == "test", "published_month"].min()
    )
    mixed = np.arange(len(subset)) % 2 == 0
    assert find_cut(data.table, mixed, ~mixed) is None


def test_whole_machines_are_drawn_by_a_seed(data, subset):
    drawn = draw_machines(data.table, subset == "test", 3, 7)
    blocks = data.table.frame["submission_id"]
    assert blocks.iloc[drawn].nunique() == 7
    assert (blocks.isin(blocks.iloc[drawn]).to_numpy() & (subset == "test")).sum() == len(drawn)
    assert (drawn == draw_machines(data.table, subset == "test", 3, 7)).all()
    assert set(drawn) != set(draw_machines(data.table, subset == "test", 4, 7))
