"""Piecewise-linear embeddings of numbers: their bins, and the network that reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from perfcast.nn.embedding import UNIT_BIN, PiecewiseLinearNumbers, quantile_bins
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.tabm import TabMPLE
from perfcast.predictors.predictor import load_predictor

SMALL = {"k": 4, "d_embedding": 4, "d_block": 16, "n_bins": 8, "batch_size": 32, "min_steps": 0}


def number_batch(values: torch.Tensor) -> TokenBatch:
    codes = torch.zeros(len(values), 0, dtype=torch.int64)
    return TokenBatch(values, torch.zeros_like(values), codes, codes, torch.zeros(1, 1), torch.zeros(len(values), 1))


def test_bins_are_quantiles_of_the_known_values() -> None:
    numbers = np.arange(9, dtype=np.float32).reshape(-1, 1)
    missing = np.zeros_like(numbers)
    missing[0] = 1.0
    (edges,) = quantile_bins(numbers, missing, 2)
    assert edges == pytest.approx([1.0, 4.5, 8.0])


@pytest.mark.parametrize("values", [[2.0, 2.0, 2.0, 2.0], [np.nan] * 4, [1.0, np.nan, np.nan, 2.0]])
def test_a_column_without_a_range_has_one_bin(values: list[float]) -> None:
    column = np.array(values, dtype=np.float32).reshape(-1, 1)
    missing = np.isnan(column).astype(np.float32)
    assert quantile_bins(np.nan_to_num(column), missing, 4) == [list(UNIT_BIN)]


def test_the_untrained_embedding_is_a_straight_line_and_a_trained_one_bends_at_the_edges() -> None:
    torch.manual_seed(0)
    made, x = PiecewiseLinearNumbers([[-1.0, 0.0, 1.0]], 4), torch.tensor([[-0.5], [0.0], [0.5]])
    with torch.inference_mode():
        low, middle, high = made(number_batch(x))[:, 0]
        torch.testing.assert_close(high - middle, middle - low)
        made.piecewise.linear.weight.normal_()
        low, middle, high = made(number_batch(x))[:, 0]
    assert not torch.allclose(high - middle, middle - low)


def test_a_step_inside_the_range_is_learned_and_saved(tmp_path: Path) -> None:
    x = np.random.default_rng(0).uniform(0, 1, 256)
    X, y = pd.DataFrame({"x": x}), pd.Series(np.where((x > 0.3) & (x < 0.6), 10.0, 1.0), name="score")
    predictor = TabMPLE(**SMALL, epochs=60, dropout=0.0, mask_rate=0.0, learning_rate=1e-2).fit(X, y)
    assert np.abs(np.log(predictor.predict(X) / y)).mean() < 0.25
    predictor.save(tmp_path)
    np.testing.assert_array_equal(load_predictor(tmp_path).predict(X)["score"], predictor.predict(X))


def test_table_without_numbers_is_learned() -> None:
    X = pd.DataFrame({"family": ["a", "b"] * 32})
    y = pd.Series(np.where(X["family"] == "a", 2.0, 5.0), name="score")
    predictor = TabMPLE(**SMALL, epochs=40, learning_rate=1e-2).fit(X, y)
    assert np.abs(np.log(predictor.predict(X) / y)).mean() < 0.1
