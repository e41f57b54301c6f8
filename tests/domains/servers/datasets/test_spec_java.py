"""spec_power and spec_jbb2015: reading, quarantine, repairs, results of several nodes, and errors in one line."""

import csv
import io
import re

import pandas as pd
import pytest

from perfcast.domains.servers.datasets.spec_java import jbb2015, power
from perfcast.domains.servers.datasets.spec_java.power import parse_form_factor, parse_measured
from perfcast.domains.servers.parsing.scalars import parse_disclosure
from perfcast.domains.servers.testing import cpu_catalog
from perfcast.domains.servers.testing import spec_jbb2015 as fake_jbb2015
from perfcast.domains.servers.testing import spec_power as fake_power
from perfcast.schema.table import Role
from perfcast.utils.errors import UserError

MODULES = {"spec_power": (power, fake_power), "spec_jbb2015": (jbb2015, fake_jbb2015)}
OPTIONS = {"published_until": "2024-12"}


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folders = {name: tmp_path_factory.mktemp(name) for name in (*MODULES, "cpu_catalog")}
    for name, (_, fake) in MODULES.items():
        fake.write(folders[name], rows=120, seed=5)
    cpu_catalog.write(folders["cpu_catalog"], rows=5, seed=5)
    return folders


@pytest.fixture(scope="module")
def built(raw):
    return {
        name: module.build({name: raw[name], "cpu_catalog": raw["cpu_catalog"]}, OPTIONS)
        for name, (module, _) in MODULES.items()
    }


def read(folder):
    """Return the rows of a dump as its reader sees them, the unused names left out; those with defects come last."""
    text = next(folder.glob("*.csv")).read_text(encoding="utf-8", errors="replace")
    header, *lines = csv.reader(text.splitlines())
    names = [" ".join(name.split()) for name in header[:-2]]
    rows = [dict(zip(names, row, strict=True)) for row in lines if len(row) == len(names) and "\ufffd" not in str(row)]
    return sorted(rows, key=lambda row: re.findall(r"-(\d{5})\.|$", row["Disclosure"])[0] or "last")


def build_rows(name, folder, rows, options=OPTIONS):
    """Build a dataset from rows alone."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, [*rows[0], "Disclosure URL", "Disclosures"], lineterminator="\r\n")
    writer.writeheader()
    lines = [buffer.getvalue()]
    for row in rows:
        line = io.StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(row.values())
        lines.append(line.getvalue())
    (folder / "dump.csv").write_bytes("".join(lines).encode())
    return MODULES[name][0].build({name: folder}, options)


def test_build_quarantines_each_defect_with_reason(built):
    broken = {"repeated_header": 1, "wrong_field_count": 1, "not_utf8": 1, "shifted_columns": 1}
    counts = {name: result.rejected["reason"].value_counts().to_dict() for name, result in built.items()}
    assert counts["spec_power"] == {
        **broken,
        **dict.fromkeys(("no_score", "score_not_numeric", "inconsistent_result", "impossible_counts"), 1),
        **dict.fromkeys(("date_impossible", "no_result_id"), 1),
    }
    assert counts["spec_jbb2015"] == {
        **broken,
        **dict.fromkeys(("no_score", "score_not_numeric", "inconsistent_result", "impossible_counts"), 1),
        "unknown_suite": 1,
    }
    for result in built.values():
        assert result.rows_in == len(result.table.frame) + result.rows_merged + len(result.rejected)
        assert result.merged == {"identical_but_for_disclosure": 1}


def test_quality_reports_join_coverage(built):
    for result in built.values():
        assert result.quality["join_coverage"]["rows"] == len(result.table.frame)


def test_build_declares_no_load_level_or_result_as_feature(built):
    for result in built.values():
        features = set(result.table.select(role=Role.FEATURE))
        assert not [name for name in features if "ops" in name or "watt" in name or "result" in name]
    assert [name for name in built["spec_power"].table.frame if "level" in str(name)] == []


def test_build_divides_results_by_nodes(raw, tmp_path):
    single = next(row for row in read(raw["spec_power"]) if row["Nodes"] == "1" and row["Result"] not in ("0", "NC"))
    times = ["# Cores", "# Chips", "Memory (GB)", *power.OPERATIONS, *power.WATTS]
    four = {**single, "Nodes": "4", "Disclosure": single["Disclosure"].replace("-0", "-9")}
    four |= {name: f"{float(single[name].replace(',', '')) * 4:.7g}" for name in times}
    frame = build_rows("spec_power", tmp_path, [single, four]).table.frame
    assert frame["nodes"].tolist() == [1, 4]
    same = [name for name in frame if name not in ("nodes", "result_id", "line", "arrival_day", "q_date", "test_month")]
    first, second = (frame.loc[[row], same].reset_index(drop=True) for row in (0, 1))
    pd.testing.assert_frame_equal(first, second, rtol=1e-5)


def test_build_keeps_memory_stated_per_node(raw, tmp_path):
    row = next(row for row in read(raw["spec_power"]) if row["Nodes"] == "2" and row["Result"] not in ("0", "NC"))
    count, size = (float(number) for number in row["DIMMS"].removesuffix(" MB").split(" x "))
    stated = build_rows("spec_power", tmp_path, [{**row, "Memory (GB)": f"{count * size / 1024:g}"}]).table.frame
    assert stated["mem_total_gb"].tolist() == [count * size / 1024]
    assert stated["q_mem_arith"].tolist() == [0]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"# Chips": "0"}, {"chips": 2.0, "cores_enabled_total": 40.0}),
        (
            {"# Chips": "40", "Processor": "ARM 20 Cores: Maker SoC"},
            {"chips": 2.0, "cores_per_chip_of_cpu_model": 20.0},
        ),
        ({"3rd Level Cache": "39424 MB I+D on chip per chip"}, {"l3_mb_per_chip": 38.5}),
        ({"3rd Level Cache": "256 MB I+D on chip per core"}, {"l3_mb_per_chip": 256.0}),
        ({"2nd Level Cache": "1280 MB I+D on chip per core"}, {"l2_kb_per_core": 1280.0}),
        ({"2nd Level Cache": "256 KB I+D on chip per chip"}, {"l2_kb_per_core": 256.0}),
        ({"Processor": "AMD Opteron 999"}, {"cpu_vendor": "AMD", "isa": "x86", "arch": "x86_64", "family": None}),
        ({"Power Supply Rating (watts)": "0"}, {"psu_w": None}),
        ({"Test Date": "Mar-1999"}, {"test_month": None}),
        ({"Memory (GB)": "n/a"}, {"mem_total_gb": 384.0}),
        ({"DIMMS": "", "Memory Description": "x" * 5000}, {"dimm_count": None, "mem_eff_mts": None}),
    ],
)
def test_build_repairs_known_errors(raw, tmp_path, change, expected):
    row = next(row for row in read(raw["spec_power"]) if row["Nodes"] == "1" and row["Result"] not in ("0", "NC"))
    machine = {
        **{"# Cores": "40", "# Chips": "2", "# Cores Per Chip": "20", "Processor": "Intel Xeon Gold 6148"},
        **{"Memory (GB)": "384", "DIMMS": "12 x 32768 MB"},
    }
    frame = build_rows("spec_power", tmp_path, [{**row, **machine, **change}]).table.frame
    for name, value in expected.items():
        assert pd.isna(frame[name][0]) if value is None else frame[name][0] == value


@pytest.mark.parametrize(
    ("per_core", "total", "threads"), [("2", "2", 2), ("48", "48", 2), ("1", "48", 2), ("2", "48", 2), ("7", "9", None)]
)
def test_build_derives_threads_from_either_column(raw, tmp_path, per_core, total, threads):
    row = read(raw["spec_jbb2015"])[0]
    machine = {"# cores": "24", "# chips": "1", "# of nodes": "1", "Processor": "Nobody 1"}
    change = {"# of threads per core": per_core, "Total # of threads": total}
    frame = build_rows("spec_jbb2015", tmp_path, [{**row, **machine, **change}]).table.frame
    assert pd.isna(frame["threads_per_core"][0]) if threads is None else frame["threads_per_core"][0] == threads


def test_build_applies_published_until_and_keeps_lines(raw, tmp_path):
    rows = read(raw["spec_jbb2015"])[:100]
    whole = build_rows("spec_jbb2015", tmp_path, rows, {})
    cut = build_rows("spec_jbb2015", tmp_path, rows, {"published_until": "2020-12"})
    later = (whole.table.frame["published_month"] > "2020-12-31").sum()
    assert cut.quality["after_published_until"] == later > 0
    assert cut.rows_in == whole.rows_in - later
    early = [row for row in rows if int(row["Published"][-4:]) <= 2020]
    alone = build_rows("spec_jbb2015", tmp_path, early, {"published_until": "2020-12"})
    pd.testing.assert_frame_equal(alone.table.frame, cut.table.frame)


@pytest.mark.parametrize("name", MODULES)
def test_build_refuses_bad_files_and_options(name, raw, tmp_path):
    build = MODULES[name][0].build
    rows = read(raw[name])
    with pytest.raises(UserError, match="one file"):
        build({name: tmp_path}, {})
    for content, message in ((b"", "header"), (b"a,b\r\n1,2\r\n", "column"), (b"\xff\xfe\x00\r\n", "column")):
        (tmp_path / "dump.csv").write_bytes(content)
        with pytest.raises(UserError, match=message) as caught:
            build({name: tmp_path}, {})
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="usable result"):
        build_rows(name, tmp_path, rows[:2], {"published_until": "2001-01"})
    with pytest.raises(UserError, match="published_until must be a month"):
        build_rows(name, tmp_path, rows[:2], {"published_until": "soon"})


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("spec_power", {"Result": "0"}),
        ("spec_power", {"# Chips": "700"}),
        ("spec_jbb2015", {"Max-jOPS": "0"}),
        ("spec_jbb2015", {"# chips": "700"}),
    ],
)
def test_build_refuses_file_without_usable_row(name, cells, raw, tmp_path):
    rows = [{**row, **cells} for row in read(raw[name])[:4]]
    assert set(cells) < set(rows[0])
    with pytest.raises(UserError, match="must hold a usable result, but of 4 rows 4 are unusable, 0 too late"):
        build_rows(name, tmp_path, rows)


def test_build_keeps_line_of_each_row(built, raw):
    for name, result in built.items():
        if name == "spec_power":
            lines = next(raw[name].glob("*.csv")).read_bytes().split(b"\r\n")
            row = result.table.frame.iloc[3]
            assert row["result_id"].encode() in lines[int(row["line"]) - 1]
        assert result.table.frame["hw_vendor"].isin(["HPE", "Supermicro", "Dell", "Lenovo", "Acer"]).all()


def test_parse_measured_identity_and_form_factor():
    texts = ("1.34723e+06", "1,024", "2,112.5", "-1", "", "1e999", "nan", "1,02", "0x10", "9" * 13)
    assert [parse_measured(text) for text in texts] == [1347230, 1024, 2112.5, *[None] * 7]
    assert parse_disclosure("http://x/res2031q1/jbb2015-20310230-00001.html").result_id is None
    assert parse_disclosure('<A HREF="/power_ssj2008-20310228-00001.txt">').result_id == "power_ssj2008-20310228-00001"
    shapes = (
        "2U Rack.",
        "5 x 4RU rackmount server",
        "Tower or 4U rack mount",
        "1 of 2 Blades",
        "Compute Node",
        "--",
        "",
    )
    assert [parse_form_factor(text) for text in shapes] == ["2U", "4U", "4U", "blade", "blade", None, None]
