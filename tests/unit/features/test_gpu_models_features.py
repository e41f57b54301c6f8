"""Sums, shares and ratios of whole models, against values worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from perfcast.features import gpu_models
from perfcast.schema.table import Tag, build_table, infer_columns

GPU = {"fp32_gflops": 10000.0, "memory_gb_per_s": 500.0, "l2_mib": 4.0, "sm_count": 40.0}
ZERO = {f"{amount}_{kind}": 0.0 for amount in gpu_models.AMOUNTS for kind in gpu_models.KINDS}
RUN = {
    **GPU,
    **ZERO,
    **{"kernels_linear": 3.0, "flops_linear": 5e9, "bytes_linear": 4e6, "part_linear": 0.75, "fitted_linear": 0.9},
    **{"kernels_copy": 8.0, "bytes_copy": 1e6, "part_copy": 0.25, "fitted_copy": 0.3},
}


def table(**changed):
    frame = pd.DataFrame([{**RUN, **changed}])
    return gpu_models.derive(build_table("any", frame, infer_columns(frame)))


def test_sums_and_ratios():
    row = table().frame.iloc[0]
    assert (row["t_light"], row["t_kernels"], row["kernels"]) == (1.0, pytest.approx(1.2), 3)
    assert row["t_compute"] == pytest.approx(5e9 / 10000e9 * 1e3)
    assert row["t_memory"] == pytest.approx(5e6 / 500e9 * 1e3)
    assert row["balance"] == 20
    assert (row["share_linear"], row["share_copy"], row["share_bmm"]) == (0.75, 0.25, 0)
    assert row["log_slowdown"] == pytest.approx(np.log(1.2))
    assert row["log_light_per_kernel"] == pytest.approx(np.log(1 / 3))
    assert row["log_bytes_over_l2"] == pytest.approx(np.log(5e6 / 2**20 / 3 / 4))
    assert row["log_l2_per_sm"] == pytest.approx(np.log(0.1))


def test_an_unknown_estimate_of_one_kind_is_an_unknown_sum():
    row = table(fitted_linear=np.nan).frame.iloc[0]
    assert np.isnan(row["t_kernels"])
    assert row["t_light"] == 1.0


def test_the_bound_and_the_estimate_are_tagged():
    derived = table()
    assert derived.select(tag=Tag.BOUND) == ["t_light"]
    assert derived.select(tag=Tag.ESTIMATE) == ["t_kernels"]
    assert derived.select(tag=Tag.COST) == ["kernels"]
