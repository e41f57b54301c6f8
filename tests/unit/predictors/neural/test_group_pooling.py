"""Group pooling: predictions read every distinct group once, and are what the network says of whole rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from factory import tiny_table

from perfcast.nn.group_attention import GroupPoolingNetwork
from perfcast.nn.token_batch import TokenBatch, distinct_rows
from perfcast.predictors.neural.group_pooling import GroupPoolingPredictor
from perfcast.schema.table import Kind, Role


@pytest.fixture(scope="module")
def predictor() -> GroupPoolingPredictor:
    table = tiny_table(160)
    inputs = [column.name for column in table.columns if column.role is not Role.TARGET]
    return GroupPoolingPredictor(d_token=8, d_block=16, epochs=2).fit(
        table.frame[inputs], table.frame[["score"]], columns=table.columns
    )


def encoded(predictor: GroupPoolingPredictor, X: pd.DataFrame) -> TokenBatch:
    return TokenBatch.from_tokens(predictor.encoder_.transform(X), np.full((len(X), 1), np.nan))


def questions() -> pd.DataFrame:
    """Machines of which some share a processor, some all but it, and some are the same, in no order."""
    frame = tiny_table(160).frame.sample(frac=1.0, random_state=1)
    return pd.concat([frame.iloc[:40], frame.iloc[:20], frame.iloc[40:50]], ignore_index=True)


def test_groups_read_once_give_the_networks_own_predictions(predictor: GroupPoolingPredictor) -> None:
    rows = encoded(predictor, questions())
    with torch.inference_mode():
        torch.testing.assert_close(predictor._predict_scaled(rows), predictor.network_(rows))


def test_a_group_is_read_from_its_own_columns_alone(predictor: GroupPoolingPredictor) -> None:
    rows = encoded(predictor, questions())
    network = predictor.network_
    assert isinstance(network, GroupPoolingNetwork)
    for group in range(len(predictor.encoder_.groups)):
        numbers, _ = network.columns(group)
        others = torch.ones_like(rows.numbers, dtype=torch.bool)
        others[:, numbers] = False
        spoiled = replace(rows, numbers=torch.where(others, 9.0, rows.numbers))
        with torch.inference_mode():
            assert torch.equal(network.read_group(group, spoiled), network.read_group(group, rows))
            assert not torch.equal(network(spoiled), network(rows))


def test_distinct_rows_give_every_row_back(predictor: GroupPoolingPredictor) -> None:
    rows = encoded(predictor, questions())
    everything = slice(None)
    first, place = distinct_rows(rows, everything, everything)
    assert len(first) == 50
    for array in (rows.numbers, rows.missing, rows.codes, rows.strings):
        assert torch.equal(array[first][place], array)


def test_rows_that_differ_in_one_missing_value_are_distinct(predictor: GroupPoolingPredictor) -> None:
    X = pd.concat([questions().iloc[:1]] * 2, ignore_index=True)
    known = [c.name for c in tiny_table(8).columns if c.role is Role.FEATURE and c.kind is Kind.NUMERICAL]
    X[known[0]] = X[known[0]].astype(float)
    X.loc[1, known[0]] = np.nan
    first, _ = distinct_rows(encoded(predictor, X), slice(None), slice(None))
    assert len(first) == 2


def test_a_group_without_names_or_without_numbers_is_read(predictor: GroupPoolingPredictor) -> None:
    table = tiny_table(80)
    columns = tuple(
        replace(column, group=str(column.kind)) if column.role is Role.FEATURE else column for column in table.columns
    )
    inputs = [column.name for column in columns if column.role is not Role.TARGET]
    X = table.frame[inputs]
    predictor = GroupPoolingPredictor(d_token=8, d_block=16, epochs=1).fit(X, table.frame[["score"]], columns=columns)
    assert isinstance(predictor.network_, GroupPoolingNetwork)
    assert 0 in predictor.network_.number_sizes
    assert 0 in predictor.network_.category_sizes
    rows = encoded(predictor, X)
    with torch.inference_mode():
        torch.testing.assert_close(predictor._predict_scaled(rows), predictor.network_(rows))
