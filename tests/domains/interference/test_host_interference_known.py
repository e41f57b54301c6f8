"""Metrics alone: means of earlier seconds alone, by hand and on generated seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.interference.datasets import host_interference
from perfcast.domains.interference.datasets.host_interference_known import ALONE, average_alone, build
from perfcast.domains.interference.sources import host_interference as source
from perfcast.domains.interference.testing import host_interference as generated


def test_a_mean_is_over_earlier_seconds_alone_of_the_same_tenant() -> None:
    seconds = pd.DataFrame(
        [
            (0, 1, 0, 3, "together", 50.0),
            (0, 1, 0, 1, "alone", 10.0),
            (0, 1, 0, 2, "alone", 30.0),
            (0, 1, 0, 5, "alone", 500.0),
            (0, 1, 0, 6, "together", 70.0),
            (0, 1, 1, 1, "alone", 7.0),
            (0, 1, 1, 2, "alone", np.nan),
            (0, 1, 1, 3, "together", 1.0),
            (1, 1, 0, 3, "together", 1.0),
        ],
        columns=["run", "attempt", "tenant", "second", "phase", "metric"],
    )
    means = average_alone(seconds, ["metric"])[:, 0]
    np.testing.assert_allclose(means, [20, np.nan, 10, 20, 180, np.nan, 7, 7, np.nan])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("interference")
    generated.write(path, rows=600, seed=2)
    return path


def test_rows_and_labels_are_those_of_the_dataset_without_it(folder: Path) -> None:
    known = build({"host_interference": folder}, {}).table
    plain = host_interference.build({"host_interference": folder}, {}).table
    assert (known.dataset, plain.dataset) == ("host_interference_known", "host_interference")
    pd.testing.assert_frame_equal(known.frame[list(plain.frame)], plain.frame)
    added = known.columns[len(plain.columns) :]
    assert {column.group for column in added} == {"alone"}
    assert all(column.name.startswith(f"{ALONE}group.") for column in added)


def test_a_row_has_the_mean_of_its_own_tenant(folder: Path) -> None:
    frame = build({"host_interference": folder}, {}).table.frame
    seconds = pd.read_parquet(folder / source.TABLE)
    row = frame[frame["is_reference"] == 0].iloc[-1]
    origin = seconds.iloc[int(row["source_line"]) - 1]
    same = (seconds[["run", "attempt", "tenant"]] == origin[["run", "attempt", "tenant"]]).all(axis=1)
    earlier = seconds[same & (seconds["phase"] == "alone") & (seconds["second"] < origin["second"])]
    metric = "group.cpu.usage_seconds"
    assert row[ALONE + metric] == pytest.approx(earlier[metric].mean(), rel=1e-6)
