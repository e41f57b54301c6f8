"""The SPEC CPU2017 and CPU2006 datasets: reading, quarantine, repairs, and what must never be a feature."""

from __future__ import annotations

import csv
import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from perfcast import plugins, splits
from perfcast.data.standardized import Standardized
from perfcast.domains.servers.datasets.spec_cpu import cpu2006, cpu2017
from perfcast.domains.servers.parsing.names import extract_system_stem
from perfcast.domains.servers.testing import cpu_catalog, spec_cpu2006, spec_cpu2017
from perfcast.schema.table import Role
from perfcast.schema.table_files import write_table
from perfcast.utils.errors import UserError

CPU2006, CPU2017 = "spec_cpu2006", "spec_cpu2017"


@dataclass(frozen=True)
class Dump:
    """A generated dump: its modules, and texts in which the two dumps differ."""

    module: ModuleType
    fake: ModuleType
    library: Any
    options: dict[str, str]
    end: bytes
    score: bytes
    mhz: bytes
    sound: tuple[bytes, bytes]
    """Processors of two sound rows, the first of `mhz`."""
    unusable: tuple[bytes, bytes]
    """Replacement after which a row is no result."""
    reasons: dict[str, int]
    merged: dict[str, int]

    def build(self, folders: dict[str, Path], **options: object) -> Standardized:
        return self.module.build(folders, {**self.options, **options})

    def build_bytes(self, folder: Path, data: bytes) -> Standardized:
        (folder / "dump.csv").write_bytes(data)
        return self.build({self.module.DUMP.source: folder})


_SHARED = {"score_not_numeric": 1, "impossible_counts": 1, "repeated_header": 1, "shifted_columns": 1}
_SHARED |= {"wrong_field_count": 1, "not_utf8": 1}
DUMPS = {
    CPU2006: Dump(
        *(cpu2006, spec_cpu2006, lzma, {}, b"\n", b"Baseline", b",2933,", (b"Xeon X5570", b"Opteron 2384")),
        unusable=(b"-20", b"-19"),
        reasons={**_SHARED, "no_score": 1},
        merged={"identical": 1},
    ),
    CPU2017: Dump(
        *(cpu2017, spec_cpu2017, gzip, {"published_until": "2024-12"}, b"\r\n", b"Base Result", b",2400,"),
        sound=(b"Xeon Gold 6148", b"EPYC 7742"),
        unusable=(b"cpu2017-2", b"cpu2018-2"),
        reasons={**_SHARED, "no_score": 2},
        merged={"identical_but_for_disclosure": 1},
    ),
}


@dataclass(frozen=True)
class Case:
    """One dataset of generated inputs: folders of its sources, the built dataset, the lines of its dump."""

    dump: Dump
    raw: dict[str, Path]
    built: Standardized
    lines: list[bytes]

    def find_row(self, number: int = 0) -> bytes:
        """Return a sound row of a processor of `Dump.sound`."""
        name = self.dump.sound[number]
        odd = (b",NC,", b"\xff", b",Mar-2025")
        return next(line for line in self.lines[1:] if name in line and not any(text in line for text in odd))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    catalog = tmp_path_factory.mktemp("cpu_catalog")
    cpu_catalog.write(catalog, rows=10, seed=3)
    made = {}
    for name, dump in DUMPS.items():
        raw = {name: tmp_path_factory.mktemp(name), "cpu_catalog": catalog}
        dump.fake.write(raw[name], rows=600, seed=2)
        data = dump.library.decompress((raw[name] / dump.fake.FILE).read_bytes())
        made[name] = Case(dump, raw, dump.build(raw), data.splitlines(keepends=True))
    return made


@pytest.fixture(params=DUMPS)
def case(request: pytest.FixtureRequest, cases: dict[str, Case]) -> Case:
    return cases[request.param]


def test_build_accounts_for_every_row(case: Case) -> None:
    built = case.built
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    assert built.merged == case.dump.merged
    assert built.quality["after_published_until"] == ("published_until" in case.dump.options)


def test_build_quarantines_each_defect_with_reason(case: Case) -> None:
    assert case.built.rejected["reason"].value_counts().to_dict() == case.dump.reasons
    assert (case.built.rejected["line"] > 1).all()


def test_build_declares_base_score_as_target_and_no_peak_feature(case: Case) -> None:
    assert case.built.table.select(role=Role.TARGET) == ["base_score"]
    features = case.built.table.select(role=Role.FEATURE)
    assert not {"peak_score", "peak_ptr", "system_stem", "updated", "published_month"} & set(features)


@pytest.mark.parametrize(("name", "cpu_model"), [(CPU2006, "vector v9"), (CPU2017, "quantum core x1")])
def test_build_keeps_unknown_processor_without_family(cases: dict[str, Case], name: str, cpu_model: str) -> None:
    built = cases[name].built
    unknown = built.table.frame[built.table.frame["family"].isna()]
    assert {cpu_model: len(unknown)} == built.quality["unknown_processors"]
    assert set(unknown["cpu_model"]) == {cpu_model}
    assert unknown[["tdp_w", "mem_channels_per_chip"]].isna().all(axis=None)


def test_build_limits_effective_memory_rate(case: Case) -> None:
    frame = case.built.table.frame.dropna(subset=["mem_eff_mts", "mem_max_mts_1dpc"])
    assert len(frame)
    assert (frame["mem_eff_mts"] <= frame["mem_max_mts_1dpc"]).all()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda row, dump: b'"' + row, "not_csv"),
        (lambda row, dump: row.replace(dump.end, b",extra,extra" + dump.end), "wrong_field_count"),
        (lambda row, dump: b"x," * 1_000_000 + dump.end, "line_too_long"),
        (lambda row, dump: row.replace(b"CINT20", b"CXXX20").replace(b"CFP20", b"CXXX20"), "unknown_suite"),
        (lambda row, dump: row.replace(dump.mhz, b",fast,", 1), "count_not_numeric"),
        (lambda row, dump: row.replace(dump.mhz, b",1e3,", 1), "count_not_numeric"),
        (lambda row, dump: row.replace(dump.mhz, b",99000,", 1), "out_of_bounds"),
        (lambda row, dump: row.replace(*dump.unusable), ("date_impossible", "no_result_id")),
    ],
)
def test_build_quarantines_bad_row_alone(
    case: Case, tmp_path: Path, change: Callable[[bytes, Dump], bytes], reason: str | tuple[str, str]
) -> None:
    result = case.dump.build_bytes(tmp_path, case.lines[0] + change(case.find_row(), case.dump) + case.find_row(1))
    expected = reason if isinstance(reason, str) else reason[case.dump is DUMPS[CPU2017]]
    assert result.rows_in == 2
    assert result.rejected[["line", "reason"]].to_numpy().tolist() == [[2, expected]]
    assert [name.encode() for name in result.table.frame["cpu_model"]] == [case.dump.sound[1].lower()]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda data, dump: b"", "must have a header line"),
        (lambda data, dump: dump.library.compress(data)[:-2000], "must be a whole (gzip|xz) file"),
        (lambda data, dump: lzma.compress(data)[:40] + b"\x00" * 400, "must be a whole xz file"),
        (
            lambda data, dump: data.replace(dump.score, dump.score + b"s"),
            "the column '(Base Result|Baseline)' once.*nearest unknown one is '(Base Results|Baselines)'",
        ),
        (lambda data, dump: data.split(b"\n")[0] + b"\n", "must hold a usable result, but of 0 rows"),
        (lambda data, dump: b",".join(b"c%d" % i for i in range(1_000_000)), "at most 1000 columns"),
        (lambda data, dump: b"\x00\x01\x02 no table", "must have the column 'Benchmark'"),
    ],
)
def test_build_refuses_bad_file(case: Case, tmp_path: Path, data: Callable[[bytes, Dump], bytes], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        case.dump.build_bytes(tmp_path, data(b"".join(case.lines), case.dump))
    assert "\n" not in str(caught.value)


def test_build_refuses_no_usable_row_and_second_file(case: Case, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="must hold a usable result, but of 1 rows 1 are unusable, 0 too late"):
        case.dump.build_bytes(tmp_path, case.lines[0] + case.find_row().replace(*case.dump.unusable))
    (tmp_path / "second.csv").write_bytes(case.lines[0])
    with pytest.raises(UserError, match="must be one file"):
        case.dump.build({case.dump.module.DUMP.source: tmp_path})


def test_build_accepts_plain_file_without_catalog(case: Case, tmp_path: Path) -> None:
    plain = case.dump.build_bytes(tmp_path, b"".join(case.lines))
    assert len(plain.table.frame) == len(case.built.table.frame)
    assert plain.table.columns == case.built.table.columns
    # The project's table of parts needs no catalog and is then the only source of facts; it has none of CPU2006.
    listed, coverage = plain.table.frame["tdp_w"].notna(), plain.quality["join_coverage"]
    assert listed.mean() < case.built.table.frame["tdp_w"].notna().mean()
    assert {name for name, rows in coverage["by_table"].items() if rows} <= {"project"}
    assert coverage["by_table"]["project"] == listed.sum()
    assert listed.any() == (case.dump is DUMPS[CPU2017])


def test_cpu2017_counts_repairs_and_keeps_stated_values(cases: dict[str, Case]) -> None:
    frame, repairs = cases[CPU2017].built.table.frame, cases[CPU2017].built.quality["repairs"]
    assert repairs["capacity_mb_for_gb"] == repairs["ddr_gen_from_rate"] == repairs["test_month_after_publication"] == 1
    twice = frame[(frame["cpu_model"] == "xeon e-2236") & (frame["q_cores_mismatch"] == 1)]
    columns = ["cores_per_chip_stated", "cores_per_chip_of_cpu_model", "cores_enabled_total"]
    assert twice[columns].to_numpy().tolist() == [[12, 6, 6]]
    assert set(frame.loc[frame["family"] == "Sierra Forest", "l2_kb_per_core"]) == {1024}


def test_cpu2017_unifies_spellings_of_a_processor(cases: dict[str, Case]) -> None:
    frame = cases[CPU2017].built.table.frame
    assert frame.loc[frame["cpu_model"] == "xeon gold 6534", "cpu_model_id"].unique().tolist() == ["xeon-gold-6534"]
    assert not frame["cpu_model"].str.contains("  ").any()


def test_cpu2017_keeps_line_of_each_row(cases: dict[str, Case]) -> None:
    row, lines = cases[CPU2017].built.table.frame.iloc[0], cases[CPU2017].lines
    later = [number for number, line in enumerate(lines, 1) if b",Mar-2025," in line]
    physical = row["line"] + sum(number <= row["line"] for number in later)
    assert row["result_id"].encode() in lines[int(physical) - 1]


def test_cpu2017_gives_same_bytes_for_both_snapshots(cases: dict[str, Case], tmp_path: Path) -> None:
    case = cases[CPU2017]
    cut = b"".join(line for line in case.lines if b",Mar-2025," not in line)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / spec_cpu2017.FILE).write_bytes(gzip.compress(cut))
    other = case.dump.build({**case.raw, CPU2017: tmp_path / "cut"})
    assert len(cut) < len(b"".join(case.lines))
    write_table(case.built.table, tmp_path / "one.parquet")
    write_table(other.table, tmp_path / "other.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()
    assert (case.built.rows_in, other.quality["after_published_until"]) == (other.rows_in, 0)


def test_cpu2017_rejects_repeated_identifier_and_merges_repeated_line(cases: dict[str, Case], tmp_path: Path) -> None:
    case, row = cases[CPU2017], cases[CPU2017].find_row()
    result = case.dump.build_bytes(tmp_path, case.lines[0] + row + row + row.replace(b",2400,", b",2500,"))
    assert result.merged == {"identical_but_for_disclosure": 1}
    assert result.rejected["reason"].tolist() == ["duplicate_result_id"]


def test_cpu2017_applies_and_validates_published_until(cases: dict[str, Case]) -> None:
    case = cases[CPU2017]
    early = case.dump.build(case.raw, published_until="2020-06")
    assert early.table.frame["published_month"].max() <= pd.Timestamp(2020, 6, 1)
    everything = case.dump.build(case.raw, published_until=None)
    assert everything.quality["after_published_until"] == 0
    assert everything.table.frame["published_month"].max() == pd.Timestamp(2025, 3, 1)
    with pytest.raises(UserError, match="published_until"):
        case.dump.build(case.raw, published_until="later")
    with pytest.raises(UserError, match="or set published_until later"):
        case.dump.build(case.raw, published_until="2001-01")


def test_cpu2006_names_results_by_their_lines(cases: dict[str, Case]) -> None:
    lines = cases[CPU2006].lines
    for row in cases[CPU2006].built.table.frame.head(20).itertuples():
        fields = next(csv.reader([lines[int(row.line) - 1].decode()]))
        assert (f"{row.base_score:g}", row.result_id) == (fields[4], f"cpu2006-{int(row.line):05d}")


def test_cpu2006_counts_and_flags_repairs(cases: dict[str, Case]) -> None:
    frame, repairs = cases[CPU2006].built.table.frame, cases[CPU2006].built.quality["repairs"]
    assert repairs["test_month_before_the_suite"] == repairs["test_month_after_publication"] == 1
    assert repairs["turbo_off"] == 1
    assert frame["q_date"].sum() == 2
    single_core = frame[frame["cores_enabled_total"] == 1]
    assert (single_core["cores_per_chip_of_cpu_model"] > 1).any()
    bus = frame[frame["family"] == "Woodcrest"]
    assert set(bus["bus_mts"]) == {1333}
    assert bus["mem_channels_per_chip"].isna().all()
    assert frame.loc[frame["cpu_model"] == "itanium 2 9040", "family"].unique().tolist() == ["Montecito"]


@pytest.mark.parametrize(
    ("cpu_model", "column", "size"),
    [
        ("xeon e5450", "l2_kb_per_core", 3072),
        ("xeon 5160", "l2_kb_per_core", 3072),
        ("opteron 6276", "l1i_kb", 32),
        ("xeon 5160", "l3_mb_per_chip", 0),
    ],
)
def test_cpu2006_converts_caches_to_one_scope(cases: dict[str, Case], cpu_model: str, column: str, size: int) -> None:
    frame = cases[CPU2006].built.table.frame
    assert set(frame.loc[frame["cpu_model"] == cpu_model, column]) == {size}


def test_forward_splits_test_later_years(cases: dict[str, Case]) -> None:
    table = cases[CPU2006].built.table
    for name, start in (("forward_2010", "2010-01"), ("forward_2012", "2012-01")):
        fold = splits.make(name, table, 0)["fold_0"]
        months = table.frame["published_month"]
        assert months[fold.isin(["train", "validation"])].max() < pd.Timestamp(start) <= months[fold == "test"].min()


def test_front_side_bus_replaces_missing_channels(cases: dict[str, Case]) -> None:
    table = cases[CPU2006].built.table
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
