"""Measurement of operators of language models."""

import numpy as np
import pandas as pd
import pytest
import torch

from perfcast.cli.main import main
from perfcast.domains.gemm import measured_operators as operators
from perfcast.domains.gemm.operator_calls import Operator, make_call
from perfcast.domains.llm.accelerators.operator_costs import operator_amounts
from perfcast.utils.io import read_object

CASES = {
    "gemm": Operator("gemm", m=3, n=64, k=128),
    "context_attention": Operator("context_attention", batch=2, sequence=8, heads=4, kv_heads=2, head_dim=16),
    "generation_attention": Operator("generation_attention", batch=2, sequence=8, heads=4, kv_heads=2, head_dim=16),
    "moe": Operator("moe", tokens=5, hidden=64, expert_hidden=32, top_k=2, experts=4),
}


def call(name):
    return make_call(CASES[name], "float32", "cpu", torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("gemm", (3, 64)),
        ("context_attention", (2, 4, 8, 16)),
        ("generation_attention", (2, 4, 1, 16)),
        ("moe", (5, 64)),
    ],
)
def test_every_operator_runs_on_its_shape(name, shape):
    result = call(name)()
    assert result.shape == shape
    assert torch.isfinite(result).all() and result.abs().sum() > 0


def test_a_mixture_sums_the_experts_of_every_token():
    case, generator = CASES["moe"], torch.Generator().manual_seed(0)
    x, up, down = (torch.rand(shape, generator=generator) - 0.5 for shape in ((5, 64), (4, 64, 64), (4, 32, 64)))
    expected = torch.zeros(5, 64)
    for pair in range(5 * 2):
        token, expert = pair // 2, pair % 4
        gate, value = (x[token] @ up[expert]).chunk(2)
        expected[token] += (torch.nn.functional.silu(gate) * value) @ down[expert]
    torch.testing.assert_close(make_call(case, "float32", "cpu", torch.Generator().manual_seed(0))(), expected)


@pytest.mark.parametrize("name", CASES)
def test_operations_are_those_of_the_features(name):
    case = CASES[name]
    row = {**{key: value or np.nan for key, value in case.lengths().items()}, "window": 0.0, "tp": 1.0, "ep": 1.0}
    frame = pd.DataFrame([{"op": name, "dtype": "float32", "gpus": np.nan, "bytes_message": np.nan, **row}])
    assert operator_amounts(frame)["flops"][0] == pytest.approx(case.flops)


def test_shapes_are_distinct_bounded_and_as_many_of_every_operator():
    drawn = operators.draw_operators(400, device="cpu", elements=1e6, seed=1)
    assert drawn == operators.draw_operators(400, device="cpu", elements=1e6, seed=1)
    assert len(set(drawn)) == 400
    assert set(pd.Series([operator.op for operator in drawn]).value_counts()) == {100}
    assert max(operator.flops for operator in drawn) <= 1e9 and max(operator.elements for operator in drawn) <= 1e6


def test_measurement_writes_table_and_device(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(operators._PEAK_SIZE, "cpu", 64)
    monkeypatch.setitem(operators._COPY_BYTES, "cpu", 2**16)
    monkeypatch.setitem(operators._MAX_FLOPS, "cpu", 1e6)
    real = operators.time_product
    monkeypatch.setattr(operators, "time_product", lambda product: (*real(product)[:2], False))
    arguments = ["measure", "operators", "--out", str(tmp_path), "--shapes", "8", "--threads", "1"]
    assert main([*arguments, "--dtype", "float32", "--budget-minutes", "0.1"]) == 0
    table = pd.read_csv(tmp_path / "host_operators.csv.gz")
    assert sorted(table["op"].unique()) == sorted(CASES) and (table["seconds_median"] > 0).all()
    device = read_object(tmp_path / "host_operators.json")["device"]
    assert device["peak_tflops"] > 0 and device["memory_gb_per_s"] > 0
    assert (device["sm_count"], device["dtype"]) == (1, "float32")
    assert "measured 8 shapes" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_absent_gpu_is_one_line(capsys):
    assert main(["measure", "operators", "--device", "cuda"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
