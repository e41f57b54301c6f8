"""spec_power: reading, quarantine, repairs, results of several nodes, and errors in one line."""

import csv
import re

import pandas as pd
import pytest

from perfcast.domains.servers.datasets.spec_java import power
from perfcast.domains.servers.datasets.spec_java.power import (
    parse_form_factor,
    parse_measured,
)
from perfcast.domains.servers.parsing.scalars import parse_disclosure
from perfcast.domains.servers.testing import spec_power as fake_power
from perfcast.schema.table import Role
from perfcast.utils.errors import UserError

SOURCE = "spec_power"


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp(SOURCE)
    fake_power.write(folder, rows=120, seed=5)
    return folder


@pytest.fixture(scope="module")
def built(raw):
    return power.build({SOURCE: raw}, {})


def read(folder):
    """Return the rows of a dump as its reader sees them, the unused names left out; those with defects come last."""
    text = next(folder.glob("*.csv")).read_text(encoding="utf-8", errors="replace")
    header, *lines = csv.reader(text.splitlines())
    names = [" ".join(name.split()) for name in header[:-2]]
    rows = [dict(zip(names, row, strict=True)) for row in lines if len(row) == len(names) and "\ufffd" not in str(row)]
    return sorted(
        rows,
        key=lambda row: re.findall(r"-(\d{5})\.|$", row["Disclosure"])[0] or "last",
    )


def sound(raw, nodes="1"):
    """Return the first sound row of the power dump with a number of nodes."""
    rows = read(raw)
    return next(row for row in rows if row["Nodes"] == nodes and row["Result"] not in ("0", "NC"))


def build_rows(folder, rows):
    """Build a dataset from rows alone: two names of the header have no field."""
    with (folder / "dump.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow([*rows[0], "Disclosure URL", "Disclosures"])
        writer.writerows(row.values() for row in rows)
    return power.build({SOURCE: folder}, {})


def test_build_quarantines_each_defect_with_reason_and_declares_no_result_as_feature(built, raw):
    reasons = (
        "repeated_header",
        "wrong_field_count",
        "not_utf8",
        "shifted_columns",
        "no_score",
        "score_not_numeric",
    )
    reasons += ("inconsistent_result", "impossible_counts", "virtual_machine")
    reasons += ("date_impossible", "no_result_id")
    frame = built.table.frame
    assert built.rejected["reason"].value_counts().to_dict() == dict.fromkeys(reasons, 1)
    assert built.rows_in == len(frame) + built.rows_merged + len(built.rejected)
    assert built.merged == {"identical_but_for_disclosure": 1}
    assert built.quality["join_coverage"]["rows"] == len(frame)
    features = set(built.table.select(role=Role.FEATURE))
    assert not [each for each in features if "ops" in each or "watt" in each or "result" in each]
    assert not [each for each in frame if "level" in each]
    assert frame["hw_vendor"].isin(["HPE", "Supermicro", "Dell", "Lenovo", "Acer"]).all()
    row = frame.iloc[3]
    lines = next(raw.glob("*.csv")).read_bytes().split(b"\r\n")
    assert row["result_id"].encode() in lines[int(row["line"]) - 1]


def test_build_divides_results_by_nodes_and_keeps_memory_stated_per_node(raw, tmp_path):
    single = sound(raw)
    times = [
        "# Cores",
        "# Chips",
        "Memory (GB)",
        *power.OPERATIONS,
        *power.WATTS,
    ]
    four = {
        **single,
        "Nodes": "4",
        "Disclosure": single["Disclosure"].replace("-0", "-9"),
    }
    four |= {name: f"{float(single[name].replace(',', '')) * 4:.7g}" for name in times}
    frame = build_rows(tmp_path, [single, four]).table.frame
    assert frame["nodes"].tolist() == [1, 4]
    same = frame.drop(
        columns=[
            "nodes",
            "result_id",
            "line",
            "arrival_day",
            "q_date",
            "test_month",
        ]
    )
    first, second = (same.loc[[row]].reset_index(drop=True) for row in (0, 1))
    pd.testing.assert_frame_equal(first, second, rtol=1e-5)
    row = sound(raw, nodes="2")
    count, size = (float(number) for number in row["DIMMS"].removesuffix(" MB").split(" x "))
    stated = build_rows(tmp_path, [{**row, "Memory (GB)": f"{count * size / 1024:g}"}]).table.frame
    assert stated["mem_total_gb"].tolist() == [count * size / 1024]
    assert stated["q_mem_arith"].tolist() == [0]


KNOWN_ERRORS = [
    ({"# Chips": "0"}, {"chips": 2.0, "cores_enabled_total": 40.0}),
    (
        {"# Chips": "40", "Processor": "ARM 20 Cores: X"},
        {"chips": 2.0, "cores_per_chip_of_cpu_model": 20.0},
    ),
    ({"3rd Level Cache": "39424 MB I+D on chip per chip"}, {"l3_mb_per_chip": 38.5}),
    ({"3rd Level Cache": "256 MB I+D on chip per core"}, {"l3_mb_per_chip": 256.0}),
    ({"2nd Level Cache": "1280 MB I+D on chip per core"}, {"l2_kb_per_core": 1280.0}),
    ({"2nd Level Cache": "256 KB I+D on chip per chip"}, {"l2_kb_per_core": 256.0}),
    (
        {"Processor": "AMD Opteron 999"},
        {
            "cpu_vendor": "AMD",
            "isa": "x86",
            "arch": "x86_64",
            "family": None,
        },
    ),
    ({"Power Supply Rating (watts)": "0"}, {"psu_w": None}),
    ({"Test Date": "Mar-1999"}, {"test_month": None}),
    ({"Memory (GB)": "n/a"}, {"mem_total_gb": 384.0}),
    (
        {"DIMMS": "", "Memory Description": "x" * 5000},
        {"dimm_count": None, "mem_eff_mts": None},
    ),
]


def test_build_repairs_known_errors(raw, tmp_path):
    machine = {
        "# Cores": "40",
        "# Chips": "2",
        "# Cores Per Chip": "20",
        "Processor": "Intel Xeon Gold 6148",
    }
    machine |= {"Memory (GB)": "384", "DIMMS": "12 x 32768 MB"}
    for change, expected in KNOWN_ERRORS:
        row = build_rows(tmp_path, [{**sound(raw), **machine, **change}]).table.frame.iloc[0]
        assert {name: None if pd.isna(row[name]) else row[name] for name in expected} == expected, change


def test_build_refuses_bad_files(raw, tmp_path):
    rows = read(raw)[:4]
    with pytest.raises(UserError, match="one file"):
        power.build({SOURCE: tmp_path}, {})
    unusable = "must hold a usable result, but of 4 rows 4 are unusable"
    for changed in ({"Result": "0"}, {"# Chips": "700"}):
        with pytest.raises(UserError, match=unusable):
            build_rows(tmp_path, [{**row, **changed} for row in rows])


def test_parse_measured_identity_and_form_factor():
    numbers = {"1.34723e+06": 1347230, "1,024": 1024, "2,112.5": 2112.5}
    numbers |= dict.fromkeys(
        (
            "-1",
            "",
            "1e999",
            "nan",
            "1,02",
            "0x10",
            "9" * 13,
        )
    )
    assert {text: parse_measured(text) for text in numbers} == numbers
    assert parse_disclosure("http://x/res2031q1/power_ssj2008-20310230-00001.html").result_id is None
    assert parse_disclosure('<A HREF="/power_ssj2008-20310228-00001.txt">').result_id == "power_ssj2008-20310228-00001"
    shapes = {
        "2U Rack.": "2U",
        "5 x 4RU rackmount server": "4U",
        "Tower or 4U rack mount": "4U",
    }
    shapes |= {
        "1 of 2 Blades": "blade",
        "Compute Node": "blade",
        "--": None,
        "": None,
    }
    assert {text: parse_form_factor(text) for text in shapes} == shapes
