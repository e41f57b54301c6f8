"""Waves of tiles at a learned utilization."""

import numpy as np
import pandas as pd
import pytest
import torch

from perfcast.nn.tile_utilization import TileUtilization, symmetric_error
from perfcast.predictors.neural.neusight import COLUMNS, NeusightPredictor
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Column, Kind, Role, Tag

DECLARED = (
    Column("kind", Kind.CATEGORICAL, Role.KEY, "shape", tags=(Tag.TASK,)),
    *(Column(name, Kind.NUMERICAL, Role.FEATURE, "tile") for name in COLUMNS),
    Column("latency", Kind.NUMERICAL, Role.TARGET, "shape"),
)
SMALL = {"epochs": 60, "d_block": 32, "n_blocks": 2, "batch_size": 128}


def kernels(rows=600, seed=0, speed=1.0):
    """Return kernels that reach 60 % of the peaks of a GPU, after a launch of 0.01 ms."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "kind": "bmm",
            "tiles": random.integers(1, 4000, rows).astype(float),
            "tile_flops": 2.0 * 128 * 128 * random.integers(32, 2048, rows),
            "tile_bytes": random.uniform(1e4, 1e6, rows),
            "sm_count": random.choice([20.0, 40.0, 80.0], rows),
            "fp32_gflops": speed * random.choice([5000.0, 10000.0], rows),
            "memory_gb_per_s": speed * random.choice([300.0, 900.0], rows),
            "l2_mib": 4.0,
        }
    )
    waves = np.ceil(frame["tiles"] / frame["sm_count"])
    compute = frame["tile_flops"] * frame["sm_count"] / frame["fp32_gflops"] / 1e6
    memory = frame["tile_bytes"] * frame["sm_count"] / frame["memory_gb_per_s"] / 1e6
    return frame, pd.DataFrame({"latency": 0.01 + waves * np.maximum(compute, memory) / 0.6})


def test_learns_a_constant_utilization_and_extrapolates_to_a_faster_gpu(tmp_path):
    model = NeusightPredictor(**SMALL).fit(*kernels(), columns=DECLARED)
    frame, expected = kernels(seed=1, speed=5.0)
    error = np.abs(model.predict(frame) / expected - 1)["latency"]
    assert error.median() < 0.05
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(load_predictor(tmp_path / "model").predict(frame), model.predict(frame))


def test_time_grows_in_proportion_to_many_waves():
    model = NeusightPredictor(**SMALL).fit(*kernels(), columns=DECLARED)
    frame, _ = kernels(seed=2)
    few, many = (model.predict(frame.assign(tiles=tiles, sm_count=20.0))["latency"] for tiles in (2e5, 2e6))
    np.testing.assert_allclose(many / few, 10, rtol=0.05)


def test_a_kernel_without_tiles_gets_the_median():
    frame, latency = kernels()
    model = NeusightPredictor(**SMALL).fit(frame, latency, columns=DECLARED)
    unknown = frame.iloc[:2].assign(tiles=[np.nan, 0.0])
    assert list(model.predict(unknown)["latency"]) == pytest.approx([latency["latency"].median()] * 2, rel=1e-3)


def test_a_single_wave_loses_utilization():
    network = TileUtilization(1, 4, 1, log_launch=-20.0)
    numbers, light = torch.zeros(3, 1), torch.zeros(3)
    single, double, many = network(numbers, torch.tensor([1.0, 2.0, 1e6]), light).tolist()
    assert single > double > many > 0


def test_the_symmetric_error_is_that_of_the_paper():
    predicted, measured = torch.tensor([2.0, 1.0, 4.0]), torch.tensor([1.0, 2.0, 4.0])
    expected = ((predicted - measured).abs() / ((predicted + measured) / 2)).mean()
    assert symmetric_error(torch.log(predicted / measured)) == pytest.approx(float(expected))
