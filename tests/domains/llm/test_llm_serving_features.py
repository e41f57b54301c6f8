"""Times of a decoding step and of a prompt, against values worked out by hand."""

import pandas as pd
import pytest

from perfcast.domains.llm.features import llm_serving
from perfcast.schema.table import Tag, build_table, infer_columns

DENSE = {
    **{"input_tokens": 1000.0, "output_tokens": 200.0, "concurrency": 10.0, "gpus": 2.0, "precision": "bf16"},
    **{"total_params_1e9": 8.0, "active_params_1e9": 8.0, "layers": 32.0, "hidden": 4096.0, "kv_elements": 2048.0},
    **{"full_layers": 32.0, "window_layers": 0.0, "window": 0.0, "experts": 0.0, "experts_per_token": 0.0},
    **{"bf16_tflops": 1000.0, "fp8_tflops": 2000.0, "fp4_tflops": float("nan")},
    **{"memory_gb_per_s": 4000.0, "memory_gib": 80.0, "link_gb_per_s": 400.0},
}
MIXTURE = {
    **{**DENSE, "memory_gib": 1000.0, "total_params_1e9": 100.0},
    **{"active_params_1e9": 10.0, "experts": 64.0, "experts_per_token": 4.0},
}


def derive(known, **changed):
    frame = pd.DataFrame([{**known, **changed}])
    return llm_serving.derive(build_table("any", frame, infer_columns(frame))).frame.iloc[0]


def test_step_of_a_dense_model():
    row = derive(DENSE)
    assert row["t_weights"] == pytest.approx(8e9 * 2 / (2 * 4000e9) * 1e3)
    assert row["t_cache"] == pytest.approx(10 * 1100 * 32 * 2048 * 2 / (2 * 4000e9) * 1e3)
    assert derive(DENSE, precision="fp8")["t_cache"] == row["t_cache"] / 2
    assert row["t_decode"] == pytest.approx(2 * 8e9 * 10 / (2 * 1000e12) * 1e3)
    assert row["t_exchange"] == pytest.approx(2 * 32 * 10 * 4096 * 2 / 400e9 * 1e3)
    prompt = (2 * 8e9 * 1000 + 4 * 32 * 1000**2 * 4096) / (2 * 1000e12) * 1e3
    assert row["t_prompt"] == pytest.approx(prompt)
    assert row["t_mixed"] == pytest.approx(prompt * 10 / 200)
    assert row["t_queue"] == pytest.approx(prompt * 10)
    parts = ["t_weights", "t_cache", "t_decode", "t_exchange", "t_mixed"]
    assert row["t_step"] == pytest.approx(row[parts].sum())
    assert row["weight_share"] == pytest.approx(row["t_weights"] / row["t_step"])


def test_one_gpu_exchanges_nothing():
    row = derive(DENSE, gpus=1.0)
    assert (row["t_exchange"], row["exchange_layers"]) == (0, 0)
    assert derive(DENSE)["exchange_layers"] == 32


def test_a_mixture_reads_the_experts_that_its_requests_choose():
    row = derive(MIXTURE, concurrency=1.0)
    assert row["experts_touched"] == pytest.approx(4 / 64)
    shared = 0.35 * 10e9
    assert row["t_weights"] == pytest.approx((shared + (100e9 - shared) * 4 / 64) * 2 / (2 * 4000e9) * 1e3)
    many = derive(MIXTURE, concurrency=1e4)
    assert many["experts_touched"] == pytest.approx(1)
    assert many["t_weights"] == pytest.approx(100e9 * 2 / (2 * 4000e9) * 1e3)
    assert many["tokens_per_expert"] == pytest.approx(1e4 * 4 / 64)


def test_requests_whose_caches_do_not_fit_wait():
    fitting = (0.9 * 2 * 20 * 2**30 - 16e9) / (1100 * 32 * 2048 * 2)
    row, many = derive(DENSE, memory_gib=20.0), derive(DENSE, memory_gib=20.0, concurrency=900.0)
    assert row["running"] == 10
    assert many["running"] == pytest.approx(fitting)
    assert many["t_cache"] == pytest.approx(row["t_cache"] * fitting / 10)
    assert many["t_queue"] == pytest.approx(row["t_queue"] * 90)
    assert derive(DENSE, memory_gib=1.0)["running"] == 1


def test_layers_with_a_window_cache_no_more_than_it():
    row = derive(DENSE, full_layers=16.0, window_layers=16.0, window=128.0)
    assert row["t_cache"] == pytest.approx(10 * 2048 * 2 * (16 * 1100 + 16 * 128) / (2 * 4000e9) * 1e3)


def test_a_format_without_a_peak_is_computed_in_bfloat16():
    assert derive(DENSE, precision="fp4")["t_decode"] == pytest.approx(derive(DENSE)["t_decode"])
    assert derive(DENSE, precision="fp8")["t_decode"] == pytest.approx(derive(DENSE)["t_decode"] / 2)


def test_terms_of_the_roofline_are_tagged():
    frame = pd.DataFrame([DENSE])
    table = llm_serving.derive(build_table("any", frame, infer_columns(frame)))
    assert {"t_weights", "t_cache", "t_queue", "step_layers"} <= set(table.select(tag=Tag.COST))
    assert "t_step" not in table.select(tag=Tag.COST)
