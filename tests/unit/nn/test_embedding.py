"""Embeddings of numbers: waves that end, lines that continue, bins, and tables without numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from token_rows import COLUMNS, frame

from perfcast.nn.embedding import UNIT_BIN, NumberEmbedding, PeriodicNumbers, quantile_bins
from perfcast.nn.token_batch import TokenBatch
from perfcast.predictors.neural.mlp import MLPPLR
from perfcast.predictors.neural.tabm import TabMPLE
from perfcast.predictors.predictor import load_predictor

SMALL: dict[str, Any] = {"d_embedding": 4, "d_block": 32, "batch_size": 32, "min_steps": 0, "learning_rate": 1e-2}
BOTH = pytest.mark.parametrize("kind", [MLPPLR, TabMPLE])


def number_rows(values: torch.Tensor) -> TokenBatch:
    nothing = torch.zeros(len(values), 0, dtype=torch.int64)
    return TokenBatch(
        values, torch.zeros_like(values), nothing, nothing, torch.zeros(1, 1), torch.zeros(len(values), 1)
    )


@BOTH
def test_table_without_numbers_is_learned(kind: type[MLPPLR] | type[TabMPLE]) -> None:
    X = frame()[["family", "suite"]]
    y = pd.Series(np.where(X["family"] == "Alpha", 2.0, 5.0) * np.where(X["suite"] == "rate", 1.0, 7.0), name="score")
    predictor = kind(**SMALL, epochs=40).fit(X, y, columns=COLUMNS[3:])
    assert np.abs(np.log(predictor.predict(X)["score"] / y)).mean() < 0.1


@BOTH
def test_step_inside_the_range_is_learned_and_saved(tmp_path: Path, kind: type[MLPPLR] | type[TabMPLE]) -> None:
    x = np.random.default_rng(0).uniform(0, 1, 256)
    X, y = pd.DataFrame({"x": x}), pd.Series(np.where((x > 0.3) & (x < 0.6), 10.0, 1.0), name="score")
    predictor = kind(**SMALL, epochs=60, dropout=0.0, mask_rate=0.0).fit(X, y)
    assert np.abs(np.log(predictor.predict(X) / y)).mean() < 0.25
    predictor.save(tmp_path)
    np.testing.assert_array_equal(load_predictor(tmp_path).predict(X)["score"], predictor.predict(X))


def test_waves_end_at_three_deviations() -> None:
    torch.manual_seed(0)
    made = PeriodicNumbers(n_numbers=3, d_embedding=4, n_frequencies=5, frequency_init_scale=0.5)
    inside, edge, beyond = (made(number_rows(torch.full((1, 3), x))) for x in (2.5, 3.0, 7.0))
    torch.testing.assert_close(beyond, edge)
    assert not torch.allclose(inside, edge)


@pytest.mark.parametrize("frequencies", [0, 5])
def test_a_number_continues_as_a_straight_line_beyond_the_waves(frequencies: int) -> None:
    torch.manual_seed(0)
    made = NumberEmbedding(3, 4, n_frequencies=frequencies, frequency_init_scale=0.5)
    near, middle, far = (made(number_rows(torch.full((1, 3), x))) for x in (3.0, 4.0, 5.0))
    torch.testing.assert_close(far - middle, middle - near)
    inside = [made(number_rows(torch.full((1, 3), x))) for x in (0.0, 1.0, 2.0)]
    assert torch.allclose(inside[2] - inside[1], inside[1] - inside[0], atol=1e-6) == (not frequencies)


def test_some_columns_are_embedded_as_in_the_whole_table() -> None:
    torch.manual_seed(0)
    made, batch = NumberEmbedding(3, 4, n_frequencies=5, frequency_init_scale=0.5), number_rows(torch.randn(6, 3))
    torch.testing.assert_close(made(batch, slice(1, 3)), made(batch)[:, 1:3])
    assert made(batch, slice(3, 3)).shape == (6, 0, 4)


def test_missing_number_has_a_vector() -> None:
    made = NumberEmbedding(2, 4, n_frequencies=0, frequency_init_scale=0.5)
    made.missing.data[:] = 7.0
    batch = number_rows(torch.zeros(1, 2))
    known = made(batch)
    batch.missing[:] = 1.0
    torch.testing.assert_close(made(batch), known + 7.0)


def test_table_without_numbers_has_no_vectors() -> None:
    assert NumberEmbedding(0, 4, 5, 0.5)(number_rows(torch.zeros(6, 0))).shape == (6, 0, 4)


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
