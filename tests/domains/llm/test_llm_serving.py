"""Dataset llm_serving: parsing of the origin, quarantine by layout, the same run in two collections."""

import csv

import numpy as np
import pandas as pd
import pytest

from perfcast import splits
from perfcast.domains.llm.accelerators.accelerator_catalog import find_gpus, find_models
from perfcast.domains.llm.datasets import deployments
from perfcast.domains.llm.testing import aiconfigurator_operators
from perfcast.domains.llm.testing.aiconfigurator import FILE, HEADER
from perfcast.schema.table import Table

ROW = dict(
    zip(
        HEADER,
        (
            *("run/1", "source_file=/home/somebody/a.csv; silicon_concurrency=16; measured=2026-03-05T00:00:00Z"),
            *("vllm", "0.1", "openai/gpt-oss-120b", "h100_sxm", "fp4", "agg", "1024", "512", "nvfp4", "nvfp4", "16"),
            *("4", "1", "1", "4", "1", "150.5", "8.25"),
        ),
        strict=True,
    )
)


def build(folder, *rows):
    with (folder / FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HEADER)
        writer.writeheader()
        writer.writerows([{**ROW, **row} for row in rows])
    built = deployments.build({"aiconfigurator": folder}, {})
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    return built


def test_a_measurement_has_a_row_for_each_quantity(tmp_path):
    built = build(tmp_path, {})
    frame = built.table.frame.set_index("quantity")
    assert frame["latency"].to_dict() == {"ttft": 150.5, "tpot": 8.25}
    row = frame.loc["tpot"]
    assert (row["gpu"], row["generation"], row["model"], row["model_family"]) == (
        "H100",
        "hopper",
        "gpt-oss-120b",
        "gptoss",
    )
    assert (row["concurrency"], row["gpus"], row["experts"], row["memory_gb_per_s"]) == (16, 4, 128, 3350)
    assert row["measured"] == pd.Timestamp("2026-03-05")
    assert row["configuration"] == row["deployment"] + "|16"
    assert "somebody" not in frame.to_csv()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"silicon_data_source": "a.csv", "batch_size": ""}, "no_concurrency"),
        ({"moe_ep_size": "0"}, "parallelism_zero"),
        ({"tp_size": "16", "moe_tp_size": "4", "moe_ep_size": "4"}, "parallelism_squared"),
        ({"tp_size": "2", "attention_dp_size": "2", "moe_tp_size": "1", "moe_ep_size": "4"}, "parallelism_squared"),
        ({"tp_size": "72", "moe_tp_size": "72"}, "tp_of_a_pool"),
        ({"mode": "disagg", "tp_size": "", "moe_tp_size": ""}, "disaggregated"),
        ({"model_path": "somebody/other-1b"}, "unknown_model"),
        ({"system": "h900"}, "unknown_gpu"),
        ({"precision": "fp7"}, "unknown_precision"),
        ({"silicon_tpot_ms": "inf"}, "not_a_number"),
        ({"silicon_ttft_ms": "0"}, "not_positive"),
        ({"tp_size": "-4"}, "not_a_layout"),
        ({"silicon_tpot_ms": "0.5"}, "faster_than_memory"),
    ],
)
def test_a_defective_measurement_is_rejected_with_its_reason(tmp_path, changed, reason):
    built = build(tmp_path, {}, changed)
    assert list(built.rejected["reason"]) == [reason]
    assert list(built.rejected["line"]) == [3]
    assert len(built.table.frame) == 2


def test_a_dense_model_has_no_layout_of_experts_to_square(tmp_path):
    layout = {
        "tp_size": "4",
        "moe_tp_size": "2",
        "moe_ep_size": "2",
        "model_path": "Qwen/Qwen3-32B",
        "precision": "fp8",
    }
    assert build(tmp_path, layout).rejected.empty


def test_the_same_run_in_two_collections_is_one(tmp_path):
    same, other = {"backend_version": "0.2", "silicon_tpot_ms": "8.2505"}, {"silicon_tpot_ms": "8.3"}
    built = build(tmp_path, {}, same, other)
    assert built.merged == {"same_measurement": 2}
    assert sorted(built.table.frame["source_line"].unique()) == [2, 4]


def test_one_run_under_two_names_of_a_shape_is_one(tmp_path):
    twin = {"model_path": "deepseek-ai/DeepSeek-V3", "precision": "fp8", "tp_size": "8", "moe_tp_size": "8"}
    twin["silicon_tpot_ms"] = "30"
    built = build(tmp_path, {**twin, "model_path": "deepseek-ai/DeepSeek-R1"}, twin, {**twin, "silicon_tpot_ms": "33"})
    assert built.merged == {"same_measurement": 2}
    assert built.table.frame["deployment"].nunique() == 1


def test_the_split_by_deployment_finds_a_copy_under_another_name(tmp_path):
    table = build(tmp_path, {}, {"silicon_data_source": "silicon_concurrency=8"}).table
    keys = {
        name: table.frame[name] + "|" + table.frame["source_line"].astype(str)
        for name in ("deployment", "configuration")
    }
    twins = table.frame.assign(**keys, concurrency=8.0)
    folds = pd.DataFrame({"fold_0": np.where(twins["source_line"] == 2, "train", "test")}, twins.index)
    leaks = splits.leaks(Table(table.dataset, twins, table.columns), folds, "unseen_deployment")
    assert leaks == ["fold_0: 1 feature vectors both in train or validation and in test"]


def test_unstated_values_have_a_default(tmp_path):
    row = {"precision": "", "gemm_quant_mode": "", "attention_dp_size": "", "silicon_data_source": "a.csv"}
    frame = build(tmp_path, row).table.frame
    assert set(frame["precision"]) == {"bf16"}
    assert set(frame["attention_data_parallel"]) == {1}
    assert set(frame["concurrency"]) == {16}
    assert frame["measured"].isna().all()


def test_work_in_progress_is_marked(tmp_path):
    frame = build(tmp_path, {}, {"silicon_data_source": "silicon_concurrency=8; wip=True"}).table.frame
    assert frame.groupby("concurrency")["in_progress"].first().to_dict() == {8: 1, 16: 0}


def test_names_of_gpus_and_models():
    assert list(find_gpus(pd.Series([" H200_SXM", "gb200", "h900"])).fillna("-")) == ["H200", "GB200", "-"]
    names = pd.Series(["deepseek-ai/DeepSeek-R1", "nvidia/DeepSeek-V3.1-NVFP4", "gpt-oss-7b"])
    assert list(find_models(names).fillna("-")) == ["dsv3", "dsv3", "-"]


def test_a_slowdown_is_that_of_the_measured_operators_of_the_gpu(tmp_path):
    tables = tmp_path / "tables"
    aiconfigurator_operators.write(tables, rows=200, seed=0)
    with (tmp_path / FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HEADER)
        writer.writeheader()
        writer.writerows([ROW, {**ROW, "model_path": "meta-llama/Llama-3.1-8B", "tp_size": "1", "moe_tp_size": "1"}])
    raw = {"aiconfigurator": tmp_path, "aiconfigurator_operators": tables}
    frame = deployments.build(raw, {}).table.frame.drop_duplicates("model_family").set_index("model_family")
    # generated operators take six microseconds more than 1 / 0.6 of the speed of light
    assert (frame["part_products_slowdown"] > 1 / 0.6 * 0.8).all()
    assert (frame["part_prompt_slowdown"] > 1).all()
    assert frame["part_experts_slowdown"].notna().tolist() == [True, False]
    assert frame["part_exchange_slowdown"].notna().tolist() == [True, False]
    alone = deployments.build({"aiconfigurator": tmp_path}, {}).table.frame
    assert alone["part_products_slowdown"].isna().all()
