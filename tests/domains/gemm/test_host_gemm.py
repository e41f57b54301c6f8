"""Matrix-product measurements: quarantine, repetitions, the machine's description."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from perfcast.domains.gemm.datasets import host_gemm
from perfcast.domains.gemm.testing import host_gemm as fake
from perfcast.schema.table import Role, Tag
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json, sha256, write_json

GOOD = {
    "m": "64",
    "n": "32",
    "k": "16",
    "dtype": "float32",
    "transpose_a": "0",
    "transpose_b": "1",
    "threads": "2",
    "warmups": "2",
    "repeats": "5",
    "seconds_median": "1e-05",
    "seconds_min": "9e-06",
    "seconds_spread": "0.02",
    "gflops": "6.5536",
    "order": "0",
    "pass": "0",
}
MACHINE = {"cpu_model": "Any", "cores": 4, "l2_kib": 1024.0, "l3_kib": None, "memory_gib": "much", "flags": ["avx2"]}


def write(folder: Path, rows: list[dict[str, str]], machine: Any = MACHINE) -> dict[str, Path]:
    pd.DataFrame(rows, columns=list(GOOD)).to_csv(folder / "host_gemm.csv.gz", index=False)
    write_json(folder / "host_gemm.json", machine)
    return {"host_gemm": folder}


def reasons(folder: Path, *changed: dict[str, str], **options: Any) -> list[tuple[int, str, str]]:
    built = host_gemm.build(write(folder, [GOOD, *({**GOOD, **row} for row in changed)]), options)
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    return list(built.rejected[["line", "reason", "detail"]].itertuples(index=False, name=None))


def test_build_makes_configuration_of_valid_row(tmp_path: Path) -> None:
    table = host_gemm.build(write(tmp_path, [GOOD]), {}).table
    row = table.frame.iloc[0]
    assert row["result_id"] == "float32-64x32x16-nt-t2"
    assert row["shape"] == "64x32x16"
    assert row["gflops"] == 6.5536
    assert row["source_line"] == 2
    assert table.select(role=Role.TARGET) == ["gflops"]
    assert table.column_of(Tag.TASK) == "dtype"
    assert table.select(tag=Tag.IDENTITY) == ["m", "n", "k", "transpose_a", "transpose_b", "threads"]
    assert table.select(tag=Tag.BLOCK) == table.select(tag=Tag.ENTITY) == ["shape"]


@pytest.mark.parametrize(
    ("change", "reason", "detail"),
    [
        ({"seconds_median": "0"}, "not_positive", "seconds_median: 0"),
        ({"seconds_min": "-1e-6"}, "not_positive", "seconds_min: -1e-6"),
        ({"seconds_spread": "0.51"}, "unstable", "seconds_spread: 0.51"),
        ({"gflops": "65.536"}, "inconsistent_rate", "gflops: 65.536"),
        ({"m": "many"}, "not_a_number", "m: many"),
        ({"k": ""}, "not_a_number", "k: "),
        ({"n": "inf"}, "not_a_number", "n: inf"),
        ({"threads": "1.5"}, "not_a_whole_number", "threads: 1.5"),
        ({"threads": "0"}, "out_of_bounds", "threads: 0"),
        ({"transpose_a": "2"}, "out_of_bounds", "transpose_a: 2"),
        ({"dtype": "int8"}, "unknown_dtype", "int8"),
    ],
)
def test_build_quarantines_bad_row_with_reason(
    tmp_path: Path, change: dict[str, str], reason: str, detail: str
) -> None:
    assert reasons(tmp_path, change) == [(3, reason, detail)]


def test_build_uses_option_max_spread(tmp_path: Path) -> None:
    assert reasons(tmp_path, {"threads": "1", "seconds_spread": "0.4"}, max_spread=0.3)[0][1] == "unstable"


@pytest.mark.parametrize("value", [0, -1, "0.5", True, float("nan")])
def test_build_refuses_invalid_max_spread(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UserError, match="max_spread"):
        host_gemm.build(write(tmp_path, [GOOD]), {"max_spread": value})


def test_build_keeps_steadiest_repetition(tmp_path: Path) -> None:
    worse = {**GOOD, "seconds_spread": "0.2", "warmups": "1"}
    best = {**GOOD, "seconds_spread": "0.01", "warmups": "7"}
    built = host_gemm.build(write(tmp_path, [worse, best, GOOD]), {})
    assert built.table.frame["warmups"].tolist() == [7]
    assert built.merged == {"duplicate_configuration": 2}


def test_build_leaves_unknown_machine_facts_missing(tmp_path: Path) -> None:
    built = host_gemm.build(write(tmp_path, [GOOD]), {})
    row = built.table.frame.iloc[0]
    assert (row["cores"], row["l2_kib"]) == (4, 1024)
    assert built.quality["machine_unknown"] == ["threads_per_core", "l1d_kib", "l3_kib", "memory_gib"]
    assert row[["l3_kib", "memory_gib", "threads_per_core"]].isna().all()
    assert built.table.facts == {"machine": {"cpu_model": "Any", "flags": ["avx2"]}}


def test_build_quarantines_malformed_lines(tmp_path: Path) -> None:
    raw = write(tmp_path, [GOOD])
    path = tmp_path / "host_gemm.csv.gz"
    header, row = gzip.decompress(path.read_bytes()).decode().splitlines()
    broken = row.replace("float32", "float32\udcff")
    text = "\n".join([header, row, f"{row},1", header, "", broken, "1,2"])
    path.write_bytes(gzip.compress(text.encode(errors="surrogateescape")))
    built = host_gemm.build(raw, {})
    assert built.rejected[["line", "reason"]].values.tolist() == [
        [3, "wrong_field_count"],
        [4, "repeated_header"],
        [6, "not_utf8"],
        [7, "wrong_field_count"],
    ]
    assert built.rows_in == 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "header"),
        (gzip.compress(b""), "header"),
        (gzip.compress(b"m,n,k\n1,2,3\n"), "'dtype'"),
        (gzip.compress(",".join(GOOD).encode() + b"\n"), "rows"),
        (gzip.compress(",".join([*GOOD, "m"]).encode() + b"\n"), "once"),
        (gzip.compress(b"x," * 600_000), "shorter"),
        (gzip.compress(b"m,n\n" * 1000)[:-20], "whole|'k'"),
        (b"m,n,k\n", "whole"),
    ],
    # A gzip file contains its time, so as a test name it would differ between workers.
    ids=["empty", "nothing packed", "few columns", "no rows", "column twice", "long line", "cut", "not packed"],
)
def test_build_refuses_broken_file(tmp_path: Path, content: bytes, message: str) -> None:
    raw = write(tmp_path, [GOOD])
    (tmp_path / "host_gemm.csv.gz").write_bytes(content)
    with pytest.raises(UserError, match=message):
        host_gemm.build(raw, {})


def test_build_refuses_truncated_file(tmp_path: Path) -> None:
    raw = write(tmp_path, [GOOD] * 500)
    path = tmp_path / "host_gemm.csv.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(UserError, match="whole gzip file"):
        host_gemm.build(raw, {})


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_build_refuses_broken_description(tmp_path: Path, content: str) -> None:
    raw = write(tmp_path, [GOOD])
    (tmp_path / "host_gemm.json").write_text(content)
    with pytest.raises(UserError, match=r"host_gemm\.json"):
        host_gemm.build(raw, {})


@pytest.mark.parametrize("name", ["host_gemm.json", "host_gemm.csv.gz"])
def test_build_names_absent_file(tmp_path: Path, name: str) -> None:
    raw = write(tmp_path, [GOOD])
    (tmp_path / name).unlink()
    with pytest.raises(UserError, match=name):
        host_gemm.build(raw, {})


def test_build_gives_empty_table_without_valid_rows(tmp_path: Path) -> None:
    built = host_gemm.build(write(tmp_path, [{**GOOD, "dtype": "?"}]), {})
    assert len(built.table.frame) == 0
    assert len(built.rejected) == 1


def test_generated_files_are_seeded_and_have_defects(tmp_path: Path) -> None:
    for folder, seed in (("one", 1), ("same", 1), ("other", 2)):
        fake.write(tmp_path / folder, rows=60, seed=seed)
    digests = [sha256(tmp_path / folder / "host_gemm.csv.gz") for folder in ("one", "same", "other")]
    assert digests[0] == digests[1] != digests[2]
    assert "flags" in read_json(tmp_path / "one" / "host_gemm.json")
    built = host_gemm.build({"host_gemm": tmp_path / "one"}, {})
    assert set(built.rejected["reason"]) == {"unstable", "not_positive"}
    assert built.rows_merged > 0
