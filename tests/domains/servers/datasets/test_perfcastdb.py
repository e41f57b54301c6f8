"""PerfCastDB: long rows to runs, unit repairs, samples joined, nothing lost."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.data.standardized import Standardized
from perfcast.domains.servers.datasets.perfcastdb import runs_table
from perfcast.domains.servers.datasets.perfcastdb.run_values import NUMERICAL, STATED, characterize_run
from perfcast.domains.servers.datasets.perfcastdb.runs_table import make_slug, split_unit
from perfcast.domains.servers.datasets.perfcastdb.sample_skus import FIELDS, parse_quantity, read_skus
from perfcast.domains.servers.features import run
from perfcast.domains.servers.testing import perfcastdb as fake
from perfcast.domains.servers.testing.perfcastdb import write_sheet
from perfcast.schema.table import Role, Tag, out_of_bounds
from perfcast.utils.errors import UserError
from perfcast.utils.io import sha256

Rows = list[dict[str, str]]
RUN, TEST, VALUE = "kubernetes.pod_id", "RESULT.TestName", "RESULT.Value"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    fake.write(folder, rows=150, seed=5)
    return folder


@pytest.fixture(scope="module")
def whole(generated: Path) -> Standardized:
    return runs_table.build({"perfcastdb": generated}, {})


@pytest.fixture
def build_changed(generated: Path, tmp_path: Path) -> Callable[[Callable[[Rows], Rows]], Standardized]:
    """Build after a change of the rows of the training part."""

    def build(change: Callable[[Rows], Rows]) -> Standardized:
        for path in generated.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        path = tmp_path / "train_data.csv"
        with path.open(newline="") as file:
            rows = change(list(csv.DictReader(file)))
        pd.DataFrame(rows, columns=fake.HEADER).to_csv(path, index=False)
        built = runs_table.build({"perfcastdb": tmp_path}, {})
        assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
        return built

    return build


def raw_rows(folder: Path, part: str) -> pd.DataFrame:
    return pd.read_csv(folder / f"{part}_data.csv", dtype=str, keep_default_na=False)


def test_build_accounts_for_every_long_row(whole: Standardized, generated: Path) -> None:
    rows = pd.concat([raw_rows(generated, part) for part in ("train", "test")])
    assert whole.rows_in == len(rows)
    assert whole.rows_in == len(whole.table.frame) + whole.rows_merged + len(whole.rejected)
    means = rows[TEST] == rows["RESULT.WorkloadName"]
    assert whole.rejected["reason"].value_counts().to_dict() == {"suite_mean": int(means.sum())}
    copies = rows[RUN].str.endswith("33") & rows[RUN].str.removesuffix("33").isin(rows[RUN])
    assert whole.merged["copied_run"] == int((copies & ~means).sum()) > 0


def test_build_averages_targets_over_iterations(whole: Standardized, generated: Path) -> None:
    rows = raw_rows(generated, "test")
    rows = rows[rows["RESULT.WorkloadName"] == "Stream"]
    first = rows[RUN].iloc[0]
    values = rows.loc[(rows[RUN] == first) & rows[TEST].str.startswith("Copy"), VALUE].astype(float)
    row = whole.table.frame.set_index("run_id").loc[first]
    assert row["stream__copy_bandwidth_ntw"] == pytest.approx(values.mean())
    assert row["iterations"] == len(values)
    assert row["tests"] == 2
    assert row["spread_max"] >= row["spread_median"] > 0
    assert row["published_subset"] == "test"


def test_build_makes_each_test_but_suite_means_a_target(whole: Standardized) -> None:
    table = whole.table
    targets = table.select(role=Role.TARGET)
    assert "memory_latency_checker_bandwidth__peak_bandwidth_socket_0_100r" in targets
    assert not [name for name in targets if name.endswith("base")]
    units = {column.name: (column.unit, column.meaning) for column in table.columns}
    unit, meaning = units["memory_latency_checker_latency__local_socket_local_cluster_l1_hit_latency"]
    assert unit == "ns"
    assert "lower is better" in meaning
    assert units["hpcg__score"][0] == "GFLOP/s"
    assert table.facts["lower_is_better"] == [name for name in targets if units[name][0] == "ns"]
    suites = table.frame[targets].notna().T.groupby(lambda name: name.split("__")[0]).any().T
    assert (suites.sum(axis=1) == 1).all()
    assert (suites.idxmax(axis=1) == table.frame[table.column_of(Tag.TASK)]).all()


def test_build_drops_names_of_hosts_clusters_and_namespaces(whole: Standardized) -> None:
    text = whole.table.frame.to_csv() + whole.rejected.to_csv() + repr(whole.quality) + repr(whole.table.facts)
    for name in ("generated-host", "generated-cluster", "generated-namespace"):
        assert name not in text


def test_quality_reports_repairs_and_the_join(whole: Standardized) -> None:
    assert set(whole.quality["repairs"]) == {f"{level}_whole_system_mb" for level in ("l1", "l2", "l3")}
    assert whole.quality["join_coverage"]["share_of_rows"] == 1
    assert set(whole.table.frame["l2_kb_per_core"]) == {2048.0}


def test_run_features_derive_totals(whole: Standardized) -> None:
    frame = run.derive(whole.table).frame
    assert not out_of_bounds(run.derive(whole.table)).any(axis=None)
    assert set(frame["ddr_gbps_total"]) == {0.0, 16 * 4800 * 8 / 1000}
    assert set(frame["hbm_gbps_total"]) == {0.0, 8 * 3200 * 128 / 1000}
    assert (frame["mem_gbps_total"] > 0).all()
    assert frame["l3_mb_total"].tolist() == (2 * frame["l3_mb_per_chip"]).tolist()


@pytest.mark.parametrize(
    ("column", "text", "reason", "detail"),
    [
        (VALUE, "fast", "not_a_number", "RESULT.Value: fast"),
        (VALUE, "", "not_a_number", "RESULT.Value: "),
        (VALUE, "0", "not_a_number", "RESULT.Value: 0"),
        (VALUE, "-1", "not_a_number", "RESULT.Value: -1"),
        (VALUE, "nan", "not_a_number", "RESULT.Value: nan"),
        ("SVR.CPU.L3 Cache", "large", "not_a_number", "SVR.CPU.L3 Cache: large"),
    ],
)
def test_build_quarantines_bad_row(
    build_changed: Callable[..., Standardized],
    whole: Standardized,
    column: str,
    text: str,
    reason: str,
    detail: str | None,
) -> None:
    built = build_changed(lambda rows: [{**rows[0], column: text}, *rows[1:]])
    assert len(built.table.frame) == len(whole.table.frame) + 1  # the copied run is no copy any more
    bad = built.rejected[built.rejected["reason"] == reason]
    assert bad[["file", "line"]].values.tolist() == [["train_data.csv", 2]]
    assert detail is None or bad["detail"].tolist() == [detail]


def test_build_merges_repeated_rows(build_changed: Callable[..., Standardized], whole: Standardized) -> None:
    def change(rows: Rows) -> Rows:
        stream = [row for row in rows if row["RESULT.WorkloadName"] == "Stream"]
        return [*rows, stream[0]]

    built = build_changed(change)
    assert built.merged["repeated_row"] == 1
    pd.testing.assert_frame_equal(built.table.frame, whole.table.frame)


def test_build_converts_units(build_changed: Callable[..., Standardized]) -> None:
    def change(rows: Rows) -> Rows:
        stream = [row for row in rows if row[TEST].startswith("Triad")]
        giga = {**stream[0], TEST: "Triad Bandwidth (NTW) (GB/s)", VALUE: str(float(stream[0][VALUE]) / 1000)}
        return [giga if row is stream[0] else row for row in rows]

    built = build_changed(change)
    triad = built.table.frame["stream__triad_bandwidth_ntw"].dropna()
    assert triad.max() / triad.min() < 3


def test_build_leaves_values_of_unknown_sample_missing(
    build_changed: Callable[..., Standardized],
) -> None:
    code = "META.metadata.cscope.qdf0"
    built = build_changed(lambda rows: [{**row, code: "UNKNOWN"} if row[RUN] == rows[-1][RUN] else row for row in rows])
    assert built.quality["join_coverage"]["codes_missing"] == ["UNKNOWN"]
    unknown = built.table.frame[built.table.frame["sku_code"] == "UNKNOWN"]
    assert unknown[list(FIELDS)].isna().all(axis=None)


def test_build_drops_file_without_valid_rows(build_changed: Callable[..., Standardized], generated: Path) -> None:
    built = build_changed(lambda rows: [{**row, VALUE: "?"} for row in rows])
    assert set(built.table.frame["published_subset"]) == {"test"}


@pytest.mark.parametrize("name", ["train_data.csv", "test_data.csv", "SPR_QDF_INFO.xlsx"])
@pytest.mark.parametrize("content", [None, b"", b"no table"])
def test_build_refuses_missing_or_broken_file(
    generated: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    for path in generated.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=name.replace(".", r"\.")):
        runs_table.build({"perfcastdb": tmp_path}, {})


def test_build_refuses_options(generated: Path) -> None:
    with pytest.raises(UserError, match="no options"):
        runs_table.build({"perfcastdb": generated}, {"color": "red"})


def test_read_skus_refuses_sheet_without_column(tmp_path: Path) -> None:
    write_sheet(tmp_path / "sheet.xlsx", [["titles"], ["QDF/SSPEC", "Functional Core"]])
    with pytest.raises(UserError, match="'Cache'"):
        read_skus(tmp_path / "sheet.xlsx")
    write_sheet(tmp_path / "other.xlsx", [["one", "two"]] * 9)
    with pytest.raises(UserError, match="QDF/SSPEC"):
        read_skus(tmp_path / "other.xlsx")


def test_read_skus_uses_first_sample(tmp_path: Path) -> None:
    titles = ["QDF/SSPEC", *(f"{title} Rte" for title, _ in FIELDS.values())]
    first, other = ["QA", *["3 GHz"] * len(FIELDS)], ["QA", *["4 GHz"] * len(FIELDS)]
    write_sheet(tmp_path / "sheet.xlsx", [[], titles, first, [], first, other])
    skus = read_skus(tmp_path / "sheet.xlsx")
    assert list(skus.index) == ["QA"]
    assert skus.loc["QA", "sku_base_mhz"] == 3000
    assert pd.isna(skus.loc["QA", "sku_cores"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2.7", 2700), ("2.2 GHz", 2200), ("800 MHz", 800), ("0", None), ("", None), ("3 W", None), ("fast", None)],
)
def test_parse_quantity(text: str, expected: float | None) -> None:
    assert parse_quantity(text, FIELDS["sku_base_mhz"][1]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Score(GFLOPS)", ("Score", "GFLOP/s", 1.0)),
        ("Remote (Reverse) (MB/s)", ("Remote (Reverse)", "MB/s", 1.0)),
        ("Remote (GB/s)", ("Remote", "MB/s", 1000.0)),
        ("Copy (NTW)", ("Copy (NTW)", "", 1.0)),
        ("503.bwaves_r", ("503.bwaves_r", "", 1.0)),
        ("MB/s", ("MB/s", "", 1.0)),
    ],
)
def test_split_unit(text: str, expected: tuple[str, str, float]) -> None:
    assert split_unit(text) == expected


def stated() -> dict[str, str]:
    return dict.fromkeys(STATED, "")


def test_characterize_run_of_empty_texts_is_empty() -> None:
    values, repairs = characterize_run(stated())
    assert {value for value in values.values() if value is not None} == set()
    assert repairs == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("512GB (16x32GB DDR5 4800 MT/s [4400 MT/s])", (512, 0, 16, 32, 4800, 4400)),
        ("512GB (16x32GB DDR5 4800 MT/s)", (512, 0, 16, 32, 4800, 4800)),
        (
            "64GB (4x16GB DDR4 3200 MT/s [2933 MT/s]); 32GB (1x32GB DDR4 2666 MT/s [2666 MT/s])",
            (96, 0, 5, 19.2, 2666, 2666),
        ),
        ("64GB (4x16GB HBM2 3200 MT/s [2800 MT/s])", (64, 64, 0, None, None, None)),
        ("64GB (1x64GB DDR5 4800 MT/s); 16GB (1x16GB HBM2e 3600 MT/s)", (80, 16, 1, 64, 4800, 4800)),
    ],
)
def test_characterize_run_parses_installed_memory(text: str, expected: tuple[float | None, ...]) -> None:
    values, _ = characterize_run({**stated(), "SVR.Memory.Installed": text})
    names = ["mem_total_gb", "hbm_gb", "dimm_count", "dimm_gb", "mem_rated_mts", "mem_running_mts"]
    assert [values.get(name) for name in names] == list(expected)


def test_characterize_run_omits_partly_parsed_memory() -> None:
    text = "64GB (1x64GB DDR5 4800 MT/s); 512GB (4x128GB PMEM)"
    assert characterize_run({**stated(), "SVR.Memory.Installed": text})[0].get("mem_total_gb") is None


def test_characterize_run_divides_caches_of_whole_system() -> None:
    topology = {"SVR.CPU.Socket(s)": "2", "SVR.CPU.Core(s) per Socket": "40"}
    caches = {
        "SVR.CPU.L1d Cache": "3.75",
        "SVR.CPU.L1i Cache": "2.5",
        "SVR.CPU.L2 Cache": "80",
        "SVR.CPU.L3 Cache": "90",
    }
    values, repairs = characterize_run({**stated(), **topology, **caches})
    assert [values[name] for name in ("l1d_kb", "l1i_kb", "l2_kb_per_core", "l3_mb_per_chip")] == [48, 32, 1024, 45]
    assert repairs == ["l3_whole_system_mb", "l1_whole_system_mb", "l1_whole_system_mb", "l2_whole_system_mb"]
    unknown, _ = characterize_run({**stated(), **caches})
    assert unknown["l2_kb_per_core"] is None


@settings(max_examples=200, deadline=None)
@given(st.fixed_dictionaries({name: st.text(max_size=30) for name in STATED if name not in NUMERICAL}))
def test_characterize_run_accepts_any_text(texts: dict[str, str]) -> None:
    values, _ = characterize_run({**stated(), **texts})
    assert all(value is None or isinstance(value, str | float | int) for value in values.values())


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_make_slug_is_idempotent(text: str) -> None:
    name = make_slug(text)
    assert make_slug(name) == name
    assert split_unit(text)[2] > 0


def test_generated_files_are_seeded(tmp_path: Path) -> None:
    for folder, seed in (("one", 1), ("same", 1), ("other", 2)):
        fake.write(tmp_path / folder, rows=20, seed=seed)
    digests = [
        {path.name: sha256(path) for path in sorted((tmp_path / folder).iterdir())}
        for folder in ("one", "same", "other")
    ]
    assert digests[0] == digests[1]
    assert digests[0]["train_data.csv"] != digests[2]["train_data.csv"]
