"""PerfCastDB: long rows to runs, unit repairs, samples joined, nothing lost."""

import shutil

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfcast.domains.servers.datasets.perfcastdb import runs_table
from perfcast.domains.servers.datasets.perfcastdb.run_values import (
    NUMERICAL,
    STATED,
    characterize_run,
)
from perfcast.domains.servers.datasets.perfcastdb.runs_table import (
    FIELDS,
    make_slug,
    parse_quantity,
    parse_skus,
    read_skus,
    split_unit,
)
from perfcast.domains.servers.features import run
from perfcast.domains.servers.testing import perfcastdb as fake
from perfcast.domains.servers.testing.perfcastdb import write_sheet
from perfcast.schema.table import Role, Tag
from perfcast.utils.errors import UserError

RUN = "kubernetes.pod_id"
TEST = "RESULT.TestName"
VALUE = "RESULT.Value"


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated")
    fake.write(folder, rows=150, seed=5)
    return folder


@pytest.fixture(scope="module")
def whole(generated):
    built = build(generated)
    assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
    return built


@pytest.fixture
def build_changed(generated, tmp_path):
    """Build after a change of the rows of the training part."""

    def build_with(change):
        shutil.copytree(generated, tmp_path, dirs_exist_ok=True)
        rows = change(raw_rows(generated, "train").to_dict("records"))
        pd.DataFrame(rows, columns=fake.HEADER).to_csv(tmp_path / "train_data.csv", index=False)
        built = build(tmp_path)
        assert built.rows_in == len(built.table.frame) + built.rows_merged + len(built.rejected)
        return built

    return build_with


def build(folder, **options):
    return runs_table.build({"perfcastdb": folder}, options)


def raw_rows(folder, part):
    return pd.read_csv(folder / f"{part}_data.csv", dtype=str, keep_default_na=False)


def test_build_accounts_for_every_long_row_and_drops_names_of_hosts_clusters_and_namespaces(whole, generated):
    rows = pd.concat([raw_rows(generated, part) for part in ("train", "test")])
    assert whole.rows_in == len(rows)
    means = rows[TEST] == rows["RESULT.WorkloadName"]
    assert whole.rejected["reason"].value_counts().to_dict() == {"suite_mean": int(means.sum())}
    copies = rows[RUN].str.endswith("33") & rows[RUN].str.removesuffix("33").isin(rows[RUN])
    assert whole.merged["copied_run"] == int((copies & ~means).sum()) > 0
    text = whole.table.frame.to_csv() + whole.rejected.to_csv() + repr(whole.quality) + repr(whole.table.facts)
    assert not [
        name
        for name in (
            "generated-host",
            "generated-cluster",
            "generated-namespace",
        )
        if name in text
    ]


def test_build_averages_targets_over_iterations(whole, generated):
    rows = raw_rows(generated, "test")
    rows = rows[rows["RESULT.WorkloadName"] == "Stream"]
    first = rows[RUN].iloc[0]
    values = rows.loc[(rows[RUN] == first) & rows[TEST].str.startswith("Copy"), VALUE].astype(float)
    row = whole.table.frame.set_index("run_id").loc[first]
    assert row["stream__copy_bandwidth_ntw"] == pytest.approx(values.mean())
    assert row[["iterations", "tests", "published_subset"]].tolist() == [
        len(values),
        2,
        "test",
    ]
    assert row["spread_max"] >= row["spread_median"] > 0


def test_build_makes_each_test_but_suite_means_a_target(whole):
    table = whole.table
    targets = table.select(role=Role.TARGET)
    assert "memory_latency_checker_bandwidth__peak_bandwidth_socket_0_100r" in targets
    assert not [name for name in targets if name.endswith("base")]
    units = {column.name: (column.unit, column.meaning) for column in table.columns}
    unit, meaning = units["memory_latency_checker_latency__local_socket_local_cluster_l1_hit_latency"]
    assert unit == "ns" and "lower is better" in meaning and units["hpcg__score"][0] == "GFLOP/s"
    assert table.facts["lower_is_better"] == [name for name in targets if units[name][0] == "ns"]
    suites = table.frame[targets].notna().T.groupby(lambda name: name.split("__")[0]).any().T
    assert (suites.sum(axis=1) == 1).all()
    assert (suites.idxmax(axis=1) == table.frame[table.column_of(Tag.TASK)]).all()


def test_quality_reports_repairs_and_the_join_and_features_derive_totals(whole):
    assert set(whole.quality["repairs"]) == {f"{level}_whole_system_mb" for level in ("l1", "l2", "l3")}
    assert whole.quality["join_coverage"]["share_of_rows"] == 1
    frame = run.derive(whole.table).frame
    assert set(frame["l2_kb_per_core"]) == {2048.0}
    assert set(frame["ddr_gbps_total"]) == {0.0, 16 * 4800 * 8 / 1000}
    assert set(frame["hbm_gbps_total"]) == {0.0, 8 * 3200 * 128 / 1000}
    assert (frame["mem_gbps_total"] > 0).all()
    assert frame["l3_mb_total"].tolist() == (2 * frame["l3_mb_per_chip"]).tolist()


def test_build_quarantines_bad_row(build_changed, whole):
    for column, text in ((VALUE, "fast"), (VALUE, "0"), ("SVR.CPU.L3 Cache", "large")):
        built = build_changed(lambda rows, cell={column: text}: [{**rows[0], **cell}, *rows[1:]])
        assert len(built.table.frame) == len(whole.table.frame) + 1  # the copied run is no copy any more
        bad = built.rejected[built.rejected["reason"] == "not_a_number"]
        assert bad[["file", "line", "detail"]].values.tolist() == [["train_data.csv", 2, f"{column}: {text}"]]


def test_build_merges_repeated_rows_and_converts_units(build_changed, whole):
    built = build_changed(
        lambda rows: [
            *rows,
            next(row for row in rows if row["RESULT.WorkloadName"] == "Stream"),
        ]
    )
    assert built.merged["repeated_row"] == 1
    pd.testing.assert_frame_equal(built.table.frame, whole.table.frame)

    def change(rows):
        first = next(row for row in rows if row[TEST].startswith("Triad"))
        giga = {
            **first,
            TEST: "Triad Bandwidth (NTW) (GB/s)",
            VALUE: str(float(first[VALUE]) / 1000),
        }
        return [giga if row is first else row for row in rows]

    triad = build_changed(change).table.frame["stream__triad_bandwidth_ntw"].dropna()
    assert triad.max() / triad.min() < 3


def test_build_refuses_a_missing_or_broken_file_and_options(generated, tmp_path):
    shutil.copytree(generated, tmp_path, dirs_exist_ok=True)
    for content in (b"no table", None):
        (tmp_path / "test_data.csv").unlink() if content is None else (tmp_path / "test_data.csv").write_bytes(content)
        with pytest.raises(UserError, match=r"test_data\.csv"):
            build(tmp_path)
    with pytest.raises(UserError, match="no options"):
        build(generated, color="red")


def test_read_skus_uses_first_sample_and_refuses_a_sheet_without_column(tmp_path):
    titles = ["QDF/SSPEC", *(f"{title} Rte" for title, _ in FIELDS.values())]
    first = ["QA", *["3 GHz"] * len(FIELDS)]
    other = ["QA", *["4 GHz"] * len(FIELDS)]
    write_sheet(tmp_path / "sheet.xlsx", [[], titles, first, [], first, other])
    texts = read_skus(tmp_path / "sheet.xlsx")
    skus = parse_skus(texts)
    assert list(skus.index) == texts["QDF/SSPEC"].tolist() == ["QA"]
    assert skus.loc["QA", "sku_base_mhz"] == 3000 and pd.isna(skus.loc["QA", "sku_cores"])
    for rows, words in (
        ([["titles"], ["QDF/SSPEC", "Functional Core"]], "'Cache'"),
        ([["one", "two"]] * 9, "QDF/SSPEC"),
    ):
        write_sheet(tmp_path / "sheet.xlsx", rows)
        with pytest.raises(UserError, match=words):
            read_skus(tmp_path / "sheet.xlsx")


def test_quantities_and_units():
    texts = {
        "2.7": 2700,
        "2.2 GHz": 2200,
        "800 MHz": 800,
        "0": None,
        "": None,
        "3 W": None,
        "fast": None,
    }
    assert {text: parse_quantity(text, FIELDS["sku_base_mhz"][1]) for text in texts} == texts
    units = {
        "Score(GFLOPS)": ("Score", "GFLOP/s", 1.0),
        "Remote (Reverse) (MB/s)": ("Remote (Reverse)", "MB/s", 1.0),
        "Remote (GB/s)": ("Remote", "MB/s", 1000.0),
        "Copy (NTW)": ("Copy (NTW)", "", 1.0),
        "503.bwaves_r": ("503.bwaves_r", "", 1.0),
        "MB/s": ("MB/s", "", 1.0),
    }
    assert {text: split_unit(text) for text in units} == units


def characterize(**stated):
    return characterize_run({**dict.fromkeys(STATED, ""), **stated})


MEMORY = (
    "mem_total_gb",
    "hbm_gb",
    "dimm_count",
    "dimm_gb",
    "mem_rated_mts",
    "mem_running_mts",
)


def test_characterize_run_parses_memory_and_divides_caches_of_the_whole_system():
    for text, expected in (
        ("512GB (16x32GB DDR5 4800 MT/s [4400 MT/s])", (512, 0, 16, 32, 4800, 4400)),
        ("512GB (16x32GB DDR5 4800 MT/s)", (512, 0, 16, 32, 4800, 4800)),
        (
            "64GB (4x16GB DDR4 3200 MT/s [2933 MT/s]); 32GB (1x32GB DDR4 2666 MT/s [2666 MT/s])",
            (96, 0, 5, 19.2, 2666, 2666),
        ),
        ("64GB (4x16GB HBM2 3200 MT/s [2800 MT/s])", (64, 64, 0, None, None, None)),
        (
            "64GB (1x64GB DDR5 4800 MT/s); 16GB (1x16GB HBM2e 3600 MT/s)",
            (80, 16, 1, 64, 4800, 4800),
        ),
        ("64GB (1x64GB DDR5 4800 MT/s); 512GB (4x128GB PMEM)", (None,) * 6),
        ("", (None,) * 6),
    ):
        values, repairs = characterize(**{"SVR.Memory.Installed": text})
        assert tuple(values.get(name) for name in MEMORY) == expected and repairs == []
    topology = {"SVR.CPU.Socket(s)": "2", "SVR.CPU.Core(s) per Socket": "40"}
    sizes = {
        "L1d": "3.75",
        "L1i": "2.5",
        "L2": "80",
        "L3": "90",
    }
    caches = {f"SVR.CPU.{level} Cache": size for level, size in sizes.items()}
    values, repairs = characterize(**topology, **caches)
    assert [
        values[name]
        for name in (
            "l1d_kb",
            "l1i_kb",
            "l2_kb_per_core",
            "l3_mb_per_chip",
        )
    ] == [48, 32, 1024, 45]
    assert repairs == [
        "l3_whole_system_mb",
        "l1_whole_system_mb",
        "l1_whole_system_mb",
        "l2_whole_system_mb",
    ]
    assert characterize(**caches)[0]["l2_kb_per_core"] is None


@given(
    st.fixed_dictionaries({name: st.text(max_size=30) for name in STATED if name not in NUMERICAL}),
    st.text(max_size=40),
)
def test_any_text_is_characterized_and_slugs_are_idempotent(texts, text):
    values, _ = characterize(**texts)
    assert all(value is None or isinstance(value, str | float | int) for value in values.values())
    assert make_slug(make_slug(text)) == make_slug(text)
    assert split_unit(text)[2] > 0
