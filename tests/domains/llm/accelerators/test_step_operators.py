"""Operators of a served model, against shapes and times worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.llm.accelerators.accelerator_catalog import read_gpus, read_layers, read_models
from perfcast.domains.llm.accelerators.served_memory import running_requests, shortest_step
from perfcast.domains.llm.accelerators.step_operators import PARTS, PEAKS, add_parts, light_of, list_operators

DENSE = {
    **{"model_family": "llama8", "gpu": "H100", "precision": "bf16", "input_tokens": 1000.0, "output_tokens": 200.0},
    **{"concurrency": 16.0, "running": 16.0, "tensor_parallel": 2.0, "attention_data_parallel": 1.0, "gpus": 2.0},
    **{"moe_tensor_parallel": 1.0, "moe_expert_parallel": 1.0},
}
MIXTURE = {
    **{**DENSE, "model_family": "dsv3", "gpu": "H200", "precision": "fp8", "tensor_parallel": 1.0, "gpus": 8.0},
    **{"attention_data_parallel": 8.0, "moe_expert_parallel": 8.0},
}


def deployments(*rows):
    frame = pd.DataFrame(rows)
    facts = read_models().loc[frame["model_family"]].reset_index(drop=True)
    shape = facts.select_dtypes("number").drop(columns="quality")
    memory = read_gpus().loc[frame["gpu"], ["memory_gib", *PEAKS]].reset_index(drop=True)
    return frame.join(shape).join(memory)


def operators(*rows, phase="step"):
    listed = list_operators(deployments(*rows))
    return listed[listed["phase"] == phase]


def test_layers_are_those_of_the_catalog_of_models():
    assert set(read_layers().index) == set(read_models().index)


def test_parameters_of_the_layers_add_up_to_those_of_the_model():
    listed = operators({**DENSE, "tensor_parallel": 1.0})
    products = listed[listed["op"] == "gemm"]
    weights = (products["n"] * products["k"] * products["count"]).sum()
    embedded = 128256 * 4096  # a row of it is looked up
    assert (weights + embedded) / 1e9 == pytest.approx(read_models().loc["llama8", "total_params_1e9"], rel=0.01)


def test_products_and_attention_of_a_dense_model_are_shared_by_its_gpus():
    listed = operators(DENSE)
    products = listed[listed["op"] == "gemm"][["count", "m", "n", "k"]].to_numpy().tolist()
    assert [32, 16, (32 + 2 * 8) * 128 / 2, 4096] in products
    assert [32, 16, 4096, 32 * 128 / 2] in products
    assert [32, 16, 2 * 14336 / 2, 4096] in products
    assert [1, 16, 128256 / 2, 4096] in products
    attention = listed[listed["op"] == "generation_attention"].iloc[0]
    assert attention[["batch", "sequence", "heads", "kv_heads", "head_dim"]].tolist() == [16, 1100, 16, 4, 128]
    sums = listed[listed["op"] == "all_reduce"].iloc[0]
    assert (sums["count"], sums["bytes_message"], sums["gpus"]) == (64, 16 * 4096 * 2, 2)
    assert "moe" not in set(listed["op"])


def test_copies_of_attention_share_requests_and_experts_see_all_of_them():
    listed = operators(MIXTURE)
    experts = listed[listed["op"] == "moe"].iloc[0]
    assert (experts["count"], experts["tokens"], experts["ep"], experts["experts"]) == (58, 16, 8, 256)
    attention = listed[listed["op"] == "generation_attention"].iloc[0]
    assert attention["batch"] == 2
    # the cache of a latent layer: one vector of 576 elements per token
    assert 2 * attention["kv_heads"] * attention["head_dim"] == 576
    assert set(listed.loc[listed["part"] == "exchange", "op"]) == {"all_gather", "reduce_scatter"}


def test_parts_add_operators_up():
    frame = deployments(DENSE)
    listed = list_operators(frame)
    parts = add_parts(listed, np.ones(len(listed)), frame)
    step, prompt = listed[listed["phase"] == "step"], listed[listed["phase"] == "prompt"]
    assert set(parts) == set(PARTS)
    assert parts["attention"][0] == 32
    assert parts["products"][0] == step.loc[step["part"] == "products", "count"].sum()
    assert parts["experts"][0] == 0
    total = prompt["count"].sum()
    assert parts["prompt"][0] == total
    assert parts["mixed"][0] == pytest.approx(total * 16 / 200)
    assert parts["queue"][0] == pytest.approx(total * 16)
    assert parts["wait"][0] == pytest.approx(total * (total * 16 / 200) / step["count"].sum())


def test_a_model_without_facts_has_no_parts():
    frame = deployments(DENSE).assign(model_family="unknown", total_params_1e9=np.nan)
    listed = list_operators(frame)
    parts = add_parts(listed, light_of(listed), frame)
    assert all(np.isnan(values).all() for values in parts.values())


def test_light_of_an_operator_is_the_longer_of_operations_and_bytes():
    listed = operators(DENSE)
    head = listed[listed["n"] == 128256 / 2]
    moved = 2 * (16 * 4096 + 128256 / 2 * 4096 + 16 * 128256 / 2)
    assert light_of(head) == pytest.approx([moved / 3350e9 * 1e3])


def test_requests_that_wait_read_no_cache():
    frame = deployments(DENSE)
    tpot = pd.Series([10.0])
    none, long = (shortest_step(frame, pd.Series([ttft]), tpot) for ttft in (0.0, 199 * 10.0))
    weights = 8.03e9 * 2
    cache = 2048 * 2 * 32 * 1100
    assert none[0] == pytest.approx((weights + 16 * cache) / (2 * 3350e9) * 1e3)
    assert long[0] == pytest.approx((weights + 8 * cache) / (2 * 3350e9) * 1e3)
    assert running_requests(frame)[0] == 16
