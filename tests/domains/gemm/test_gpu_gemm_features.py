"""Waves, tiles and traffic of a product on a GPU, the amounts of one on cores: against values worked out by hand."""

import pandas as pd
import pytest

from perfcast.domains.gemm.features import gemm_costs, gpu_gemm
from perfcast.schema.table import Tag, build_table, infer_columns

GPU = {
    **{"m": 512.0, "n": 300.0, "k": 100.0, "dtype": "float32", "transpose_a": 0.0, "transpose_b": 1.0, "beta": 0.0},
    **{"tile_m": 128.0, "tile_n": 128.0, "tile_k": 8.0, "sms": 10.0, "lanes": 128.0, "boost_mhz": 2000.0},
    **{"l2_mib": 2.0, "gb_per_s": 500.0},
}
CORES = {"m": 20.0, "n": 32.0, "k": 300.0, "dtype": "float32", "transpose_a": 1.0, "transpose_b": 0.0, "threads": 2.0}


def derived(module, known, **changed):
    frame = pd.DataFrame([{**known, **changed}])
    return module.derive(build_table("any", frame, infer_columns(frame)))


def test_a_started_wave_counts_in_full():
    row = derived(gpu_gemm, GPU).frame.iloc[0]
    assert (row["tiles"], row["waves"], row["wave_steps"]) == (12, 2, 2 * 13)
    assert row["wave_use"] == pytest.approx(12 / 20)
    assert row["tile_use"] == pytest.approx(512 * 300 / (12 * 128 * 128))
    assert derived(gpu_gemm, GPU, m=300.0).frame.iloc[0]["waves"] == 1


def test_the_old_result_is_read_only_where_it_counts():
    without, with_it = derived(gpu_gemm, GPU).frame.iloc[0], derived(gpu_gemm, GPU, beta=0.5).frame.iloc[0]
    assert (without["mb_old"], with_it["mb_old"]) == (0, pytest.approx(4 * 512 * 300 / 1e6))
    assert with_it["mb_touched"] - without["mb_touched"] == pytest.approx(with_it["mb_old"])


def test_work_and_the_two_roofs():
    row = derived(gpu_gemm, GPU).frame.iloc[0]
    flops, touched = 2 * 512 * 300 * 100, 4 * (512 * 100 + 100 * 300 + 512 * 300)
    assert (row["mflop"], row["mb_touched"]) == (pytest.approx(flops / 1e6), pytest.approx(touched / 1e6))
    assert row["flop_per_byte"] == pytest.approx(flops / touched)
    assert row["compute_ms"] == pytest.approx(1e3 * flops / (2 * 10 * 128 * 2e9))
    assert row["memory_ms"] == pytest.approx(1e3 * touched / 500e9)
    assert row["mb_loaded"] == pytest.approx(4 * 100 * (4 * 300 + 3 * 512) / 1e6)


def test_an_unknown_device_leaves_its_columns_missing():
    row = derived(gpu_gemm, GPU, sms=float("nan")).frame.iloc[0]
    assert row[["waves", "wave_steps", "compute_ms"]].isna().all()
    assert row["tiles"] == 12


def test_amounts_of_a_product_on_cores():
    table = derived(gemm_costs, CORES)
    row = table.frame.iloc[0]
    assert row["thread_mflop"] == pytest.approx(20 * 32 * 300 / 1e6)
    assert row["filled_mflop"] == pytest.approx(32 * 32 * 300 / 1e6)
    assert (row["mb_a"], row["mb_b"], row["mb_c"]) == pytest.approx((0.024, 0.0384, 0.00256))
    assert row["mb_c_again"] == pytest.approx(0.00256 * 2 / 2)
    assert (row["mb_a_strided"], row["mb_b_strided"], row["further_threads"]) == pytest.approx((0.024, 0, 1))
    assert table.select(tag=Tag.WORK) == ["work_mflop"]
    assert row["work_mflop"] == pytest.approx(2 * 20 * 32 * 300 / 1e6)
