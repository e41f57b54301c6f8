"""Dataset gpperf: records of seven lines, quantities as tasks, quarantine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.domains.gemm.datasets import gemm_table
from perfcast.domains.gemm.datasets.gemm_records import DESCRIPTION, FIRST_LINE, LINES, RESULTS, parse_records
from perfcast.domains.gemm.sources.gpperf import ARCHIVE, HEADER
from perfcast.domains.gemm.testing import gpperf as fake
from perfcast.schema.table import Role, Tag

KERNEL = "cutlass_simt_sgemm_128x128_8x2_nt_align1"
FIRST = (
    f"1700000000,256,512,1024,{KERNEL},nn,64,64,32,2,linear_combination,1,0,0.25,,"
    "[N/A], 2505, 10501, 28, 0, 0,NVIDIA GeForce RTX 4070, 8.9, 10501 MHz, 3105 MHz, 200.00 W, 28, Default, 12282 MiB, "
    f"12002 MiB, 1 MiB, 0 %, 0 %,kernel_name,{KERNEL}"
)
RECORD = (
    FIRST,
    "arithmetic_intensity,73.14",
    "uses_shared_memory,0",
    "computation_pattern,GEMM",
    "problem_size_m,256",
    "problem_size_n,512",
    "problem_size_k,1024,,,1073.742",
)
TEXT = "\n".join(RECORD) + "\n"
MEASURED = TEXT.replace("[N/A]", "100.00").replace("1024,,,", "1024,.025,10737.4,")


def build(folder, text, failed="", header=HEADER):
    fake.write_archive(
        folder / ARCHIVE, {"run/results.csv": (header + text).encode(), "run/failed_configs.csv": failed.encode()}
    )
    built = gemm_table.build({"gpperf": folder}, {})
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    return built


def reasons(built):
    return list(built.rejected[["line", "reason", "detail"]].itertuples(index=False, name=None))


def test_build_parses_record_and_kernel_name(tmp_path):
    built = build(tmp_path, MEASURED)
    frame = built.table.frame.set_index("quantity")
    assert frame["value"].to_dict() == {"runtime": 0.25, "power": 100.0, "energy": 25.0}
    row = frame.loc["runtime"]
    assert (row["shape"], row["m"], row["n"], row["k"]) == ("256x512x1024", 256, 512, 1024)
    assert (row["transpose_a"], row["transpose_b"], row["dtype"]) == (0, 1, "float32")
    assert (row["tile_m"], row["tile_n"], row["tile_k"], row["stages"]) == (128, 128, 8, 2)
    assert (row["requested_layout"], row["requested_tile_m"], row["sms"]) == ("nn", 64, 46)
    assert (row["power_limit_w"], row["max_clock_mhz"], row["source_line"]) == (200, 3105, 1)
    assert built.rejected.empty
    assert built.table.column_of(Tag.TASK) == "quantity"
    assert built.table.select(tag=Tag.BLOCK) == built.table.select(tag=Tag.ENTITY) == ["shape"]


def test_columns_declare_no_reading_as_feature(tmp_path):
    features = set(build(tmp_path, MEASURED).table.select(role=Role.FEATURE))
    read = ["temperature_c", "utilization_before", "utilization_after", "sm_clock_mhz", "memory_used_mib"]
    assert not features & {*read, "device_state", "measured_at", "requested_layout", "requested_tile_m"}


def test_build_keeps_runtime_without_power(tmp_path):
    built = build(tmp_path, TEXT)
    assert list(built.table.frame["quantity"]) == ["runtime"]
    assert reasons(built) == [(1, "no_energy", "[N/A]"), (1, "no_power", "[N/A]")]


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        ("", "", "alone"),
        (" 1 MiB, 0 %", " 168 MiB, 0 %", "shared"),
        (" 1 MiB, 0 %", " 1 MiB, 40 %", "shared"),
        (" 28, 0, 0,", " 28, 100, 0,", "shared"),
    ],
)
def test_build_marks_shared_device(tmp_path, old, new, state):
    frame = build(tmp_path, TEXT.replace(old, new, 1) if old else TEXT).table.frame
    assert list(frame["device_state"]) == [state]


BAD = {
    "cut off": ("\n".join(RECORD[:4]) + "\n", "wrong_line_count", "4 lines, a record has 7"),
    "eight lines": ("\n".join([*RECORD[:3], RECORD[2], *RECORD[3:]]), "wrong_line_count", "8 lines, a record has 7"),
    "a field too few": (TEXT.replace(",,[N/A]", ",[N/A]"), "wrong_field_count", "34 fields, the first line has 35"),
    "another description": (TEXT.replace("uses_", "has_"), "wrong_description", "has_shared_memory,0"),
    "results missing": (TEXT.replace("1024,,,1073.742", "1024"), "wrong_description", "problem_size_k,1024"),
    "no time": (TEXT.replace(",0.25,", ",,"), "not_a_number", "runtime_ms: "),
    "time of nothing": (TEXT.replace(",0.25,", ",0,"), "not_positive", "runtime_ms: 0"),
    "infinite": (TEXT.replace(",0.25,", ",inf,"), "not_a_number", "runtime_ms: inf"),
    "wild power": (TEXT.replace("[N/A]", "ERR!"), "not_a_power", "ERR!"),
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
    built = build(tmp_path, text.rstrip("\n") + "\n" + good)
    entries = [entry for entry in reasons(built) if entry[1] not in {"no_power", "no_energy"}]
    assert entries == [(1, reason, detail)]
    assert list(built.table.frame["m"]) == [512]


def test_build_quarantines_lines_before_first_record(tmp_path):
    built = build(tmp_path, "\nsomething else\n" + TEXT)
    assert reasons(built)[0] == (2, "stray_lines", "something else")
    assert len(built.table.frame) == 1


def test_build_merges_repetitions_and_rejects_failures(tmp_path):
    built = build(tmp_path, MEASURED + MEASURED, "512,512,512,any,nn\n\n512,512,512,other,nn\n")
    assert built.merged == {"repeated_configuration": 3}
    assert [entry[:2] for entry in reasons(built)] == [(1, "did_not_run"), (3, "did_not_run")]


def test_generated_archive_has_every_known_defect(tmp_path):
    fake.write(tmp_path, rows=300, seed=0)
    built = gemm_table.build({"gpperf": tmp_path}, {})
    assert {
        "did_not_run",
        "no_power",
        "wrong_line_count",
        "not_a_number",
        "unknown_kernel",
        "inconsistent_shape",
    } <= set(built.rejected["reason"])
    assert set(built.table.frame["device_state"]) == {"alone", "shared"}
    assert built.merged["repeated_configuration"] > 0
    shared = built.table.frame[built.table.frame["quantity"] == "runtime"]["device_state"] == "shared"
    assert 0.05 < shared.mean() < 0.3


FIELD = st.text(st.characters(exclude_characters=",\n\r", exclude_categories=["Cs"]), max_size=12)
TIMES = st.integers(1, 10**11).map(str)
SIDES = st.integers(1, 10**6).map(str)


@st.composite
def whole_records(draw):
    """Return the fields of some records as written, each a first line and the values that follow it."""
    firsts = st.tuples(
        TIMES, SIDES, SIDES, SIDES, *(FIELD.map(lambda text: text.replace("\n", "")) for _ in FIRST_LINE[4:])
    )
    values = st.tuples(*(FIELD for _ in range(len(DESCRIPTION) + 3)))
    return draw(st.lists(st.tuples(firsts, values), max_size=5))


def write_records(parts, end):
    lines = []
    for first, values in parts:
        described = [f"{name},{value}" for name, value in zip(DESCRIPTION, values, strict=False)]
        lines += [",".join(first), *described[:-1], ",".join([described[-1], *values[len(DESCRIPTION) :]])]
    return end.join(lines)


@given(whole_records(), st.sampled_from(["\n", "\r\n", "\n\n"]))
@settings(max_examples=100, deadline=None)
def test_parse_records_returns_every_field(parts, end):
    parsed = list(parse_records(write_records(parts, end)))
    assert [record.reason for record in parsed] == [""] * len(parts)
    for record, (first, values) in zip(parsed, parts, strict=True):
        assert [record.fields[name] for name in FIRST_LINE] == [field.strip() for field in first]
        assert [record.fields[name] for name in (*DESCRIPTION, *RESULTS)] == [field.strip() for field in values]


@given(st.lists(st.sampled_from([*RECORD, "", "1,2,3,4,", "stray", ","]), max_size=40))
@settings(max_examples=200, deadline=None)
def test_parse_records_assigns_every_line_to_one_record(lines):
    parsed = list(parse_records("\n".join(lines)))
    begins = [record.line for record in parsed]
    assert begins == sorted(set(begins))
    filled = [number for number, line in enumerate(lines, 1) if line]
    assert (begins[:1] or [None]) == (filled[:1] or [None])
    for record, after in zip(parsed, [*begins, len(lines) + 1][1:], strict=True):
        record_lines = [number for number in filled if record.line <= number < after]
        assert record.reason or len(record_lines) == LINES
        assert bool(record.fields) != bool(record.reason)


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_parse_records_accepts_any_text(text):
    for record in parse_records(text):
        assert record.line >= 1


def test_build_gives_positive_values(tmp_path):
    fake.write(tmp_path, rows=200, seed=1)
    values = gemm_table.build({"gpperf": tmp_path}, {}).table.frame["value"]
    assert (np.isfinite(values) & (values > 0)).all()
