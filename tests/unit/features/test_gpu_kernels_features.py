"""Times, tiles and waves of kernels in single precision, against values worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from perfcast.features import gpu_kernels
from perfcast.schema.table import Tag, build_table, infer_columns

GPU = {"fp32_gflops": 10000.0, "memory_gb_per_s": 500.0, "sm_count": 40.0, "l2_mib": 4.0, "clock_mhz": 1000.0}
BMM = {**GPU, "kind": "bmm", "op": "bmm", "batch": 10.0, "m": 300.0, "n": 200.0, "k": 100.0, "width": np.nan}
ADD = {
    **GPU,
    "kind": "element-wise",
    "op": "add",
    "batch": 1000.0,
    "m": np.nan,
    "n": np.nan,
    "k": np.nan,
    "width": 512.0,
}


def derive(known, **changed):
    frame = pd.DataFrame([{**known, **changed}])
    return gpu_kernels.derive(build_table("any", frame, infer_columns(frame))).frame.iloc[0]


def test_a_batch_of_products():
    row = derive(BMM)
    assert row["t_compute"] == pytest.approx(2 * 10 * 300 * 200 * 100 / 10000e9 * 1e3)
    moved = 4 * 10 * (300 * 100 + 100 * 200 + 300 * 200)
    assert row["t_memory"] == pytest.approx(moved / 500e9 * 1e3)
    tiles = 10 * 3 * 2
    assert row["tiles"] == tiles
    assert row["log_tail"] == pytest.approx(np.log(2 / 1.5))
    assert row["log_padding"] == pytest.approx(np.log(6 * 128**2 / (300 * 200)))
    assert row["t_waves"] == pytest.approx(2 * 40 * 2 * 128 * 128 * 100 / 10000e9 * 1e3)
    assert row["tile_flops"] == pytest.approx(2 * 128 * 128 * 100)
    assert row["tile_bytes"] == pytest.approx(moved / tiles)
    assert row["t_loads"] == pytest.approx(4 * 10 * (100 * (3 * 200 + 2 * 300) + 300 * 200) / 500e9 * 1e3)
    assert row["t_cycles"] == pytest.approx(2 * 100 / 1e9 * 1e3)


@pytest.mark.parametrize(
    ("op", "tensors", "operations"), [("add", 3, 1), ("addu", 2, 1), ("div", 3, 4), ("tanh", 2, 8)]
)
def test_element_wise_operations(op, tensors, operations):
    row = derive(ADD, op=op)
    assert row["t_memory"] == pytest.approx(4 * tensors * 512000 / 500e9 * 1e3)
    assert row["t_compute"] == pytest.approx(operations * 512000 / 10000e9 * 1e3)
    assert row["tiles"] == 500
    assert row["log_padding"] == 0
    assert np.isnan(row["log_m"])


def test_terms_and_bounds_are_tagged():
    frame = pd.DataFrame([BMM, ADD])
    table = gpu_kernels.derive(build_table("any", frame, infer_columns(frame)))
    assert table.select(tag=Tag.BOUND) == ["t_compute", "t_memory"]
    assert set(table.select(tag=Tag.COST)) == {"t_compute", "t_waves", "t_memory", "t_loads", "t_cycles"}
