"""Derived characteristics of matrix products, against arithmetic done by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.gemm.datasets import host_gemm
from perfcast.domains.gemm.features import gemm
from perfcast.domains.gemm.testing import host_gemm as fake
from perfcast.schema.table import Column, Kind, Role, Table, Tag, build_table, out_of_bounds

MACHINE = {"cores": 4, "l1d_kib": 32, "l2_kib": 64, "l3_kib": 1024}


def table(**changed: object) -> Table:
    row = {"m": 64, "n": 48, "k": 10, "dtype": "float32", "transpose_a": 0, "transpose_b": 0, "threads": 2}
    frame = pd.DataFrame([{**row, **MACHINE, **changed}])
    columns = [
        Column(name, Kind.CATEGORICAL if name == "dtype" else Kind.NUMERICAL, Role.FEATURE, "problem")
        for name in gemm.REQUIRES
    ]
    return build_table("products", frame, columns)


def derived(**changed: object) -> pd.Series:
    return gemm.derive(table(**changed)).frame.iloc[0]


def test_work_and_traffic() -> None:
    row = derived()
    touched = 4 * (64 * 10 + 10 * 48 + 64 * 48)
    flop = 2 * 64 * 48 * 10
    expected = {
        "mflop": flop / 1e6,
        "mb_touched": touched / 1e6,
        "flop_per_byte": flop / touched,
        "mflop_per_thread": flop / 1e6 / 2,
        "thread_share": 0.5,
        "footprint_over_l2": touched / 1024 / 64,
        "log_mflop": math.log(flop / 1e6),
    }
    assert row[list(expected)].to_dict() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("dtype", "size"), [("bfloat16", 2), ("float32", 4), ("float64", 8)])
def test_element_size(dtype: str, size: int) -> None:
    assert derived(dtype=dtype)["element_bytes"] == size


def test_shape_is_symmetric_around_square() -> None:
    row, turned = derived(), derived(m=48, n=64)
    assert (row["side_min"], row["side_max"]) == (10, 64)
    assert row["aspect_mn"] == pytest.approx(-turned["aspect_mn"])
    assert row["aspect_mn"] == pytest.approx(math.log(64 / 48), rel=1e-9)
    assert row["aspect_k"] == turned["aspect_k"] < 0
    assert derived(m=7, n=7, k=7)[["aspect_mn", "aspect_k", "aspect_side"]].tolist() == [0, 0, 0]


def test_alignment() -> None:
    row = derived()
    assert row[["align_m", "align_n", "align_k"]].tolist() == [6, 4, 1]
    assert row["tile_use_16"] == 10 / 16
    assert row["tile_use_64"] == pytest.approx(48 / 64 * 10 / 64)
    assert derived(k=64, n=128)["tile_use_64"] == 1


def test_strides_follow_the_transposes() -> None:
    # 10 and 48 floats are 40 and 192 bytes, 64 floats are 256.
    assert derived()[["stride_align_a", "stride_align_b"]].tolist() == [3, 6]
    assert derived(transpose_a=1, transpose_b=1)[["stride_align_a", "stride_align_b"]].tolist() == [8, 3]


@pytest.mark.parametrize(("side", "level"), [(16, "l1d"), (60, "l2"), (128, "l3"), (1000, "memory")])
def test_the_smallest_cache_that_holds_the_operands(side: int, level: str) -> None:
    assert derived(m=side, n=side, k=side)["fits_in"] == level


def test_missing_stays_missing() -> None:
    row = derived(m=np.nan, l3_kib=np.nan)
    assert row[["mflop", "align_m", "tile_use_4", "aspect_mn", "footprint_over_l3", "fits_in"]].isna().all()
    assert row[["align_n", "stride_align_b"]].notna().all()
    assert derived(dtype="int8")[["element_bytes", "mb_touched", "fits_in"]].isna().all()


def test_generated_table_is_within_bounds_and_has_scaling_terms(tmp_path: Path) -> None:
    fake.write(tmp_path, rows=80, seed=0)
    extended = gemm.derive(host_gemm.build({"host_gemm": tmp_path}, {}).table)
    assert not out_of_bounds(extended).any(axis=None)
    scaling = extended.select(tag=Tag.SCALING)
    assert {"threads", "mflop", "side_min", "flop_per_byte"} == set(scaling)
    assert (extended.frame[scaling] > 0).all(axis=None)
    assert set(extended.select(tag=Tag.SLICE)) == {"fits_in"}


def test_a_missing_column_is_told() -> None:
    whole = table()
    without = Table(whole.dataset, whole.frame.drop(columns="k"), tuple(c for c in whole.columns if c.name != "k"))
    with pytest.raises(ValueError, match="k"):
        gemm.derive(without)
