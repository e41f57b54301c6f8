"""Costs and ratios of operators on GPUs, against values worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.llm.accelerators.operator_costs import attended, experts_touched, operator_amounts, peak_tflops
from perfcast.domains.llm.features import gpu_operators
from perfcast.schema.table import Tag, build_table, infer_columns

GPU = {
    **{"bf16_tflops": 1000.0, "fp8_tflops": 2000.0, "fp4_tflops": np.nan, "memory_gb_per_s": 4000.0},
    **{"link_gb_per_s": 450.0, "sm_count": 100.0, "l2_mib": 50.0},
}
SHAPE = dict.fromkeys(
    (
        *("m", "n", "k", "batch", "sequence", "heads", "kv_heads", "head_dim", "window", "tokens", "hidden"),
        *("expert_hidden", "top_k", "experts", "tp", "ep", "gpus", "bytes_message"),
    ),
    np.nan,
)
GEMM = {**GPU, **SHAPE, "op": "gemm", "dtype": "bfloat16", "m": 300.0, "n": 2000.0, "k": 1000.0}
ATTENTION = {
    **{**GPU, **SHAPE, "op": "context_attention", "dtype": "bfloat16", "batch": 2.0, "sequence": 1000.0},
    **{"heads": 32.0, "kv_heads": 8.0, "head_dim": 128.0, "window": 0.0},
}
MOE = {
    **{**GPU, **SHAPE, "op": "moe", "dtype": "fp8", "tokens": 64.0, "hidden": 4096.0, "expert_hidden": 2048.0},
    **{"top_k": 8.0, "experts": 128.0, "tp": 2.0, "ep": 4.0},
}
COLLECTIVE = {**GPU, **SHAPE, "op": "all_reduce", "dtype": "half", "gpus": 8.0, "bytes_message": 1e6}


def derive(known, **changed):
    frame = pd.DataFrame([{**known, **changed}])
    frame = frame.assign(**operator_amounts(frame))
    return gpu_operators.derive(build_table("any", frame, infer_columns(frame))).frame.iloc[0]


def test_a_product():
    row = derive(GEMM)
    assert row["t_compute"] == pytest.approx(2 * 300 * 2000 * 1000 / 1000e12 * 1e3)
    moved = 2 * (300 * 1000 + 2000 * 1000 + 300 * 2000)
    assert row["t_memory"] == pytest.approx(moved / 4000e9 * 1e3)
    assert (row["t_hot"], row["t_cold"]) == (row["t_memory"], 0)
    assert row["log_light"] == pytest.approx(np.log(row["t_memory"]))
    assert row["log_intensity"] == pytest.approx(np.log(row["t_compute"] / row["t_memory"]))
    assert row["log_over_l2"] == pytest.approx(np.log(moved / 2**20 / 50))
    assert row["mb_per_sm"] == pytest.approx(moved / 1e6 / 100)
    assert (row["converts"], row["t_convert"], row["t_link"], row["link_steps"]) == (0, 0, 0, 0)


def test_waves_of_a_product():
    row = derive(GEMM, m=1300.0)
    tiles = 11 * 16
    assert row["log_tiles_per_sm"] == pytest.approx(np.log(tiles / 100))
    assert (row["waves"], row["wave_steps"]) == (2, 2 * 8)
    assert row["log_tail"] == pytest.approx(np.log(2 / 1.76))
    assert row["log_padding"] == pytest.approx(np.log(tiles * 128**2 / (1300 * 2000)))
    # two full waves of 100 tiles
    assert row["t_waves"] == pytest.approx(2 * 100 * 128 * 128 * 2 * 1000 / 1000e12 * 1e3)


def test_a_large_product_is_read_from_memory():
    row = derive(GEMM, n=40000.0)
    assert (row["t_cold"], row["t_hot"]) == (row["t_memory"], 0)


@pytest.mark.parametrize(
    ("dtype", "weights", "inputs", "peak", "converts"),
    [
        ("bfloat16", 2, 2, 1000, 0),
        ("fp8", 1, 1, 2000, 1),
        ("fp8_block", 1, 1, 2000, 1),
        ("nvfp4", 0.5625, 0.5625, 2000, 1),  # no unit for 4 bits here
        ("int4_wo", 0.53, 0.53, 1000, 0),
    ],
)
def test_formats_of_a_product(dtype, weights, inputs, peak, converts):
    row = derive(GEMM, dtype=dtype)
    assert row["bytes_weights"] == pytest.approx(weights * 2000 * 1000)
    assert row["bytes_input"] == pytest.approx(inputs * 300 * 1000)
    assert row["t_compute"] == pytest.approx(2 * 300 * 2000 * 1000 / (peak * 1e12) * 1e3)
    assert row["converts"] == converts
    assert row["t_convert"] == pytest.approx(converts * 3 * 300 * 1000 / 4000e9 * 1e3)


def test_a_gpu_with_units_for_four_bits():
    assert peak_tflops(pd.DataFrame([{**GEMM, "dtype": "nvfp4", "fp4_tflops": 4000.0}])) == [4000]


def test_attention_of_a_prompt():
    row = derive(ATTENTION)
    assert row["flops"] == 4 * 2 * 32 * 128 * 1000**2 / 2
    assert row["bytes_input"] == row["bytes_output"] == 2 * 2 * 1000 * 32 * 128
    assert row["bytes_weights"] == 2 * 2 * 1000 * 8 * 128 * 2
    assert row["log_tiles_per_sm"] == pytest.approx(np.log(2 * 32 * 8 / 100))
    assert (row["queries_per_kv"], row["attended_tokens"]) == (4, 1000)


def test_attention_with_a_window():
    row = derive(ATTENTION, window=128.0)
    assert row["flops"] == 4 * 2 * 32 * 128 * (128 * 1000 - 128**2 / 2)
    assert list(attended(np.array([100.0, 1000.0]), np.array([128.0, 128.0]))) == [5000, 128 * 1000 - 8192]


def test_attention_of_a_generated_token_reads_the_cache():
    row = derive(ATTENTION, op="generation_attention", dtype="fp8")
    assert row["flops"] == 4 * 2 * 32 * 128 * 1000
    assert row["bytes_weights"] == 2 * 2 * 1000 * 8 * 128
    assert row["t_compute"] == pytest.approx(row["flops"] / 1000e12 * 1e3)  # computed in bfloat16
    assert row["log_tiles_per_sm"] == pytest.approx(np.log(2 * 8 / 100))
    assert row["converts"] == 1
    assert derive(ATTENTION, op="generation_attention", window=128.0)["bytes_weights"] == 2 * 2 * 128 * 8 * 128 * 2


def test_experts_of_a_mixture():
    row = derive(MOE)
    pairs, here = 64 * 8 / 4, 32
    used = here * (1 - (1 - 1 / here) ** pairs)
    assert row["experts_here"] == here
    assert row["experts_share"] == pytest.approx(used / here)
    assert row["pairs_per_expert"] == pytest.approx(pairs / used)
    assert row["flops"] == 6 * pairs * 4096 * 1024
    assert row["bytes_weights"] == pytest.approx(used * 3 * 4096 * 1024)
    assert row["bytes_input"] + row["bytes_output"] == pytest.approx(pairs * (2 * 4096 + 3 * 1024) * 2)
    assert row["t_convert"] == pytest.approx(3 * 64 * 4096 / 4000e9 * 1e3)


def test_one_expert_is_always_used():
    assert experts_touched(np.array([5.0]), np.array([1.0])) == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("op", "passes"), [("all_reduce", 2), ("all_gather", 1), ("reduce_scatter", 1), ("alltoall", 1)]
)
def test_steps_and_bytes_of_collectives(op, passes):
    row = derive(COLLECTIVE, op=op)
    assert row["t_link"] == pytest.approx(1e6 * passes * 7 / 8 / 450e9 * 1e3)
    assert row["link_steps"] == passes * 7
    assert row["log_light"] == pytest.approx(np.log(row["t_link"]))
    assert (row["t_compute"], row["t_memory"], row["t_waves"]) == (0, 0, 0)


def test_terms_and_bounds_are_tagged():
    frame = pd.DataFrame([GEMM])
    frame = frame.assign(**operator_amounts(frame))
    table = gpu_operators.derive(build_table("any", frame, infer_columns(frame)))
    assert set(table.select(tag=Tag.BOUND)) == {"t_compute", "t_memory", "t_link"}
    assert {"t_compute", "t_waves", "t_cold", "t_hot", "t_link", "link_steps"} <= set(table.select(tag=Tag.COST))
    assert "t_memory" not in table.select(tag=Tag.COST)
