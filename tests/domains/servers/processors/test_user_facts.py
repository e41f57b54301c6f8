"""The table of facts of a user: one line per CPU model, refused with the reason, and in the data of a champion."""

import csv
from dataclasses import make_dataclass

import pandas as pd
import pytest
from champion_project import KNOWN, predict, project

from perfcast.cli.main import main
from perfcast.domains.servers.processors import user_facts
from perfcast.domains.servers.processors.cpu_models import list_facts
from perfcast.domains.servers.processors.facts import Fact
from perfcast.domains.servers.processors.user_facts import add_user_facts
from perfcast.inference import parse_machines, read_machines
from perfcast.inference.imputation import impute_machines
from perfcast.utils.errors import UserError

ROW = {
    "cpu_model": "Intel Xeon 6799P",
    "known_from": "2026-11-23",
    "source": "data sheet, page 2",
    "quality": "1",
}


def write(path, *lines):
    path.write_text("\n".join(["cpu_model,family,tdp_w,base_mhz,known_from,source,quality", *lines, ""]))
    return path


def write_row(path, row):
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    return path


def assert_refused(folder, changes, message):
    path = write_row(folder / "facts.csv", {**ROW, "tdp_w": "400", **changes})
    with pytest.raises(UserError, match=message) as refused:
        user_facts.read_user_facts(path)
    assert str(refused.value).isprintable()


def test_lines_are_read_as_facts_by_key(tmp_path):
    path = write_row(tmp_path / "facts.csv", {**ROW, "tdp_w": "400", "cores_per_chip": "96"})
    facts = {(fact.cpu_model, fact.name): fact for fact in user_facts.read_user_facts(path)}
    assert facts["xeon 6799p", "tdp_w"].number == 400
    assert facts["xeon 6799p", "cores_per_chip"].number == 96
    assert facts["xeon 6799p", "tdp_w"].source == "data sheet, page 2"
    assert_refused(tmp_path, {"tdp_w": "4000"}, "tdp_w must be a number from 5 to 2000 W")


def test_a_wrong_line_is_named(tmp_path):
    for line, message in (
        ("EPYC 9755,,505,,2026-11-01,,1", "source is missing"),
        ("EPYC 9755,,505,,2026-11-01,list,5", "quality must be 0, 1 or 2"),
        ("Quantum 7,,505,,2026-11-01,list,1", "no rule names that of 'Quantum 7'"),
        ("EPYC 9755,Nowhere,505,,2026-11-01,list,1", "'Nowhere' is unknown"),
        ("EPYC 9755,,many,,2026-11-01,list,1", "tdp_w must be a number"),
        ("EPYC 9755,,,,2026-11-01,list,1", "no fact is stated"),
        (",,505,,2026-11-01,list,1", "cpu_model is missing"),
    ):
        with pytest.raises(UserError, match=r"facts\.csv, line 2: .*" + message):
            user_facts.read_user_facts(write(tmp_path / "facts.csv", line))


def test_two_values_of_one_fact_are_refused_and_facts_of_a_user_come_first(tmp_path):
    lines = [
        "EPYC 9755,,505,,2026-11-01,list,1",
        "AMD EPYC 9755,,500,2700,2026-11-02,other,1",
    ]
    with pytest.raises(UserError, match="epyc 9755: tdp_w is 500 and 505"):
        user_facts.read_user_facts(write(tmp_path / "facts.csv", *lines))
    facts = user_facts.read_user_facts(write(tmp_path / "facts.csv", lines[0]))
    # and the family last
    listed = {fact.name: fact for fact in list_facts("AMD EPYC 9755", facts)}
    assert (listed["tdp_w"].value, listed["cores_per_chip"].value) == ("505", "128")
    assert listed["channels_per_chip"].family == "Turin" and list_facts("Quantum 7", facts) == []


@pytest.mark.parametrize(
    "day",
    [
        "NaT",
        "today",
        "20261123",
        "0001-01-01",
        "9999-12-31",
    ],
)
def test_only_days_are_days(tmp_path, day):
    assert_refused(
        tmp_path,
        {"known_from": day},
        "known_from must be a day, YYYY-MM-DD, from 1970 to 2100",
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cpu_model": "   "}, "cpu_model is missing"),
        ({"cpu_model": "=cmd|calc", "family": "Turin"}, "must begin with a letter"),
        (
            {"cpu_model": "\x1b[31mXeon 6799P"},
            r"cpu_model must be UTF-8 text that can be printed, but it has '\\x1b'",
        ),
        ({"cpu_model": "\udcff"}, "can be printed"),
        (
            {"cpu_model": "x" * 1000, "family": "Turin"},
            "at most 200 letters, but it has 1000",
        ),
        ({"max_sockets": "2.5"}, "max_sockets must be a whole number from 1 to 64"),
        ({"cores_per_chip": "1_0"}, "cores_per_chip must be a whole number"),
    ],
)
def test_texts_and_counts_are_checked(tmp_path, changes, message):
    assert_refused(tmp_path, changes, message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cpu_model,tdp_w,known_from,source\nXeon \xc9,400,2026-11-23,x\n", "UTF-8"),
        (
            b"cpu_model,tdp_w,tdp_w,known_from,source\nXeon 6798P,4,400,2026-11-23,x\n",
            "'tdp_w' twice",
        ),
        (
            b"cpu_model,tdp_w,known_from,source\nXeon 6798P,400,2026-11-23,x,5\n",
            "line 2 has 5, the first line 4",
        ),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, content, message):
    path = tmp_path / "facts.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        user_facts.read_user_facts(path)


DAY = pd.Timestamp("2026-11-23")
MACHINE = ("--processor", "Xeon Gold 6148", "--chips", "2")
DOORS = {
    "predict": (*MACHINE, "--brief"),
    "what-if": (*MACHINE, "--vary", "cores=16,20"),
    "compare": ("2 x Xeon Gold 6148", "1 x Xeon Gold 6148"),
}
FOREIGN = "fact_id,text\n1,hello\n"
OWN = "cpu_model,family,tdp_w,known_from,source,quality\nXeon Gold 6148,,30,2026-11-01,mine,1\n"


ReferenceData = make_dataclass(
    "ReferenceData",
    [
        "entity_facts",
        ("user_facts", tuple, ()),
        ("user_entities", frozenset, frozenset()),
    ],
)
Described = make_dataclass("Described", ["reference_data", ("saved_typical", object, None)])
TURIN = {
    "family": "Turin",
    "tdp_w": 500.0,
    "mem_channels_per_chip": 12.0,
    "cores_per_chip_of_cpu_model": 128.0,
}


def listed(*facts):
    frame = pd.DataFrame({**TURIN, "launch_quarter": pd.Timestamp("2024-10-01")}, ["epyc 9755"])
    return add_user_facts(Described(ReferenceData(frame)), facts).reference_data.entity_facts


def state(key, name, value, family=""):
    return Fact(key, family, name, value, "", DAY, "list", 1)


def test_a_new_model_has_the_facts_of_its_family_and_those_stated():
    facts = [
        state("foo 1", "tdp_w", "350", "Turin"),
        state("foo 1", "cores_per_chip", "64", "Turin"),
    ]
    row = listed(*facts).loc["foo 1"]
    assert row[list(TURIN)].tolist() == ["Turin", 350, 12, 64]
    assert row["launch_quarter"] == pd.Timestamp("2026-10-01")
    assert listed(*facts)["tdp_w"].dtype == "float64"
    changed = listed(state("epyc 9755", "tdp_w", "505"))
    assert changed[["tdp_w", "mem_channels_per_chip"]].to_numpy().tolist() == [[505, 12]], "the rest is kept"
    champion = Described(ReferenceData(pd.DataFrame()))
    for stated in ([], [state("gemm 1", "tdp_w", "300")]):
        assert add_user_facts(champion, stated) is champion, "machines without facts of processors stay as they are"


@pytest.mark.parametrize("door", DOORS)
def test_a_table_of_facts_counts_only_where_it_is_named(tmp_path, monkeypatch, capsys, door):
    monkeypatch.chdir(tmp_path)
    command = [
        door.split(maxsplit=1)[0],
        "--champion",
        str(project().folder),
        *DOORS[door],
    ]
    assert main(command) == 0
    plain = capsys.readouterr()
    note = "facts.csv: 1 CPU model of yours\n"
    assert note not in plain.err
    for content, code, printed in ((FOREIGN, 2, "'fact_id'"), (OWN, 0, note)):
        (tmp_path / "facts.csv").write_text(content)
        assert main(command) == 0 and capsys.readouterr() == plain
        assert main([*command, "--facts", "facts.csv"]) == code
        assert printed in capsys.readouterr().err


def test_answers_of_every_form_say_that_facts_are_the_users():
    champion = add_user_facts(project().champion, [state("xeon gold 6148", "tdp_w", "30")])
    note = "facts of xeon gold 6148 are from your table"
    assert note in predict(KNOWN, champion).machines[0].notes


def test_facts_of_the_user_change_what_is_assumed_of_a_measured_machine():
    champion = add_user_facts(project().champion, [state("xeon gold 6148", "max_mts_1dpc", "2133")])
    machines = parse_machines(read_machines([{"processor": "xeon gold 6148", "chips": 2}]), champion)
    rates = impute_machines(machines, champion).completed.frame["mem_rated_mts"]
    assert set(rates) == {2133}, "typical machines that are saved rest on other facts"
