"""The SPEC CPU2017 and CPU2026 datasets: reading, quarantine, repairs, and what must never be a feature."""

import csv
import gzip

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.servers.datasets.spec_cpu import cpu2017, cpu2026
from perfcast.domains.servers.datasets.spec_cpu.repairs import (
    MIN_PEERS,
    Repairs,
    mark_far_below_peers,
    repair_caches,
)
from perfcast.domains.servers.parsing.names import extract_system_stem
from perfcast.domains.servers.testing import spec_cpu2017, spec_cpu2026
from perfcast.schema.table import Role
from perfcast.utils.errors import UserError

SOURCE = "spec_cpu2017"
SOUND = (b"Xeon Gold 6148", b"EPYC 7742")
"""Processors of two sound rows, the first one of 2400 MHz."""
END = b"\r\n"
REASONS = {
    "impossible_counts": 1,
    "no_score": 2,
    "not_utf8": 1,
    "repeated_header": 1,
    "score_not_numeric": 1,
    "shifted_columns": 1,
    "virtual_machine": 1,
    "wrong_field_count": 1,
}


class Case:
    """A generated dump, its lines, and the dataset that is built of it."""

    def __init__(self, folder):
        spec_cpu2017.write(folder, rows=600, seed=2)
        data = gzip.decompress((folder / spec_cpu2017.FILE).read_bytes())
        self.lines = data.splitlines(keepends=True)
        self.built = cpu2017.build({SOURCE: folder}, {})

    def find_row(self, number=0):
        """Return a sound row of a processor of SOUND."""
        odd = (b",NC,", b"\xff", b",Mar-2025")
        rows = (line for line in self.lines[1:] if SOUND[number] in line)
        return next(line for line in rows if not any(text in line for text in odd))


def build_bytes(folder, data):
    (folder / "dump.csv").write_bytes(data)
    return cpu2017.build({SOURCE: folder}, {})


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return Case(tmp_path_factory.mktemp(SOURCE))


def test_build_accounts_for_every_row_and_quarantines_each_defect_with_reason(case):
    built = case.built
    frame = case.built.table.frame
    assert built.rows_in == len(frame) + built.rows_merged + len(built.rejected)
    assert built.merged == {"identical_but_for_disclosure": 1}
    assert built.rejected["reason"].value_counts().to_dict() == REASONS
    assert (built.rejected["line"] > 1).all()
    assert built.table.select(role=Role.TARGET) == ["base_score"]
    features = built.table.select(role=Role.FEATURE)
    assert not {
        "peak_score",
        "peak_ptr",
        "system_stem",
        "updated",
        "published_month",
    } & set(features)
    limited = frame.dropna(subset=["mem_eff_mts", "mem_max_mts_1dpc"])
    assert len(limited) and (limited["mem_eff_mts"] <= limited["mem_max_mts_1dpc"]).all()


BAD_ROWS = {
    "not_csv": lambda row: b'"' + row,
    "wrong_field_count": lambda row: row.replace(END, b",extra,extra" + END),
    "line_too_long": lambda row: b"x," * 1_000_000 + END,
    "unknown_suite": lambda row: row.replace(b"CINT20", b"CXXX20").replace(b"CFP20", b"CXXX20"),
    "count_not_numeric": lambda row: row.replace(b",2400,", b",fast,", 1),
    "out_of_bounds": lambda row: row.replace(b",2400,", b",99000,", 1),
    "no_result_id": lambda row: row.replace(b"cpu2017-2", b"cpu2018-2"),
}


def test_build_quarantines_bad_rows_alone(case, tmp_path):
    bad = [change(case.find_row()) for change in BAD_ROWS.values()]
    result = build_bytes(tmp_path, b"".join([case.lines[0], *bad, case.find_row(1)]))
    assert result.rows_in == 1 + len(bad)
    rejected = result.rejected.sort_values("line")[["line", "reason"]].to_numpy().tolist()
    assert rejected == [[line, reason] for line, reason in enumerate(BAD_ROWS, 2)]
    assert [name.encode() for name in result.table.frame["cpu_model"]] == [SOUND[1].lower()]


def test_build_rejects_virtual_machines_by_the_words_of_the_system_alone(case, tmp_path):
    machines = ("CloudDC A+ Server (KVM2 switch)", "EC2 m8a.metal-24xl", "NovaVM 3")
    virtual = ("1-Chip VM with SPARC M7", "bullion, VMware vSphere 5", "X (KVM)")
    header = next(csv.reader([case.lines[0].decode()]))
    for name in (*machines, *virtual):
        fields = next(csv.reader([case.find_row().decode()]))
        fields[header.index("System")] = name
        data = case.lines[0] + case.find_row(1) + spec_cpu2017.DUMP.format_line(fields)
        built = build_bytes(tmp_path, data)
        expected = [[3, "virtual_machine", name]] if name in virtual else []
        assert built.rejected[["line", "reason", "detail"]].to_numpy().tolist() == expected


@pytest.mark.parametrize(("suite", "cores"), [("CINT2017rate", 32), ("CINT2017", 16)])
def test_cores_that_contradict_the_cpu_model_are_repaired_and_counted(case, tmp_path, suite, cores):
    """A rate run has all cores; in a speed run firmware may have disabled the others."""
    header = [name.strip() for name in next(csv.reader([case.lines[0].decode()]))]
    fields = next(csv.reader([case.find_row().decode()]))
    changed = {
        "Benchmark": suite,
        "Processor": "Intel Xeon 6725P",
        "# Cores": "16",
        "# Chips": "2",
    }
    for name, value in changed.items():
        fields[header.index(name)] = value
    built = build_bytes(tmp_path, case.lines[0] + spec_cpu2017.DUMP.format_line(fields))
    row = built.table.frame.iloc[0]
    assert (row["cores_enabled_total"], row["q_cores_mismatch"]) == (cores, 1)
    assert built.quality["repairs"]["cores_below_cpu_model_rate"] == int(suite.endswith("rate"))


def test_build_refuses_bad_file(case, tmp_path):
    data = b"".join(case.lines)
    renamed = data.replace(b"Base Result", b"Base Results")
    with pytest.raises(UserError, match=r"'Base Result' once.*nearest unknown one is 'Base Results'"):
        build_bytes(tmp_path, renamed)
    (tmp_path / "second.csv").write_bytes(case.lines[0])
    with pytest.raises(UserError, match="must be one file"):
        cpu2017.build({SOURCE: tmp_path}, {})


def test_cpu2017_counts_repairs_and_keeps_stated_values_and_lines(case):
    frame = case.built.table.frame
    repairs = case.built.quality["repairs"]
    assert repairs["capacity_mb_for_gb"] == repairs["ddr_gen_from_rate"] == repairs["test_month_after_publication"] == 1
    twice = frame[(frame["cpu_model"] == "xeon e-2236") & (frame["q_cores_mismatch"] == 1)]
    columns = [
        "cores_per_chip_stated",
        "cores_per_chip_of_cpu_model",
        "cores_enabled_total",
    ]
    assert twice[columns].to_numpy().tolist() == [[12, 6, 6]]
    assert set(frame.loc[frame["family"] == "Sierra Forest", "l2_kb_per_core"]) == {1024}
    assert frame.loc[frame["cpu_model"] == "xeon gold 6534", "cpu_model_id"].unique().tolist() == ["xeon-gold-6534"]
    assert not frame["cpu_model"].str.contains("  ").any()
    row = frame.iloc[0]
    assert row["result_id"].encode() in case.lines[int(row["line"]) - 1]


def test_cpu2017_has_every_month_and_rejects_a_repeated_identifier(case, tmp_path):
    row = case.find_row()
    assert case.built.table.frame["published_month"].max() == pd.Timestamp(2025, 3, 1)
    result = build_bytes(tmp_path, case.lines[0] + row + row + row.replace(b",2400,", b",2500,"))
    assert result.merged == {"identical_but_for_disclosure": 1}
    assert result.rejected["reason"].tolist() == ["duplicate_result_id"]


def test_extract_system_stem():
    for system, processor, stem in (
        (
            "ThinkSystem SR590 (1.90 GHz, Intel Xeon Bronze 3204)",
            "Intel Xeon Bronze 3204",
            "ThinkSystem SR590",
        ),
        (
            "PowerEdge R6625 (AMD EPYC 9254 24-Core Processor)",
            "AMD EPYC 9254",
            "PowerEdge R6625",
        ),
        (
            "ThinkSystem SR635 3.10 GHz, AMD EPYC 7252",
            "AMD EPYC 7252",
            "ThinkSystem SR635",
        ),
        (
            "5019P-MT (X11SPi-TF , Intel Xeon Gold 5118)",
            "Intel Xeon Gold 5118",
            "5019P-MT (X11SPi-TF)",
        ),
    ):
        assert extract_system_stem(system, processor) == stem


def test_cpu2026_keeps_runs_of_a_whole_machine_at_full_clock(tmp_path):
    spec_cpu2026.write(tmp_path, rows=40, seed=0)
    built = cpu2026.build({"spec_cpu2026": tmp_path}, {})
    frame = built.table.frame
    reasons = built.rejected["reason"].value_counts()
    assert reasons.to_dict() == {"energy_measured": 10, "copies_unknown": 2}
    assert set(frame["suite"]) <= {f"C{kind}2026{run}" for kind in ("INT", "FP") for run in ("rate", "speed")}
    assert frame["result_id"].iloc[0] == "cpu2026-20260410-00005"
    assert (frame["arrival_day"] == "2026-04-10").all()


ALIKE = {
    "suite": "CINT2017rate",
    "cpu_model": "epyc 7742",
    "chips": 2.0,
    "dimm_count": 16.0,
    "mem_eff_mts": 3200.0,
}


def test_a_score_far_below_those_of_the_same_machine_is_marked():
    low = [600, 610, 620, 630, 640, 100]
    others = [(low, {name: [value] * 5 + [type(value)(1)]}, None) for name, value in ALIKE.items()]
    for scores, changed, marked in (
        ([600, 610, 620, 390, 1500], {}, 3),
        ([600, 610, 620, 450, 605], {}, None),
        ([*[600] * (MIN_PEERS - 2), 100], {}, None),
        (
            [600, 610, 620, 630, 640, 100],
            {"dimm_count": np.nan, "mem_eff_mts": np.nan},
            5,
        ),
        *others[:2],
    ):
        frame = pd.DataFrame(
            {
                "base_score": scores,
                "mem_channels_per_chip": 8.0,
                **ALIKE,
                **changed,
            }
        )
        assert mark_far_below_peers(frame).tolist() == [place == marked for place in range(len(scores))]


def write_official(folder, rows, **changed):
    """Write a dump of SPEC CPU2026 as the official one: with energy columns, and one name more than fields."""
    spec_cpu2026.write(folder, rows=rows, seed=0)
    path = folder / spec_cpu2026.FILE
    header, *lines = csv.reader(path.read_text().splitlines())
    names = [
        *header[:-1],
        "Energy Peak Result",
        "Energy Base Result",
        "Disclosure",
        "Disclosures",
    ]
    place = {name.strip(): number for number, name in enumerate(header)}
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for number, line in enumerate(lines, start=1):
            for column, text in changed.get(f"row_{number}", {}).items():
                line[place[column]] = text
            energy = changed.get("energy", {}).get(number, "0")
            writer.writerow(
                [
                    *line[:-1],
                    "0",
                    energy,
                    f'<A HREF="{line[-1]}">HTML</A>',
                ]
            )


def test_cpu2026_reads_energy_of_the_official_dump_and_not_the_numbers_of_june(
    tmp_path,
):
    write_official(tmp_path, 60, energy={5: "3.4", 30: "0.9"})
    rejected = cpu2026.build({"spec_cpu2026": tmp_path}, {}).rejected.set_index("line")["reason"].to_dict()
    assert rejected == {
        6: "energy_measured",
        31: "energy_measured",
        16: "copies_unknown",
        17: "copies_unknown",
    }


def test_cpu2026_rejects_one_copy_by_the_system_or_the_score_per_core(tmp_path):
    spec_cpu2026.write(tmp_path, rows=200, seed=0)
    frame = cpu2026.build({"spec_cpu2026": tmp_path}, {}).table.frame
    rates = frame[frame["suite"] == "CINT2026rate"]
    first, second = (int(line) - 1 for line in rates.loc[rates["core_family"].duplicated(keep=False), "line"].iloc[:2])
    write_official(
        tmp_path,
        200,
        **{
            f"row_{first}": {"Base Result": "0.5"},
            f"row_{second}": {"System": "S 1-copy"},
        },
    )
    rejected = cpu2026.build({"spec_cpu2026": tmp_path}, {}).rejected
    assert set(rejected.loc[rejected["reason"] == "one_copy", "line"]) == {
        first + 1,
        second + 1,
    }


def test_cpu2026_has_near_copies_in_one_block_and_marks_processors_without_a_family(
    tmp_path,
):
    write_official(tmp_path, 60, row_1={"Processor": "Quantum Core X1"})
    rows = (tmp_path / spec_cpu2026.FILE).read_text().splitlines()
    other = rows[21].replace(" (Intel", " II (Intel").replace("-00021.html", "-00921.html")
    (tmp_path / spec_cpu2026.FILE).write_text("\n".join([*rows, other, ""]))
    frame = cpu2026.build({"spec_cpu2026": tmp_path}, {"dataset": "other"}).table.frame.set_index("line")
    assert frame.at[22, "submission_id"] == frame.at[62, "submission_id"]
    assert frame["submission_id"].nunique() > 5
    assert frame.index[frame["q_no_family"] == 1].tolist() == [2]
    assert frame["core_family"].isna().equals(frame["q_no_family"] == 1)


def test_a_second_level_cache_that_a_module_shares_is_counted_by_core():
    frame = pd.DataFrame({"family": ["Sierra Forest", "Clearwater Forest", "Clearwater Forest", "Granite Rapids-SP"]})
    frame["l2_kb_per_core"] = [4096.0, 4096.0, 1024.0, 4096.0]
    for name in ("l2_kb", "cores_per_chip_of_cpu_model", "l3_cores_per_slice", "l3_mb_per_chip", "l3_slice_mb"):
        frame[name] = np.nan
    frame["l2_scope"] = "core"
    repairs = Repairs()
    repair_caches(frame, repairs)
    assert frame["l2_kb_per_core"].tolist() == [1024.0, 1024.0, 1024.0, 4096.0]
    assert repairs.counts["l2_per_module"] == 2
