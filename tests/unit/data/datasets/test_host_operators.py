"""Measured operators of one machine: names, facts, operations and rejected rows."""

import pytest

from perfcast.data.datasets.host import host_operators
from perfcast.features import gpu_operators
from perfcast.testing import host_operators as generated
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object, write_json


@pytest.fixture
def folder(tmp_path):
    generated.write(tmp_path, rows=80, seed=1)
    return tmp_path


def build(folder, **options):
    return host_operators.build({"host_operators": folder}, options)


def test_every_row_is_kept_merged_or_rejected(folder):
    result = build(folder)
    assert (result.rows_in, len(result.table.frame)) == (88, 80)
    assert result.merged == {"duplicate_configuration": 4}
    assert result.rejected["reason"].tolist() == ["unstable", "not_timed", "unknown_operator", "not_a_number"]


def test_rows_have_the_facts_of_the_machine_and_the_amounts_of_the_operator(folder):
    frame = build(folder).table.frame
    row = frame[frame["op"] == "gemm"].iloc[0]
    m, n, k = row["m"], row["n"], row["k"]
    assert row["shape"] == f"gemm|{m:.0f}|{n:.0f}|{k:.0f}/float32"
    assert row["shape_site"] == f"gemm|{n:.0f}|{k:.0f}"
    assert (row["bf16_tflops"], row["sm_count"]) == (0.4, 4)
    assert row["flops"] == 2 * m * n * k
    assert row["bytes_input"] == pytest.approx(4 * m * k) and row["bytes_output"] == pytest.approx(4 * m * n)


def test_features_of_gpus_are_known_without_a_link(folder):
    frame = gpu_operators.derive(build(folder).table).frame
    assert frame[["log_light", "log_intensity", "t_compute", "t_link"]].notna().all(axis=None)
    assert (frame["t_link"] == 0).all()


def test_unknown_facts_are_missing(folder):
    path = folder / "host_operators.json"
    write_json(path, {**read_object(path), "device": {"name": "x", "peak_tflops": "fast"}})
    frame = build(folder).table.frame
    assert frame["bf16_tflops"].isna().all() and frame["gpu"].eq("x").all()


def test_option_must_be_a_positive_number(folder):
    with pytest.raises(UserError, match="max_spread"):
        build(folder, max_spread=0)
