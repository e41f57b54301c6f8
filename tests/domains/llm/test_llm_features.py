"""Times of a served model and costs of its operators on GPUs, against values worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.llm.accelerators.operator_costs import (
    attended,
    light_time,
    operator_amounts,
    peak_tflops,
)
from perfcast.domains.llm.features import llm_serving
from perfcast.schema.table import Tag, build_table, infer_columns

DENSE = {
    "input_tokens": 1000.0,
    "output_tokens": 200.0,
    "concurrency": 10.0,
    "gpus": 2.0,
    "precision": "bf16",
    "total_params_1e9": 8.0,
    "active_params_1e9": 8.0,
    "layers": 32.0,
    "hidden": 4096.0,
    "kv_elements": 2048.0,
    "full_layers": 32.0,
    "window_layers": 0.0,
    "window": 0.0,
    "experts": 0.0,
    "experts_per_token": 0.0,
    "bf16_tflops": 1000.0,
    "fp8_tflops": 2000.0,
    "fp4_tflops": float("nan"),
    "memory_gb_per_s": 4000.0,
    "memory_gib": 80.0,
    "link_gb_per_s": 400.0,
}
MIXTURE = {
    **DENSE,
    "memory_gib": 1000.0,
    "total_params_1e9": 100.0,
    "active_params_1e9": 10.0,
    "experts": 64.0,
    "experts_per_token": 4.0,
}


def derive(known, **changed):
    frame = pd.DataFrame([{**known, **changed}])
    table = llm_serving.derive(build_table("any", frame, infer_columns(frame)))
    assert {
        "t_weights",
        "t_cache",
        "t_queue",
        "step_layers",
    } <= set(table.select(tag=Tag.COST))
    assert "t_step" not in table.select(tag=Tag.COST)
    return table.frame.iloc[0]


def check(row, **expected):
    assert row[list(expected)].to_dict() == pytest.approx(expected)


def test_step_of_a_dense_model():
    row = derive(DENSE)
    prompt = (2 * 8e9 * 1000 + 4 * 32 * 1000**2 * 4096) / (2 * 1000e12) * 1e3
    weights = 8e9 * 2 / (2 * 4000e9) * 1e3
    cache = 10 * 1100 * 32 * 2048 * 2 / (2 * 4000e9) * 1e3
    decode = 2 * 8e9 * 10 / (2 * 1000e12) * 1e3
    exchange = 2 * 32 * 10 * 4096 * 2 / 400e9 * 1e3
    check(
        row,
        t_weights=weights,
        t_cache=cache,
        t_decode=decode,
        t_exchange=exchange,
        exchange_layers=32,
    )
    check(row, t_prompt=prompt, t_mixed=prompt * 10 / 200, t_queue=prompt * 10)
    step = weights + cache + decode + exchange + prompt * 10 / 200
    check(row, t_step=step, weight_share=weights / step)
    check(derive(DENSE, gpus=1.0), t_exchange=0, exchange_layers=0)
    check(derive(DENSE, precision="fp8"), t_cache=cache / 2, t_decode=decode / 2)
    check(derive(DENSE, precision="fp4"), t_decode=decode)  # no peak of fp4 here: computed in bfloat16
    window = 10 * 2048 * 2 * (16 * 1100 + 16 * 128) / (2 * 4000e9) * 1e3
    check(
        derive(DENSE, full_layers=16.0, window_layers=16.0, window=128.0),
        t_cache=window,
    )


def test_a_mixture_reads_the_chosen_experts_and_requests_whose_caches_do_not_fit_wait():
    shared = 0.35 * 10e9
    weights = (shared + (100e9 - shared) * 4 / 64) * 2 / (2 * 4000e9) * 1e3
    check(derive(MIXTURE, concurrency=1.0), experts_touched=4 / 64, t_weights=weights)
    weights = 100e9 * 2 / (2 * 4000e9) * 1e3
    check(
        derive(MIXTURE, concurrency=1e4),
        experts_touched=1,
        t_weights=weights,
        tokens_per_expert=1e4 * 4 / 64,
    )
    fitting = (0.9 * 2 * 20 * 2**30 - 16e9) / (1100 * 32 * 2048 * 2)
    row = derive(DENSE, memory_gib=20.0)
    waiting = {"t_cache": row["t_cache"] * fitting / 10, "t_queue": row["t_queue"] * 90}
    check(derive(DENSE, memory_gib=20.0, concurrency=900.0), running=fitting, **waiting)
    assert (row["running"], derive(DENSE, memory_gib=1.0)["running"]) == (10, 1)


OPERATOR_GPU = {
    "bf16_tflops": 1000.0,
    "fp8_tflops": 2000.0,
    "fp4_tflops": np.nan,
    "memory_gb_per_s": 4000.0,
    "link_gb_per_s": 450.0,
}
GEMM = {
    "op": "gemm",
    "dtype": "bfloat16",
    "m": 300.0,
    "n": 2000.0,
    "k": 1000.0,
}
ATTENTION = {
    "op": "context_attention",
    "dtype": "bfloat16",
    "batch": 2.0,
    "sequence": 1000.0,
    "heads": 32.0,
    "kv_heads": 8.0,
    "head_dim": 128.0,
    "window": 0.0,
}
MOE = {
    "op": "moe",
    "dtype": "fp8",
    "tokens": 64.0,
    "hidden": 4096.0,
    "expert_hidden": 2048.0,
    "top_k": 8.0,
    "experts": 128.0,
    "tp": 2.0,
    "ep": 4.0,
}
COLLECTIVE = {
    "op": "all_reduce",
    "dtype": "half",
    "gpus": 8.0,
    "bytes_message": 1e6,
}


def amounts_of(operator, **changed):
    """Return the amounts of one operator, and its shortest time."""
    frame = pd.DataFrame([{**OPERATOR_GPU, **operator, **changed}])
    amounts = operator_amounts(frame)
    return {name: values[0] for name, values in amounts.items()} | {"light": light_time(frame, amounts)[0]}


def check_amounts(operator, changed, expected):
    amounts = amounts_of(operator, **changed)
    assert {name: amounts[name] for name in expected} == pytest.approx(expected)


def test_a_product_takes_the_longer_of_its_operations_and_its_bytes():
    moved = 2 * (300 * 1000 + 2000 * 1000 + 300 * 2000)
    flops = 2 * 300 * 2000 * 1000
    check_amounts(GEMM, {}, {"flops": flops, "light": moved / 4000e9 * 1e3})
    check_amounts(GEMM, {"m": 30000.0}, {"light": 100 * flops / 1000e12 * 1e3})
    sizes = {
        "bfloat16": 2,
        "fp8": 1,
        "fp8_block": 1,
        "int4_wo": 0.53,
        "nvfp4": 0.5625,
    }
    for dtype, size in sizes.items():
        check_amounts(
            GEMM,
            {"dtype": dtype},
            {"bytes_weights": size * 2000 * 1000, "bytes_input": size * 300 * 1000},
        )
    peaks = {
        "bfloat16": 1000,
        "fp8": 2000,
        "int4_wo": 1000,
        "nvfp4": 2000,
    }  # no unit for 4 bits here
    for dtype, peak in peaks.items():
        assert peak_tflops(pd.DataFrame([{**OPERATOR_GPU, **GEMM, "dtype": dtype}])) == [peak]
    with_unit = {**OPERATOR_GPU, **GEMM, "dtype": "nvfp4", "fp4_tflops": 4000.0}
    assert peak_tflops(pd.DataFrame([with_unit])) == [4000]


def test_attention_of_a_prompt_with_a_window_and_of_a_generated_token_that_reads_the_cache():
    amounts = {
        "flops": 4 * 2 * 32 * 128 * 1000**2 / 2,
        "bytes_input": 2 * 2 * 1000 * 32 * 128,
    }
    amounts |= {
        "bytes_output": 2 * 2 * 1000 * 32 * 128,
        "bytes_weights": 2 * 2 * 1000 * 8 * 128 * 2,
    }
    check_amounts(ATTENTION, {}, amounts)
    check_amounts(
        ATTENTION,
        {"window": 128.0},
        {"flops": 4 * 2 * 32 * 128 * (128 * 1000 - 128**2 / 2)},
    )
    assert list(attended(np.array([100.0, 1000.0]), np.array([128.0, 128.0]))) == [
        5000,
        128 * 1000 - 8192,
    ]
    generated = {"op": "generation_attention"}
    amounts = {
        "flops": 4 * 2 * 32 * 128 * 1000,
        "bytes_weights": 2 * 2 * 1000 * 8 * 128,
    }
    check_amounts(ATTENTION, {**generated, "dtype": "fp8"}, amounts)
    check_amounts(
        ATTENTION,
        {**generated, "window": 128.0},
        {"bytes_weights": 2 * 2 * 128 * 8 * 128 * 2},
    )


def test_experts_of_a_mixture_and_bytes_of_a_collective():
    pairs = 64 * 8 / 4
    here = 32
    used = here * (1 - (1 - 1 / here) ** pairs)
    check_amounts(
        MOE,
        {},
        {"flops": 6 * pairs * 4096 * 1024, "bytes_weights": used * 3 * 4096 * 1024},
    )
    amounts = amounts_of(MOE)
    assert amounts["bytes_input"] + amounts["bytes_output"] == pytest.approx(pairs * (2 * 4096 + 3 * 1024) * 2)
    link = 1e6 * 2 * 7 / 8
    check_amounts(COLLECTIVE, {}, {"bytes_link": link, "light": link / 450e9 * 1e3})
