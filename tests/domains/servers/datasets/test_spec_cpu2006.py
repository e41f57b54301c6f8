"""The SPEC CPU2006 dataset: reading, quarantine, repairs, and what must never be a feature."""

from __future__ import annotations

import csv
import lzma
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from perfcast import plugins, splits
from perfcast.data.standardized import Standardized
from perfcast.domains.servers.datasets.spec_cpu.cpu2006 import build, older_cpu_model_key
from perfcast.domains.servers.testing import cpu_catalog, spec_cpu2006
from perfcast.schema.table import Role
from perfcast.utils.errors import UserError


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {name: tmp_path_factory.mktemp(name) for name in ("spec_cpu2006", "cpu_catalog")}
    spec_cpu2006.write(folders["spec_cpu2006"], rows=500, seed=3)
    cpu_catalog.write(folders["cpu_catalog"], rows=10, seed=3)
    return folders


@pytest.fixture(scope="module")
def built(raw: dict[str, Path]) -> Standardized:
    return build(raw, {})


@pytest.fixture(scope="module")
def lines(raw: dict[str, Path]) -> list[bytes]:
    return lzma.decompress(next(raw["spec_cpu2006"].glob("*.xz")).read_bytes()).splitlines(keepends=True)


def build_dump(folder: Path, data: bytes, name: str = "dump.csv") -> Standardized:
    (folder / name).write_bytes(data)
    return build({"spec_cpu2006": folder}, {})


def find_row(lines: list[bytes], processor: bytes = b"Xeon X5570") -> bytes:
    """Return a sound row of this processor."""
    return next(line for line in lines[1:] if processor in line and b",NC," not in line and b"\xff" not in line)


def test_build_accounts_for_every_row(built: Standardized) -> None:
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    assert built.merged == {"identical": 1}


def test_build_quarantines_each_defect_with_reason(built: Standardized) -> None:
    assert built.rejected["reason"].value_counts().to_dict() == {
        "no_score": 1,
        "score_not_numeric": 1,
        "impossible_counts": 1,
        "repeated_header": 1,
        "shifted_columns": 1,
        "wrong_field_count": 1,
        "not_utf8": 1,
    }
    assert (built.rejected["line"] > 1).all()


def test_build_declares_base_score_as_target_and_no_peak_feature(built: Standardized, lines: list[bytes]) -> None:
    table = built.table
    assert table.select(role=Role.TARGET) == ["base_score"]
    features = table.select(role=Role.FEATURE)
    assert not {"peak_score", "peak_ptr", "system_stem", "updated", "published_month"} & set(features)
    for row in table.frame.head(20).itertuples():
        fields = next(csv.reader([lines[int(row.line) - 1].decode()]))
        assert (f"{row.base_score:g}", row.result_id) == (fields[4], f"cpu2006-{int(row.line):05d}")


def test_build_counts_and_flags_repairs(built: Standardized) -> None:
    frame, repairs = built.table.frame, built.quality["repairs"]
    assert repairs["test_month_before_the_suite"] == repairs["test_month_after_publication"] == 1
    assert repairs["turbo_off"] == 1
    assert frame["q_date"].sum() == 2
    single_core = frame[frame["cores_enabled_total"] == 1]
    assert (single_core["cores_per_chip_of_cpu_model"] > 1).any()
    bus = frame[frame["family"] == "Woodcrest"]
    assert set(bus["bus_mts"]) == {1333}
    assert bus["mem_channels_per_chip"].isna().all()


def test_build_converts_caches_to_one_scope(built: Standardized) -> None:
    frame = built.table.frame.set_index("cpu_model")
    assert set(frame.loc["xeon e5450", "l2_kb_per_core"]) == {3072}
    assert set(frame.loc["xeon 5160", "l2_kb_per_core"]) == {3072}
    assert set(frame.loc["opteron 6276", "l1i_kb"]) == {32}
    assert set(frame.loc["xeon 5160", "l3_mb_per_chip"]) == {0}


def test_build_keeps_unknown_processor_without_family(built: Standardized) -> None:
    frame = built.table.frame
    unknown = frame[frame["family"].isna()]
    assert set(unknown["cpu_model"]) == set(built.quality["unknown_processors"]) == {"vector v9"}
    assert unknown[["tdp_w", "mem_channels_per_chip"]].isna().all(axis=None)
    assert frame.loc[frame["cpu_model"] == "itanium 2 9040", "family"].unique().tolist() == ["Montecito"]


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("Dual-Core Intel Itanium 2 9099", "itanium 2 9099"),
        ("Intel Pentium Dual Core E2199", "pentium dual-core e2199"),
        ("Intel Xeon E7- 4899", "xeon e7-4899"),
        ("Intel Core i7-999X Extreme Edition", "core i7-999x"),
        ("Intel Xeon 5148 LV", "xeon 5148"),
        ("AMD Opteron 2299 SE", "opteron 2299 se"),
        ("UltraSPARC-IV+", "ultrasparc iv+"),
    ],
)
def test_older_part_key_unifies_spellings(typed: str, key: str) -> None:
    assert older_cpu_model_key(typed) == key
    assert older_cpu_model_key(key) == key


def test_build_limits_effective_memory_rate(built: Standardized) -> None:
    frame = built.table.frame.dropna(subset=["mem_eff_mts", "mem_max_mts_1dpc"])
    assert len(frame)
    assert (frame["mem_eff_mts"] <= frame["mem_max_mts_1dpc"]).all()


def test_quality_reports_high_parse_coverage(built: Standardized) -> None:
    shares = {column: coverage["share"] for column, coverage in built.quality["parse_coverage"].items()}
    assert min(share for column, share in shares.items() if column != "CPU(s) Orderable") >= 0.95
    # Texts of machines sold by cores or boards state no chips.
    assert 0.5 < shares["CPU(s) Orderable"] < 1


def test_forward_splits_test_later_years(built: Standardized) -> None:
    for name, start in (("forward_2010", "2010-01"), ("forward_2012", "2012-01")):
        fold = splits.make(name, built.table, 0)["fold_0"]
        months = built.table.frame["published_month"]
        assert months[fold.isin(["train", "validation"])].max() < pd.Timestamp(start) <= months[fold == "test"].min()


def test_front_side_bus_replaces_missing_channels(built: Standardized) -> None:
    table = built.table
    for module in ("processor", "memory", "system", "workload", "front_side_bus"):
        table = plugins.load("features", module).derive(table)
    frame = table.frame
    bus = frame[frame["cpu_model"] == "xeon e5450"]
    assert bus["bus_gbps_total"].tolist() == (bus["chips"] * 1333 * 8 / 1000).tolist()
    assert (bus["path_gbps_total"] == bus["bus_gbps_total"]).all()
    with_channels = frame[(frame["cpu_model"] == "xeon x5570") & frame["mem_gbps_total"].notna()]
    assert (with_channels["path_gbps_total"] == with_channels["mem_gbps_total"]).all()
    assert set(frame.loc[frame["family"] == "Westmere-EP", "has_bus"]) == {0}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda row: b'"' + row, "not_csv"),
        (lambda row: row.replace(b"\n", b",extra\n"), "wrong_field_count"),
        (lambda row: row.replace(b"CINT2006", b"CXXX2006").replace(b"CFP2006", b"CXXX2006"), "unknown_suite"),
        (lambda row: row.replace(b",2933,", b",fast,", 1), "count_not_numeric"),
        (lambda row: row.replace(b",2933,", b",99000,", 1), "out_of_bounds"),
        (lambda row: row.replace(b",2933,", b",1e3,", 1), "count_not_numeric"),
        (lambda row: row.replace(b"-20", b"-19"), "date_impossible"),
    ],
)
def test_build_quarantines_bad_row_alone(
    lines: list[bytes], tmp_path: Path, change: Callable[[bytes], bytes], reason: str
) -> None:
    good, row = find_row(lines, b"Opteron 2384"), find_row(lines)
    result = build_dump(tmp_path, lines[0] + change(row) + good)
    assert result.rows_in == 2
    assert result.rejected[["line", "reason"]].to_numpy().tolist() == [[2, reason]]
    assert result.table.frame["cpu_model"].tolist() == ["opteron 2384"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda data: b"", "must have a header line"),
        (lambda data: lzma.compress(data)[:-2000], "must be a whole xz file"),
        (lambda data: lzma.compress(data)[:40] + b"\x00" * 400, "must be a whole xz file"),
        (lambda data: data.replace(b"Baseline", b"Base Line"), "the column 'Baseline' once"),
        (lambda data: data.split(b"\n")[0] + b"\n", "must hold a usable result"),
        (lambda data: b"\x00\x01\x02 no table", "must have the column 'Benchmark'"),
    ],
)
def test_build_refuses_bad_file(
    lines: list[bytes], tmp_path: Path, data: Callable[[bytes], bytes], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        build_dump(tmp_path, data(b"".join(lines)))
    assert "\n" not in str(caught.value)


def test_build_refuses_no_usable_row_and_second_file(lines: list[bytes], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="must hold a usable result"):
        build_dump(tmp_path, lines[0] + find_row(lines).replace(b"-20", b"-19"))
    (tmp_path / "second.csv").write_bytes(lines[0])
    with pytest.raises(UserError, match="must be one file"):
        build({"spec_cpu2006": tmp_path}, {})


def test_build_accepts_plain_file_without_catalog(lines: list[bytes], built: Standardized, tmp_path: Path) -> None:
    plain = build_dump(tmp_path, b"".join(lines))
    assert len(plain.table.frame) == len(built.table.frame)
    assert built.table.frame["tdp_w"].notna().any()
    assert plain.table.frame["tdp_w"].isna().all()
    assert plain.table.columns == built.table.columns
