"""Derived characteristics of matrix products on cores and GPUs, against arithmetic done by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.gemm.features import gemm, gemm_costs, gpu_gemm
from perfcast.schema.table import Column, Kind, Role, Tag, build_table, infer_columns

MACHINE = {
    "cores": 4,
    "l1d_kib": 32,
    "l2_kib": 64,
    "l3_kib": 1024,
}


def table(**changed):
    row = {
        "m": 64,
        "n": 48,
        "k": 10,
        "dtype": "float32",
        "transpose_a": 0,
        "transpose_b": 0,
        "threads": 2,
    }
    frame = pd.DataFrame([{**row, **MACHINE, **changed}])
    columns = [
        Column(
            name,
            Kind.CATEGORICAL if name == "dtype" else Kind.NUMERICAL,
            Role.FEATURE,
            "problem",
        )
        for name in gemm.REQUIRES
    ]
    return build_table("products", frame, columns)


def derived(**changed):
    derived_table = gemm.derive(table(**changed))
    assert set(derived_table.select(tag=Tag.SCALING)) == {
        "mflop",
        "side_min",
        "flop_per_byte",
    }
    assert derived_table.select(tag=Tag.SLICE) == ["fits_in"]
    return derived_table.frame.iloc[0]


def test_work_and_traffic():
    row = derived()
    touched = 4 * (64 * 10 + 10 * 48 + 64 * 48)
    flop = 2 * 64 * 48 * 10
    assert (row["mflop"], row["mb_touched"]) == pytest.approx((flop / 1e6, touched / 1e6))
    assert (row["flop_per_byte"], row["mflop_per_thread"]) == pytest.approx((flop / touched, flop / 1e6 / 2))
    assert (row["thread_share"], row["footprint_over_l2"]) == pytest.approx((0.5, touched / 1024 / 64))
    assert row["log_mflop"] == pytest.approx(math.log(flop / 1e6))
    sizes = [derived(dtype=dtype)["element_bytes"] for dtype in ("bfloat16", "float32", "float64")]
    assert sizes == [2, 4, 8]


def test_shape_alignment_and_strides():
    row = derived()
    turned = derived(m=48, n=64)
    assert (row["side_min"], row["side_max"]) == (10, 64)
    assert row["aspect_mn"] == pytest.approx(-turned["aspect_mn"])
    assert row["aspect_mn"] == pytest.approx(math.log(64 / 48), rel=1e-9)
    assert row["aspect_k"] == turned["aspect_k"] < 0
    assert row[["align_m", "align_n", "align_k"]].tolist() == [6, 4, 1]
    assert (row["tile_use_16"], row["tile_use_64"]) == pytest.approx((10 / 16, 48 / 64 * 10 / 64))
    assert derived(k=64, n=128)["tile_use_64"] == 1
    # 10 and 48 floats are 40 and 192 bytes, 64 floats are 256.
    assert row[["stride_align_a", "stride_align_b"]].tolist() == [3, 6]
    assert derived(transpose_a=1, transpose_b=1)[["stride_align_a", "stride_align_b"]].tolist() == [8, 3]


def test_the_smallest_cache_that_holds_the_operands_and_what_is_missing():
    levels = {16: "l1d", 60: "l2", 128: "l3", 1000: "memory"}
    assert {side: derived(m=side, n=side, k=side)["fits_in"] for side in levels} == levels
    row = derived(m=np.nan, l3_kib=np.nan)
    assert (
        row[
            [
                "mflop",
                "align_m",
                "tile_use_4",
                "aspect_mn",
                "footprint_over_l3",
                "fits_in",
            ]
        ]
        .isna()
        .all()
    )
    assert row[["align_n", "stride_align_b"]].notna().all()
    assert derived(dtype="int8")[["element_bytes", "mb_touched", "fits_in"]].isna().all()


GPU = {
    "m": 512.0,
    "n": 300.0,
    "k": 100.0,
    "dtype": "float32",
    "transpose_a": 0.0,
    "transpose_b": 1.0,
    "beta": 0.0,
    "tile_m": 128.0,
    "tile_n": 128.0,
    "tile_k": 8.0,
    "sms": 10.0,
    "lanes": 128.0,
    "boost_mhz": 2000.0,
    "l2_mib": 2.0,
    "gb_per_s": 500.0,
}
CORES = {
    "m": 20.0,
    "n": 32.0,
    "k": 300.0,
    "dtype": "float32",
    "transpose_a": 1.0,
    "transpose_b": 0.0,
    "threads": 2.0,
}


def derived_costs(module, known, **changed):
    frame = pd.DataFrame([{**known, **changed}])
    return module.derive(build_table("any", frame, infer_columns(frame)))


def test_waves_traffic_and_the_two_roofs_on_a_gpu():
    row = derived_costs(gpu_gemm, GPU).frame.iloc[0]
    assert (row["tiles"], row["waves"], row["wave_steps"]) == (12, 2, 2 * 13)
    assert row["wave_use"] == pytest.approx(12 / 20)
    assert row["tile_use"] == pytest.approx(512 * 300 / (12 * 128 * 128))
    assert derived_costs(gpu_gemm, GPU, m=300.0).frame.iloc[0]["waves"] == 1
    added = derived_costs(gpu_gemm, GPU, beta=0.5).frame.iloc[0]
    assert (row["mb_old"], added["mb_old"]) == (0, pytest.approx(4 * 512 * 300 / 1e6))
    assert added["mb_touched"] - row["mb_touched"] == pytest.approx(added["mb_old"])
    flops = 2 * 512 * 300 * 100
    touched = 4 * (512 * 100 + 100 * 300 + 512 * 300)
    assert (row["mflop"], row["mb_touched"]) == (
        pytest.approx(flops / 1e6),
        pytest.approx(touched / 1e6),
    )
    assert row["flop_per_byte"] == pytest.approx(flops / touched)
    assert row["compute_ms"] == pytest.approx(1e3 * flops / (2 * 10 * 128 * 2e9))
    assert row["memory_ms"] == pytest.approx(1e3 * touched / 500e9)
    assert row["mb_loaded"] == pytest.approx(4 * 100 * (4 * 300 + 3 * 512) / 1e6)
    row = derived_costs(gpu_gemm, GPU, sms=float("nan")).frame.iloc[0]
    assert row[["waves", "wave_steps", "compute_ms"]].isna().all()
    assert row["tiles"] == 12


def test_amounts_of_a_product_on_cores():
    table = derived_costs(gemm_costs, CORES)
    row = table.frame.iloc[0]
    assert row["thread_mflop"] == pytest.approx(20 * 32 * 300 / 1e6)
    assert row["filled_mflop"] == pytest.approx(32 * 32 * 300 / 1e6)
    assert (row["mb_a"], row["mb_b"], row["mb_c"]) == pytest.approx((0.024, 0.0384, 0.00256))
    assert row["mb_c_again"] == pytest.approx(0.00256 * 2 / 2)
    assert (
        row["mb_a_strided"],
        row["mb_b_strided"],
        row["further_threads"],
    ) == pytest.approx((0.024, 0, 1))
    assert table.select(tag=Tag.WORK) == ["work_mflop"]
    assert row["work_mflop"] == pytest.approx(2 * 20 * 32 * 300 / 1e6)
