"""The SPEC CPU2017 dataset: reading, quarantine, repairs, and the same table from either snapshot."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from perfcast.data.standardized import Standardized
from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import build
from perfcast.domains.servers.parsing.names import extract_system_stem, normalize_company
from perfcast.domains.servers.testing import cpu_catalog, spec_cpu2017
from perfcast.schema.table_files import write_table
from perfcast.utils.errors import UserError

OPTIONS = {"published_until": "2024-12"}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {name: tmp_path_factory.mktemp(name) for name in ("spec_cpu2017", "cpu_catalog")}
    spec_cpu2017.write(folders["spec_cpu2017"], rows=600, seed=3)
    cpu_catalog.write(folders["cpu_catalog"], rows=10, seed=3)
    return folders


@pytest.fixture(scope="module")
def built(raw: dict[str, Path]) -> Standardized:
    return build(raw, OPTIONS)


@pytest.fixture(scope="module")
def lines(raw: dict[str, Path]) -> list[bytes]:
    return gzip.decompress(next(raw["spec_cpu2017"].glob("*.gz")).read_bytes()).splitlines(keepends=True)


def build_dump(folder: Path, data: bytes, name: str = "dump.csv") -> Standardized:
    (folder / name).write_bytes(data)
    return build({"spec_cpu2017": folder}, OPTIONS)


def find_row(lines: list[bytes], processor: bytes = b"Xeon Gold 6148") -> bytes:
    """Return a sound row of this processor, published inside the window."""
    return next(line for line in lines[1:] if processor in line and b",NC," not in line and b",Mar-2025" not in line)


def test_build_accounts_for_every_row(built: Standardized) -> None:
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    assert built.merged == {"identical_but_for_disclosure": 1}
    assert built.quality["after_published_until"] == 1


def test_build_quarantines_each_defect_with_reason(built: Standardized) -> None:
    assert built.rejected["reason"].value_counts().to_dict() == {
        "no_score": 2,
        "score_not_numeric": 1,
        "impossible_counts": 1,
        "repeated_header": 1,
        "shifted_columns": 1,
        "wrong_field_count": 1,
        "not_utf8": 1,
    }
    assert (built.rejected["line"] > 1).all()


def test_quality_reports_parse_coverage_of_99_percent(built: Standardized) -> None:
    assert min(column["share"] for column in built.quality["parse_coverage"].values()) >= 0.99


def test_build_counts_repairs_and_keeps_stated_values(built: Standardized) -> None:
    frame, repairs = built.table.frame, built.quality["repairs"]
    assert repairs["capacity_mb_for_gb"] == repairs["ddr_gen_from_rate"] == repairs["test_month_after_publication"] == 1
    twice = frame[(frame["cpu_model"] == "xeon e-2236") & (frame["q_cores_mismatch"] == 1)]
    assert twice[
        ["cores_per_chip_stated", "cores_per_chip_of_cpu_model", "cores_enabled_total"]
    ].to_numpy().tolist() == [[12, 6, 6]]
    sierra = frame[frame["family"] == "Sierra Forest"]
    assert set(sierra["l2_kb_per_core"]) == {1024}


def test_build_unifies_spellings_of_a_processor(built: Standardized) -> None:
    frame = built.table.frame
    assert frame.loc[frame["cpu_model"] == "xeon gold 6534", "cpu_model_id"].unique().tolist() == ["xeon-gold-6534"]
    assert not frame["cpu_model"].str.contains("  ").any()


def test_build_keeps_unknown_processor_without_family(built: Standardized) -> None:
    unknown = built.table.frame[built.table.frame["cpu_model"] == "quantum core x1"]
    assert len(unknown) == built.quality["unknown_processors"]["quantum core x1"] > 0
    assert unknown[["family", "tdp_w", "mem_channels_per_chip"]].isna().all(axis=None)


def test_build_limits_effective_memory_rate(built: Standardized) -> None:
    frame = built.table.frame.dropna(subset=["mem_eff_mts", "mem_max_mts_1dpc"])
    assert (frame["mem_eff_mts"] <= frame["mem_max_mts_1dpc"]).all()


def test_build_keeps_line_of_each_row(built: Standardized, lines: list[bytes]) -> None:
    row = built.table.frame.iloc[0]
    later = [number for number, line in enumerate(lines, 1) if b",Mar-2025," in line]
    physical = row["line"] + sum(number <= row["line"] for number in later)
    assert row["result_id"].encode() in lines[int(physical) - 1]


def test_build_gives_same_bytes_for_both_snapshots(
    raw: dict[str, Path], built: Standardized, lines: list[bytes], tmp_path: Path
) -> None:
    cut = b"".join(line for line in lines if b",Mar-2025," not in line)
    name = next(raw["spec_cpu2017"].glob("*.gz")).name
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / name).write_bytes(gzip.compress(cut))
    other = build({**raw, "spec_cpu2017": tmp_path / "cut"}, OPTIONS)
    assert len(cut) < len(b"".join(lines))
    write_table(built.table, tmp_path / "one.parquet")
    write_table(other.table, tmp_path / "other.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()
    assert (built.rows_in, other.quality["after_published_until"]) == (other.rows_in, 0)


def test_build_accepts_plain_file_without_catalog(lines: list[bytes], built: Standardized, tmp_path: Path) -> None:
    plain = build_dump(tmp_path, b"".join(lines))
    assert len(plain.table.frame) == len(built.table.frame)
    # The project's table of parts needs no catalog and is then the only source of facts.
    listed, coverage = plain.table.frame["tdp_w"].notna(), plain.quality["join_coverage"]
    assert 0 < listed.mean() < built.table.frame["tdp_w"].notna().mean()
    assert {name for name, count in coverage["by_table"].items() if count["rows"]} == {"project"}
    assert coverage["by_table"]["project"]["rows"] == listed.sum()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda row: b'"' + row, "not_csv"),
        (lambda row: row.replace(b"\r\n", b",extra,extra\r\n"), "wrong_field_count"),
        (lambda row: b"x," * 1_000_000 + b"\r\n", "line_too_long"),
        (lambda row: row.replace(b"CINT2017", b"CXXX2017").replace(b"CFP2017", b"CXXX2017"), "unknown_suite"),
        (lambda row: row.replace(b",2400,", b",fast,", 1), "count_not_numeric"),
        (lambda row: row.replace(b",2400,", b",99000,", 1), "out_of_bounds"),
        (lambda row: row.replace(b"cpu2017-2", b"cpu2018-2"), "no_result_id"),
    ],
)
def test_build_quarantines_bad_row_alone(
    lines: list[bytes], tmp_path: Path, change: Callable[[bytes], bytes], reason: str
) -> None:
    good, row = find_row(lines, b"EPYC 7742"), find_row(lines)
    result = build_dump(tmp_path, lines[0] + change(row) + good)
    assert result.rows_in == 2
    assert result.rejected[["line", "reason"]].to_numpy().tolist() == [[2, reason]]
    assert result.table.frame["cpu_model"].tolist() == ["epyc 7742"]


def test_build_rejects_repeated_identifier_and_merges_repeated_line(lines: list[bytes], tmp_path: Path) -> None:
    row = find_row(lines)
    result = build_dump(tmp_path, lines[0] + row + row + row.replace(b",2400,", b",2500,"))
    assert result.merged == {"identical_but_for_disclosure": 1}
    assert result.rejected["reason"].tolist() == ["duplicate_result_id"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda data: b"", "must have a header line"),
        (lambda data: gzip.compress(data)[:-2000], "must be a whole gzip file"),
        (
            lambda data: data.replace(b"Base Result", b"Base Score"),
            "the column 'Base Result' once.*nearest unknown one is 'Base Score'",
        ),
        (lambda data: data.split(b"\n")[0] + b"\n", "must hold a usable result"),
        (lambda data: b",".join(b"c%d" % i for i in range(1_000_000)), "at most 1000 columns"),
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
        build_dump(tmp_path, lines[0] + find_row(lines).replace(b"cpu2017-2", b"cpu2018-2"))
    (tmp_path / "second.csv").write_bytes(lines[0])
    with pytest.raises(UserError, match="must be one file"):
        build({"spec_cpu2017": tmp_path}, OPTIONS)


def test_build_applies_and_validates_published_until(raw: dict[str, Path]) -> None:
    early = build(raw, {"published_until": "2020-06"})
    assert early.table.frame["published_month"].max() <= pd.Timestamp(2020, 6, 1)
    everything = build(raw, {"published_until": None})
    assert everything.quality["after_published_until"] == 0
    assert everything.table.frame["published_month"].max() == pd.Timestamp(2025, 3, 1)
    with pytest.raises(UserError, match="published_until"):
        build(raw, {"published_until": "later"})


@pytest.mark.parametrize(
    ("system", "processor", "stem"),
    [
        ("ThinkSystem SR590 (1.90 GHz, Intel Xeon Bronze 3204)", "Intel Xeon Bronze 3204", "ThinkSystem SR590"),
        ("PowerEdge R6625 (AMD EPYC 9254 24-Core Processor)", "AMD EPYC 9254", "PowerEdge R6625"),
        ("ThinkSystem SR635 3.10 GHz, AMD EPYC 7252", "AMD EPYC 7252", "ThinkSystem SR635"),
        (
            "SuperServer 5019P-MT (X11SPi-TF , Intel Xeon Gold 5118)",
            "Intel Xeon Gold 5118",
            "SuperServer 5019P-MT (X11SPi-TF)",
        ),
    ],
)
def test_extract_system_stem(system: str, processor: str, stem: str) -> None:
    assert extract_system_stem(system, processor) == stem


@pytest.mark.parametrize(
    ("signed", "name"),
    [
        ("Hewlett Packard Enterprise", "HPE"),
        ("GIGA-BYTE TECHNOLOGY CO., LTD", "Gigabyte"),
        ("Inspur Electronic Information Industry Co., Ltd. (IEI)", "Inspur"),
        ("Necromancer Systems", "Necromancer Systems"),
        ("Some New Maker Co., Ltd.", "Some New Maker"),
    ],
)
def test_canonical_company(signed: str, name: str) -> None:
    assert normalize_company(signed) == name
