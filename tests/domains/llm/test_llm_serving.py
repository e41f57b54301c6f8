"""Dataset llm_serving: parsing, quarantine by layout, the same run in two collections; quality of chosen layouts."""

import pandas as pd
import pytest

from perfcast.domains.llm.datasets import deployments
from perfcast.domains.llm.layout_choices import tabulate_choices
from perfcast.domains.llm.testing import aiconfigurator_operators
from perfcast.domains.llm.testing.aiconfigurator import FILE
from perfcast.schema.table import Column, Kind, Role, Table, Tag
from perfcast.utils.errors import UserError

ROW = {
    "id": "run/1",
    "silicon_data_source": "source_file=/home/somebody/a.csv; silicon_concurrency=16; measured=2026-03-05T00:00:00Z",
    "backend": "vllm",
    "backend_version": "0.1",
    "model_path": "openai/gpt-oss-120b",
    "system": "h100_sxm",
    "precision": "fp4",
    "mode": "agg",
    "isl": "1024",
    "osl": "512",
    "gemm_quant_mode": "nvfp4",
    "moe_quant_mode": "nvfp4",
    "batch_size": "16",
    "tp_size": "4",
    "pp_size": "1",
    "attention_dp_size": "1",
    "moe_tp_size": "4",
    "moe_ep_size": "1",
    "silicon_ttft_ms": "150.5",
    "silicon_tpot_ms": "8.25",
}


def write_rows(folder, *rows):
    pd.DataFrame([{**ROW, **row} for row in rows], columns=list(ROW)).to_csv(folder / FILE, index=False)


def build(folder, *rows):
    write_rows(folder, *rows)
    built = deployments.build({"aiconfigurator": folder}, {})
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    return built


def test_a_measurement_has_a_row_for_each_quantity(tmp_path):
    frame = build(tmp_path, {}).table.frame.set_index("quantity")
    assert frame["latency"].to_dict() == {"ttft": 150.5, "tpot": 8.25}
    row = frame.loc["tpot"]
    texts = ["gpu", "generation", "model", "model_family"]
    assert row[texts].tolist() == ["H100", "hopper", "gpt-oss-120b", "gptoss"]
    assert row[["concurrency", "gpus", "experts", "memory_gb_per_s"]].tolist() == [
        16,
        4,
        128,
        3350,
    ]
    assert row["measured"] == pd.Timestamp("2026-03-05")
    assert row["configuration"] == row["deployment"] + "|16"
    assert "somebody" not in frame.to_csv()


DEFECTS = [
    ("no_concurrency", {"silicon_data_source": "a.csv", "batch_size": ""}),
    ("parallelism_zero", {"moe_ep_size": "0"}),
    (
        "parallelism_squared",
        {
            "tp_size": "2",
            "attention_dp_size": "2",
            "moe_tp_size": "1",
            "moe_ep_size": "4",
        },
    ),
    ("tp_of_a_pool", {"tp_size": "72", "moe_tp_size": "72"}),
    ("disaggregated", {"mode": "disagg", "tp_size": "", "moe_tp_size": ""}),
    ("unknown_model", {"model_path": "somebody/other-1b"}),
    ("unknown_gpu", {"system": "h900"}),
    ("unknown_precision", {"precision": "fp7"}),
    ("not_a_number", {"silicon_tpot_ms": "inf"}),
    ("not_positive", {"silicon_ttft_ms": "0"}),
    ("not_a_layout", {"tp_size": "-4"}),
    ("faster_than_memory", {"silicon_tpot_ms": "0.5"}),
]


def test_a_defective_measurement_is_rejected_with_its_reason(tmp_path):
    built = build(tmp_path, {}, *(changed for _, changed in DEFECTS))
    rejected = built.rejected.sort_values("line")
    expected = [(line, reason) for line, (reason, _) in enumerate(DEFECTS, 3)]
    assert list(zip(rejected["line"], rejected["reason"], strict=True)) == expected
    assert len(built.table.frame) == 2


def test_the_same_run_in_two_collections_and_under_two_names_of_a_shape_is_one(
    tmp_path,
):
    same = {"backend_version": "0.2", "silicon_tpot_ms": "8.2505"}
    other = {"silicon_tpot_ms": "8.3"}
    built = build(tmp_path, {}, same, other)
    assert built.merged == {"same_measurement": 2}
    assert sorted(built.table.frame["source_line"].unique()) == [2, 4]
    twin = {
        "model_path": "deepseek-ai/DeepSeek-V3",
        "precision": "fp8",
        "tp_size": "8",
        "moe_tp_size": "8",
    }
    twin["silicon_tpot_ms"] = "30"
    built = build(tmp_path, {**twin, "model_path": "deepseek-ai/DeepSeek-R1"}, twin)
    assert built.merged == {"same_measurement": 2}
    assert built.table.frame["deployment"].nunique() == 1


def test_unstated_values_have_a_default_and_work_in_progress_is_marked(tmp_path):
    row = {
        "precision": "",
        "gemm_quant_mode": "",
        "attention_dp_size": "",
        "silicon_data_source": "a.csv",
    }
    dense = {
        "tp_size": "4",
        "moe_tp_size": "2",
        "moe_ep_size": "2",
        "model_path": "Qwen/Qwen3-32B",
        "precision": "fp8",
    }
    built = build(
        tmp_path,
        row,
        {**dense, "silicon_data_source": "silicon_concurrency=8; wip=True"},
    )
    assert built.rejected.empty, "a dense model has no layout of experts to square"
    frame = built.table.frame.drop_duplicates("concurrency").set_index("concurrency")
    assert frame["in_progress"].to_dict() == {8: 1, 16: 0}
    assert frame.loc[16, ["precision", "attention_data_parallel"]].tolist() == [
        "bf16",
        1,
    ]
    assert pd.isna(frame.loc[16, "measured"])


def test_a_slowdown_is_that_of_the_measured_operators_of_the_gpu(tmp_path):
    tables = tmp_path / "tables"
    aiconfigurator_operators.write(tables, rows=200, seed=0)
    write_rows(
        tmp_path,
        {},
        {
            "model_path": "meta-llama/Llama-3.1-8B",
            "tp_size": "1",
            "moe_tp_size": "1",
        },
    )
    raw = {"aiconfigurator": tmp_path, "aiconfigurator_operators": tables}
    frame = deployments.build(raw, {}).table.frame.drop_duplicates("model_family").set_index("model_family")
    # generated operators take six microseconds more than 1 / 0.6 of the speed of light
    assert (frame["part_products_slowdown"] > 1 / 0.6 * 0.8).all()
    assert (frame["part_prompt_slowdown"] > 1).all()
    assert frame["part_experts_slowdown"].notna().tolist() == [True, False]
    assert frame["part_exchange_slowdown"].notna().tolist() == [True, False]
    alone = deployments.build({"aiconfigurator": tmp_path}, {}).table.frame
    assert alone["part_products_slowdown"].isna().all()


CHOICE = {
    "task": "step",
    "question": ["model"],
    "work": "load",
    "cost": "gpus",
    "limits": [10],
}
COLUMNS = (
    Column("id", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.ROW,)),
    Column("model", Kind.CATEGORICAL, Role.KEY, "run"),
    Column("load", Kind.NUMERICAL, Role.FEATURE, "run"),
    Column("gpus", Kind.NUMERICAL, Role.FEATURE, "run"),
)
# throughput per GPU as measured: a 4 / 8 = 0.5, b 16 / 20 = 0.8 but too slow, c 16 / (8 * 2) = 1, d 16 / (9 * 2) = 0.89
ROWS = pd.DataFrame(
    {
        "id": [*"abcd"],
        "model": "m",
        "load": [4.0, 16.0, 16.0, 16.0],
        "gpus": [1.0, 1.0, 2.0, 2.0],
    }
)
MEASURED = [8.0, 20.0, 8.0, 9.0]


def choose(predicted, choice=CHOICE, rows=ROWS, measured=MEASURED):
    points = pd.DataFrame(
        {
            "split": "s",
            "predictor": "p",
            "row": rows["id"],
            "task": "step",
            "target": "t",
            "measured": measured,
            "predicted": predicted,
        }
    )
    return tabulate_choices(points, Table("t", rows, COLUMNS), **choice)


def test_a_choice_is_good_within_the_limit_from_nine_tenths_of_the_best():
    for predicted, share, violated, loss in (
        (MEASURED, 100, 0, 0),
        (
            [8.0, 20.0, 11.0, 9.0],
            0,
            0,
            100 / 9,
        ),  # c is thought too slow: d has 8/9 of its throughput
        ([8.0, 9.0, 8.0, 9.0], 0, 100, None),  # exceeds the limit
        (
            [12.0, 30.0, 11.0, 13.0],
            100,
            0,
            0,
        ),  # none seems within the limit: the fastest
    ):
        line = choose(predicted).iloc[0]
        assert (line["share"], line["violated"]) == (share, violated)
        assert loss is None or line["median_loss"] == pytest.approx(loss)
        assert (
            line["questions"],
            line["options"],
            line["limit"],
        ) == (1, 4, 10)


def test_questions_without_a_choice_are_left_out_and_an_unknown_column_is_named():
    assert choose(MEASURED, rows=ROWS.assign(model=[*"mnop"])).empty
    with pytest.raises(UserError, match="'nodes' is not"):
        choose(MEASURED, choice={**CHOICE, "cost": "nodes"})
