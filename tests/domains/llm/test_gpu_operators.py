"""Dataset gpu_operators: shapes drawn by their name, repeated cases, quarantine, marks of rows faster than light."""

import shutil
import zlib

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.llm.datasets import operator_tables
from perfcast.domains.llm.sources import aiconfigurator_operators as source
from perfcast.domains.llm.testing.aiconfigurator_operators import write
from perfcast.utils.errors import UserError

COMMON = {"version": "0.1", "kernel_source": "kernel"}
GEMM = {"m": 64, "n": 4096, "k": 4096, "gemm_dtype": "fp8", "latency": 0.05, **COMMON}
MOE = {
    **{"num_tokens": 8, "hidden_size": 4096, "inter_size": 1536, "topk": 8, "num_experts": 128, "moe_tp_size": 1},
    **{"moe_ep_size": 2, "distribution": "balanced", "moe_dtype": "bfloat16", "latency": 0.1, **COMMON},
}
NCCL = {"op_name": "all_gather", "num_gpus": 4, "message_size": 512, "nccl_dtype": "half", "latency": 0.01, **COMMON}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables") / "written"
    write(folder, rows=40, seed=1)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written, tmp_path / "source")


def replace(folder, system, table, *rows):
    pd.DataFrame(rows).to_parquet(folder / source.table_file(system, table), index=False)


def build(folder, **options):
    built = operator_tables.build({"aiconfigurator_operators": folder}, options)
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    return built


def rows_of(built, gpu, op):
    frame = built.table.frame
    return frame[(frame["gpu"] == gpu) & (frame["op"] == op)]


def test_a_row_has_its_keys_and_the_facts_of_its_gpu(folder):
    light = 1e3 * (64 * 4096 + 4096**2 + 2 * 64 * 4096) / 3350e9
    slow = {**GEMM, "m": 63, "latency": 0.99 * light}
    replace(folder, "h100_sxm", "gemm", {**GEMM, "latency": 0.9 * light}, slow)
    replace(folder, "h100_sxm", "nccl", NCCL, {**NCCL, "nccl_dtype": "int8"})
    replace(folder, "a100_sxm", "moe", MOE, {**MOE, "latency": 0.3}, {**MOE, "num_tokens": 9})
    built = build(folder)
    rows = rows_of(built, "H100", "gemm")
    assert list(rows["faster_than_light"]) == [1, 0], "marked and kept"
    row = rows.iloc[0]
    assert row["result_id"] == "H100/gemm/fp8/64|4096|4096"
    assert (row["gpu_family"], row["shape_site"], row["dtype"]) == ("hopper", "gemm|4096|4096", "fp8")
    assert (row["architecture_year"].year, row["sm_count"], row["backend"]) == (2022, 132, "vllm")
    assert row["flops"] == 2 * 64 * 4096 * 4096
    assert (row["bytes_input"], row["bytes_weights"], row["bytes_output"]) == (64 * 4096, 4096**2, 2 * 64 * 4096)
    assert np.isnan(row["batch"])
    assert list(rows_of(built, "H100", "all_gather")["bytes_message"]) == [1024, 512]
    assert set(rows_of(built, "A100", "context_attention")["window"]) == {0}
    # a repeated case has the median of its times
    assert built.merged["repeated_case"] == 1
    assert rows_of(built, "A100", "moe").set_index("tokens")["latency"].to_dict() == {8: pytest.approx(0.2), 9: 0.1}
    assert built.quality["repeated"] == {"cases": 1, "median_ratio": 3.0, "largest_ratio": 3.0}


def test_a_shape_is_drawn_on_every_gpu_or_on_none(folder):
    shapes = [{**GEMM, "m": m} for m in range(1, 65)]
    for system in ("h100_sxm", "l40s"):
        replace(folder, system, "gemm", *shapes)
    built = build(folder, one_in={"gemm": 8})
    expected = {m for m in range(1, 65) if zlib.crc32(f"gemm|{m}|4096|4096".encode()) % 8 == 0}
    assert expected
    for gpu in ("H100", "L40S"):
        assert set(rows_of(built, gpu, "gemm")["m"]) == expected
    assert built.merged["shape_not_drawn"] >= 2 * (64 - len(expected))


def test_a_defective_row_is_rejected_with_its_reason(folder):
    defects = [({"latency": 0.0}, "not_positive"), ({"latency": np.nan}, "not_positive")]
    defects += [({"latency": np.inf}, "not_positive"), ({"k": 0}, "not_a_shape")]
    replace(folder, "h200_sxm", "gemm", GEMM, *({**GEMM, "m": 65, **changed} for changed, _ in defects))
    replace(folder, "h200_sxm", "nccl", {**NCCL, "nccl_dtype": "float8"}, NCCL)
    rejected = build(folder).rejected
    expected = {"gemm": [(line, reason) for line, (_, reason) in enumerate(defects, 2)], "nccl": [(1, "unknown_dtype")]}
    for table, lines in expected.items():
        here = rejected[rejected["file"] == source.table_file("h200_sxm", table)]
        assert list(zip(here["line"], here["reason"], strict=True)) == lines


def test_an_impossible_option_is_refused(written):
    for one_in in ({"gemm": 0}, {"other": 2}, {"gemm": True}, 3):
        with pytest.raises(UserError, match="one_in"):
            build(written, one_in=one_in)


def test_the_check_refuses_a_damaged_or_too_large_table(folder, monkeypatch):
    path = folder / source.table_file("b60", "gemm")
    content = path.read_bytes()
    for frame, message in (
        (pd.DataFrame([GEMM]).drop(columns="k"), "must have a column 'k'"),
        (pd.DataFrame([GEMM]).iloc[:0], "must have rows"),
    ):
        frame.to_parquet(path, index=False)
        with pytest.raises(UserError, match=message):
            build(folder)
    path.write_bytes(content[:-20])
    with pytest.raises(UserError, match=r"b60/gemm\.parquet must be a Parquet file"):
        build(folder)
    path.write_bytes(content)
    for limit, bound, message in (("TABLE_ROWS", 3, "rows, at most 3"), ("UNPACKED", 10, "at most 10 bytes")):
        with monkeypatch.context() as limited, pytest.raises(UserError, match=message):
            limited.setattr(source.size_limits, limit, bound)
            build(folder)
