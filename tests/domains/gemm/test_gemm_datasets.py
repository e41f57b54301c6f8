"""Datasets of matrix products: quarantine, repetitions, records of seven lines, the description of the machine."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfcast.domains.gemm.datasets import gemm_table, host_gemm
from perfcast.domains.gemm.datasets.gemm_records import LINES, parse_records
from perfcast.domains.gemm.sources.gpperf import ARCHIVE, HEADER
from perfcast.domains.gemm.testing import gpperf as fake
from perfcast.schema.table import Role, Tag
from perfcast.utils.errors import UserError
from perfcast.utils.io import write_json

NAMES = "m n k dtype transpose_a transpose_b threads warmups repeats seconds_median seconds_min seconds_spread gflops"
VALUES = "64 32 16 float32 0 1 2 2 5 1e-05 9e-06 0.02 6.5536 0 0"
GOOD = dict(zip(f"{NAMES} order pass".split(), VALUES.split(), strict=True))
TABLE = "host_gemm.csv.gz"
MACHINE = {
    "cpu_model": "Any",
    "cores": 4,
    "l2_kib": 1024.0,
    "l3_kib": None,
    "memory_gib": "much",
    "flags": ["avx2"],
}


def write(folder, rows, machine=MACHINE):
    pd.DataFrame(rows, columns=list(GOOD)).to_csv(folder / "host_gemm.csv.gz", index=False)
    write_json(folder / "host_gemm.json", machine)
    return {"host_gemm": folder}


def reasons(folder, *changed, **options):
    built = host_gemm.build(write(folder, [GOOD, *({**GOOD, **row} for row in changed)]), options)
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    return list(built.rejected[["line", "reason", "detail"]].itertuples(index=False, name=None))


def test_build_makes_configuration_of_valid_row(tmp_path):
    built = host_gemm.build(write(tmp_path, [GOOD]), {})
    table = built.table
    row = table.frame.iloc[0]
    expected = {
        "result_id": "float32-64x32x16-nt-t2",
        "shape": "64x32x16",
        "gflops": 6.5536,
        "source_line": 2,
    }
    assert row[[*expected, "cores", "l2_kib"]].to_dict() == {
        **expected,
        "cores": 4,
        "l2_kib": 1024,
    }
    assert table.select(role=Role.TARGET) == ["gflops"] and table.column_of(Tag.TASK) == "dtype"
    assert table.select(tag=Tag.IDENTITY) == [
        "m",
        "n",
        "k",
        "transpose_a",
        "transpose_b",
        "threads",
    ]
    assert table.select(tag=Tag.BLOCK) == table.select(tag=Tag.ENTITY) == ["shape"]
    assert built.quality["machine_unknown"] == [
        "threads_per_core",
        "l1d_kib",
        "l3_kib",
        "memory_gib",
    ]
    assert row[["l3_kib", "memory_gib", "threads_per_core"]].isna().all()
    assert table.facts == {"machine": {"cpu_model": "Any", "flags": ["avx2"]}}


DEFECTS = {
    "not_positive": {"seconds_median": "0", "seconds_min": "-1e-6"},
    "unstable": {"seconds_spread": "0.51"},
    "inconsistent_rate": {"gflops": "65.536"},
    "not_a_number": {"m": "many", "k": "", "n": "inf"},
    "not_a_whole_number": {"threads": "1.5"},
    "out_of_bounds": {"threads": "0", "transpose_a": "2"},
}


def test_build_quarantines_bad_row_with_reason_and_by_max_spread(tmp_path):
    cells = [(reason, name, text) for reason, changes in DEFECTS.items() for name, text in changes.items()]
    expected = [(line, reason, f"{name}: {text}") for line, (reason, name, text) in enumerate(cells, 3)]
    assert reasons(tmp_path, *({name: text} for _, name, text in cells)) == expected
    assert reasons(tmp_path, {"dtype": "int8"}) == [(3, "unknown_dtype", "int8")]
    assert reasons(tmp_path, {"threads": "1", "seconds_spread": "0.4"}, max_spread=0.3)[0][1] == "unstable"
    for value in (0, "0.5", True, float("nan")):
        with pytest.raises(UserError, match="max_spread"):
            host_gemm.build({"host_gemm": tmp_path}, {"max_spread": value})


def test_build_keeps_the_steadiest_repetition_also_without_a_valid_row(tmp_path):
    spreads = (("0.2", "1"), ("0.01", "7"), ("0.02", "2"))
    rows = [
        {
            **GOOD,
            "seconds_spread": spread,
            "warmups": warmups,
        }
        for spread, warmups in spreads
    ]
    built = host_gemm.build(write(tmp_path, rows), {})
    assert built.table.frame["warmups"].tolist() == [7] and built.merged == {"duplicate_configuration": 2}
    built = host_gemm.build(write(tmp_path, [{**GOOD, "dtype": "?"}]), {})
    assert (len(built.table.frame), len(built.rejected)) == (0, 1)


KERNEL = "cutlass_simt_sgemm_128x128_8x2_nt_align1"
FIRST = (
    f"1700000000,256,512,1024,{KERNEL},nn,64,64,32,2,linear_combination,1,0,0.25,,"
    "[N/A], 2505, 10501, 28, 0, 0,NVIDIA GeForce RTX 4070, 8.9, 10501 MHz, 3105 MHz, 200.00 W, 28, Default, 12282 MiB, "
    f"12002 MiB, 1 MiB, 0 %, 0 %,kernel_name,{KERNEL}"
)
DESCRIBED = "arithmetic_intensity,73.14 uses_shared_memory,0 computation_pattern,GEMM problem_size_m,256"
RECORD = (
    FIRST,
    *DESCRIBED.split(),
    "problem_size_n,512",
    "problem_size_k,1024,,,1073.742",
)
TEXT = "\n".join(RECORD) + "\n"
MEASURED = TEXT.replace("[N/A]", "100.00").replace("1024,,,", "1024,.025,10737.4,")


def build_gpperf(folder, text, failed=""):
    files = {
        "run/results.csv": (HEADER + text).encode(),
        "run/failed_configs.csv": failed.encode(),
    }
    fake.write_archive(folder / ARCHIVE, files)
    built = gemm_table.build({"gpperf": folder}, {})
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    return built


def gpperf_reasons(built):
    return list(built.rejected[["line", "reason", "detail"]].itertuples(index=False, name=None))


def test_build_parses_record_and_kernel_name(tmp_path):
    built = build_gpperf(tmp_path, MEASURED)
    frame = built.table.frame.set_index("quantity")
    assert frame["value"].to_dict() == {"runtime": 0.25, "power": 100.0, "energy": 25.0}
    expected = {
        "shape": "256x512x1024",
        "k": 1024,
        "transpose_a": 0,
        "transpose_b": 1,
        "tile_m": 128,
        "tile_k": 8,
        "stages": 2,
        "requested_layout": "nn",
        "sms": 46,
        "power_limit_w": 200,
        "source_line": 1,
    }
    assert frame.loc["runtime", list(expected)].to_dict() == expected
    assert built.rejected.empty and built.table.column_of(Tag.TASK) == "quantity"
    assert built.table.select(tag=Tag.BLOCK) == built.table.select(tag=Tag.ENTITY) == ["shape"]
    read = {
        "temperature_c",
        "utilization_before",
        "utilization_after",
        "sm_clock_mhz",
        "memory_used_mib",
    }
    read |= {"device_state", "measured_at", "requested_layout", "requested_tile_m"}
    assert not read & set(built.table.select(role=Role.FEATURE))


def test_build_keeps_merges_and_rejects_records_and_marks_a_shared_device(tmp_path):
    built = build_gpperf(tmp_path, "\nsomething else\n" + TEXT)
    assert list(built.table.frame["quantity"]) == ["runtime"]
    missing = [(3, "no_energy", "[N/A]"), (3, "no_power", "[N/A]")]
    assert gpperf_reasons(built) == [(2, "stray_lines", "something else"), *missing]
    built = build_gpperf(tmp_path, MEASURED + MEASURED, "512,512,512,any,nn\n\n512,512,512,other,nn\n")
    assert built.merged == {"repeated_configuration": 3} and set(built.table.frame["device_state"]) == {"alone"}
    assert [entry[:2] for entry in gpperf_reasons(built)] == [
        (1, "did_not_run"),
        (3, "did_not_run"),
    ]
    idle = " 1 MiB, 0 %"
    free = " 28, 0, 0,"
    for old, new in ((idle, " 168 MiB, 0 %"), (free, " 28, 100, 0,")):
        assert list(build_gpperf(tmp_path, TEXT.replace(old, new, 1)).table.frame["device_state"]) == ["shared"]


BAD = {
    "cut off": ("\n".join(RECORD[:4]) + "\n", "wrong_line_count", "4 lines, a record has 7",),
    "eight lines": ("\n".join([*RECORD[:3], RECORD[2], *RECORD[3:]]), "wrong_line_count", "8 lines, a record has 7",),
    "another description": (TEXT.replace("uses_", "has_"), "wrong_description", "has_shared_memory,0"),
    "no time": (TEXT.replace(",0.25,", ",,"), "not_a_number", "runtime_ms: "),
    "infinite": (TEXT.replace(",0.25,", ",inf,"), "not_a_number", "runtime_ms: inf"),
    "other sides": (TEXT.replace("problem_size_n,512", "problem_size_n,513"), "inconsistent_shape", "n: 512"),
    "other kernel": (TEXT.replace(KERNEL, "cutlass_tensorop"), "unknown_kernel", "cutlass_tensorop"),
    "two kernels": (
        TEXT.replace(f"kernel_name,{KERNEL}", "kernel_name,another"), "inconsistent_kernel", "another",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_build_quarantines_bad_record_alone(tmp_path, case):
    text, reason, detail = BAD[case]
    good = TEXT.replace("256,512,1024", "512,512,1024").replace("m,256", "m,512")
    built = build_gpperf(tmp_path, text.rstrip("\n") + "\n" + good)
    entries = [entry for entry in gpperf_reasons(built) if entry[1] not in {"no_power", "no_energy"}]
    assert entries == [(1, reason, detail)]
    assert list(built.table.frame["m"]) == [512]


@given(st.lists(st.sampled_from([*RECORD, "", "1,2,3,4,", "stray", ","]), max_size=40).map("\n".join) | st.text())
def test_parse_records_assigns_every_line_to_one_record(text):
    parsed = list(parse_records(text))
    lines = [line.rstrip("\r") for line in text.split("\n")]
    begins = [record.line for record in parsed]
    assert begins == sorted(set(begins))
    filled = [number for number, line in enumerate(lines, 1) if line]
    assert (begins[:1] or [None]) == (filled[:1] or [None])
    for record, after in zip(parsed, [*begins, len(lines) + 1][1:], strict=True):
        record_lines = [number for number in filled if record.line <= number < after]
        assert record.reason or len(record_lines) == LINES
        assert bool(record.fields) != bool(record.reason)
