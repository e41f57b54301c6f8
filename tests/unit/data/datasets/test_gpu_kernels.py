"""Dataset gpu_kernels: files of the archive, the authors' subsets, repeated cases, quarantine, facts of GPUs."""

import json

import pandas as pd
import pytest

from perfcast.data.datasets.gpu_kernels import kernel_tables
from perfcast.data.sources import neusight as source
from perfcast.testing.gpperf import write_archive
from perfcast.testing.neusight import write
from perfcast.utils.errors import UserError

TEST_BMM = "scripts/asplos/data/dataset/test/bmm.csv"
BMM = {"OPName": "bmm", "Latency": 0.5, "Device": "NVIDIA L4", "B": 8, "M": 64, "N": 128, "K": 256}


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, rows=60, seed=1)
    return tmp_path


def replace(folder, **contents):
    whole = source.read_archive(folder / source.ARCHIVE)
    write_archive(folder / source.ARCHIVE, {**whole, **contents})


def rows(*changes):
    return pd.DataFrame([{**BMM, **change} for change in changes]).to_csv(index=False).encode()


def build(folder):
    built = kernel_tables.build({"neusight": folder}, {})
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    return built


def test_a_kernel_has_its_keys_and_the_facts_of_its_gpu(folder):
    replace(folder, **{TEST_BMM: rows({}, {"Device": "Tesla T4"})})
    frame = build(folder).table.frame
    new, known = frame[frame["source_file"] == TEST_BMM].to_dict("records")
    assert new["result_id"] == "NVIDIA L4/bmm/8|64|128|256|/test"
    assert (new["kind"], new["measured_by"], new["published_subset"]) == ("bmm", "new", "test")
    assert (new["batch"], new["m"], new["n"], new["k"], new["latency"], new["source_line"]) == (8, 64, 256, 128, 0.5, 2)
    assert (known["measured_by"], known["clock_mhz"]) == ("known", 1500)
    assert known["fp32_gflops"] != new["fp32_gflops"]


def test_a_repeated_case_has_the_median_of_its_times(folder):
    replace(folder, **{TEST_BMM: rows({}, {"Latency": 0.6}, {"K": 512})})
    built = build(folder)
    frame = built.table.frame
    assert list(frame[frame["source_file"] == TEST_BMM]["latency"]) == [pytest.approx(0.55), 0.5]
    assert built.quality["largest_ratio_of_repeated"] == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"Latency": 0}, "not_positive"),
        ({"Latency": "nan"}, "not_a_number"),
        ({"M": "x"}, "not_a_number"),
        ({"K": -1}, "not_positive"),
        ({"Device": "made up"}, "unknown_gpu"),
    ],
)
def test_a_defective_row_is_rejected_with_its_reason(folder, change, reason):
    replace(folder, **{TEST_BMM: rows({}, change)})
    rejected = build(folder).rejected
    here = rejected[rejected["file"] == TEST_BMM]
    assert list(zip(here["line"], here["reason"], strict=True)) == [(3, reason)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (TEST_BMM, b"OPName,Latency\nbmm,1\n", "bmm.csv of neusight.tar.gz must have a column 'Device'"),
        (TEST_BMM, rows({}).split(b"\n")[0], "must have rows"),
        (TEST_BMM, b"", "must be a CSV table"),
        (source.facts_file("NVIDIA L4"), b"[]", "must be a JSON object"),
        (source.facts_file("NVIDIA L4"), b"{}", "must be a JSON object"),
        (
            source.facts_file("NVIDIA L4"),
            json.dumps(dict.fromkeys(("Dev_Mem", "Mem_Bw", "Num_Sm", "SingleFLOPs", "L2Cache", "Freq"), 0)).encode(),
            "must have positive numbers",
        ),
    ],
)
def test_the_check_refuses_a_damaged_file(folder, name, content, message):
    replace(folder, **{name: content})
    with pytest.raises(UserError, match=message):
        source.check(folder)


def test_the_check_names_a_file_that_is_absent(folder):
    whole = source.read_archive(folder / source.ARCHIVE)
    del whole[TEST_BMM]
    write_archive(folder / source.ARCHIVE, whole)
    with pytest.raises(UserError, match=r"must have one file scripts/asplos/data/dataset/test/bmm\.csv"):
        source.check(folder)
