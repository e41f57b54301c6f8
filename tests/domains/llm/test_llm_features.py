"""Times of a served model and costs of its operators on GPUs, against values worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.llm.accelerators.operator_costs import attended, experts_touched, operator_amounts, peak_tflops
from perfcast.domains.llm.features import gpu_operators, llm_serving
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
    table = llm_serving.derive(build_table("any", frame, infer_columns(frame)))
    assert {"t_weights", "t_cache", "t_queue", "step_layers"} <= set(table.select(tag=Tag.COST))
    assert "t_step" not in table.select(tag=Tag.COST)
    return table.frame.iloc[0]


def check(row, **expected):
    assert row[list(expected)].to_dict() == pytest.approx(expected)


def test_step_of_a_dense_model():
    row, prompt = derive(DENSE), (2 * 8e9 * 1000 + 4 * 32 * 1000**2 * 4096) / (2 * 1000e12) * 1e3
    weights, cache = 8e9 * 2 / (2 * 4000e9) * 1e3, 10 * 1100 * 32 * 2048 * 2 / (2 * 4000e9) * 1e3
    decode, exchange = 2 * 8e9 * 10 / (2 * 1000e12) * 1e3, 2 * 32 * 10 * 4096 * 2 / 400e9 * 1e3
    check(row, t_weights=weights, t_cache=cache, t_decode=decode, t_exchange=exchange, exchange_layers=32)
    check(row, t_prompt=prompt, t_mixed=prompt * 10 / 200, t_queue=prompt * 10)
    step = weights + cache + decode + exchange + prompt * 10 / 200
    check(row, t_step=step, weight_share=weights / step)
    check(derive(DENSE, gpus=1.0), t_exchange=0, exchange_layers=0)
    check(derive(DENSE, precision="fp8"), t_cache=cache / 2, t_decode=decode / 2)
    check(derive(DENSE, precision="fp4"), t_decode=decode)  # no peak of fp4 here: computed in bfloat16
    window = 10 * 2048 * 2 * (16 * 1100 + 16 * 128) / (2 * 4000e9) * 1e3
    check(derive(DENSE, full_layers=16.0, window_layers=16.0, window=128.0), t_cache=window)


def test_a_mixture_reads_the_chosen_experts_and_requests_whose_caches_do_not_fit_wait():
    shared = 0.35 * 10e9
    weights = (shared + (100e9 - shared) * 4 / 64) * 2 / (2 * 4000e9) * 1e3
    check(derive(MIXTURE, concurrency=1.0), experts_touched=4 / 64, t_weights=weights)
    weights = 100e9 * 2 / (2 * 4000e9) * 1e3
    check(derive(MIXTURE, concurrency=1e4), experts_touched=1, t_weights=weights, tokens_per_expert=1e4 * 4 / 64)
    fitting, row = (0.9 * 2 * 20 * 2**30 - 16e9) / (1100 * 32 * 2048 * 2), derive(DENSE, memory_gib=20.0)
    waiting = {"t_cache": row["t_cache"] * fitting / 10, "t_queue": row["t_queue"] * 90}
    check(derive(DENSE, memory_gib=20.0, concurrency=900.0), running=fitting, **waiting)
    assert (row["running"], derive(DENSE, memory_gib=1.0)["running"]) == (10, 1)


OPERATOR_GPU = {
    **{"bf16_tflops": 1000.0, "fp8_tflops": 2000.0, "fp4_tflops": np.nan, "memory_gb_per_s": 4000.0},
    **{"link_gb_per_s": 450.0, "sm_count": 100.0, "l2_mib": 50.0},
}
NAMES = "m n k batch sequence heads kv_heads head_dim window tokens hidden expert_hidden top_k experts tp ep gpus"
SHAPE = dict.fromkeys([*NAMES.split(), "bytes_message"], np.nan)
GEMM = {**OPERATOR_GPU, **SHAPE, "op": "gemm", "dtype": "bfloat16", "m": 300.0, "n": 2000.0, "k": 1000.0}
ATTENTION = {
    **{**OPERATOR_GPU, **SHAPE, "op": "context_attention", "dtype": "bfloat16", "batch": 2.0, "sequence": 1000.0},
    **{"heads": 32.0, "kv_heads": 8.0, "head_dim": 128.0, "window": 0.0},
}
MOE = {
    **{**OPERATOR_GPU, **SHAPE, "op": "moe", "dtype": "fp8", "tokens": 64.0, "hidden": 4096.0, "expert_hidden": 2048.0},
    **{"top_k": 8.0, "experts": 128.0, "tp": 2.0, "ep": 4.0},
}
COLLECTIVE = {**OPERATOR_GPU, **SHAPE, "op": "all_reduce", "dtype": "half", "gpus": 8.0, "bytes_message": 1e6}


def check_operator(known, changed, expected, logarithms=()):
    """Compare features of one row with values by hand; those of `logarithms` are given before their logarithm."""
    frame = pd.DataFrame([{**known, **changed}])
    frame = frame.assign(**operator_amounts(frame))
    table = gpu_operators.derive(build_table("any", frame, infer_columns(frame)))
    assert set(table.select(tag=Tag.BOUND)) == {"t_compute", "t_memory", "t_link"}
    assert {"t_compute", "t_waves", "t_cold", "t_hot", "t_link", "link_steps"} <= set(table.select(tag=Tag.COST))
    assert "t_memory" not in table.select(tag=Tag.COST)
    expected = expected | {f"log_{name}": np.log(value) for name, value in dict(logarithms).items()}
    assert table.frame.iloc[0][list(expected)].to_dict() == pytest.approx(expected)


def test_a_product():
    moved, flops = 2 * (300 * 1000 + 2000 * 1000 + 300 * 2000), 2 * 300 * 2000 * 1000
    memory, compute = moved / 4000e9 * 1e3, flops / 1000e12 * 1e3
    times = {"t_compute": compute, "t_memory": memory, "t_hot": memory, "t_cold": 0, "t_convert": 0, "t_link": 0}
    logarithms = {"light": memory, "intensity": compute / memory, "over_l2": moved / 2**20 / 50}
    check_operator(GEMM, {}, times | {"mb_per_sm": moved / 1e8, "converts": 0, "link_steps": 0}, logarithms)
    large = 2 * (300 * 1000 + 40000 * 1000 + 300 * 40000) / 4000e9 * 1e3
    check_operator(GEMM, {"n": 40000.0}, {"t_memory": large, "t_cold": large, "t_hot": 0})
    tiles, waves = 11 * 16, 2 * 100 * 128**2 * 2 * 1000 / 1000e12 * 1e3  # two full waves of 100 tiles
    logarithms = {"tiles_per_sm": tiles / 100, "tail": 2 / 1.76, "padding": tiles * 128**2 / (1300 * 2000)}
    check_operator(GEMM, {"m": 1300.0}, {"waves": 2, "wave_steps": 2 * 8, "t_waves": waves}, logarithms)
    for dtype, size, peak, converts in (
        *(("bfloat16", 2, 1000, 0), ("fp8", 1, 2000, 1), ("fp8_block", 1, 2000, 1), ("int4_wo", 0.53, 1000, 0)),
        ("nvfp4", 0.5625, 2000, 1),  # no unit for 4 bits here
    ):
        sizes = {"bytes_weights": size * 2000 * 1000, "bytes_input": size * 300 * 1000, "converts": converts}
        times = {"t_compute": flops / (peak * 1e12) * 1e3, "t_convert": converts * 3 * 300 * 1000 / 4000e9 * 1e3}
        check_operator(GEMM, {"dtype": dtype}, sizes | times)
    assert peak_tflops(pd.DataFrame([{**GEMM, "dtype": "nvfp4", "fp4_tflops": 4000.0}])) == [4000]


def test_attention_of_a_prompt_with_a_window_and_of_a_generated_token_that_reads_the_cache():
    amounts = {"flops": 4 * 2 * 32 * 128 * 1000**2 / 2, "bytes_input": 2 * 2 * 1000 * 32 * 128}
    amounts |= {"bytes_output": 2 * 2 * 1000 * 32 * 128, "bytes_weights": 2 * 2 * 1000 * 8 * 128 * 2}
    check_operator(
        ATTENTION, {}, amounts | {"queries_per_kv": 4, "attended_tokens": 1000}, {"tiles_per_sm": 2 * 32 * 8 / 100}
    )
    check_operator(ATTENTION, {"window": 128.0}, {"flops": 4 * 2 * 32 * 128 * (128 * 1000 - 128**2 / 2)})
    assert list(attended(np.array([100.0, 1000.0]), np.array([128.0, 128.0]))) == [5000, 128 * 1000 - 8192]
    flops, generated = 4 * 2 * 32 * 128 * 1000, {"op": "generation_attention"}
    # computed in bfloat16
    amounts = {"flops": flops, "bytes_weights": 2 * 2 * 1000 * 8 * 128, "t_compute": flops / 1000e12 * 1e3}
    check_operator(ATTENTION, {**generated, "dtype": "fp8"}, {**amounts, "converts": 1}, {"tiles_per_sm": 2 * 8 / 100})
    check_operator(ATTENTION, {**generated, "window": 128.0}, {"bytes_weights": 2 * 2 * 128 * 8 * 128 * 2})


def test_experts_of_a_mixture():
    pairs, here = 64 * 8 / 4, 32
    used = here * (1 - (1 - 1 / here) ** pairs)
    moved = pairs * (2 * 4096 + 3 * 1024) * 2
    expected = {"experts_here": here, "experts_share": used / here, "pairs_per_expert": pairs / used}
    expected |= {"flops": 6 * pairs * 4096 * 1024, "bytes_weights": used * 3 * 4096 * 1024}
    check_operator(MOE, {}, expected | {"t_convert": 3 * 64 * 4096 / 4000e9 * 1e3})
    amounts = operator_amounts(pd.DataFrame([MOE]))
    assert amounts["bytes_input"] + amounts["bytes_output"] == pytest.approx(moved)
    assert experts_touched(np.array([5.0]), np.array([1.0])) == pytest.approx([1.0])


def test_steps_and_bytes_of_collectives():
    for op, passes in {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "alltoall": 1}.items():
        link = 1e6 * passes * 7 / 8 / 450e9 * 1e3
        times = {"t_link": link, "link_steps": passes * 7, "t_compute": 0, "t_memory": 0, "t_waves": 0}
        check_operator(COLLECTIVE, {"op": op}, times, {"light": link})
