"""The table of facts of a user: one line per CPU model, refused with the line and the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfcast.cli.main import main
from perfcast.domains.servers.processors.catalog import list_catalog_facts, list_facts
from perfcast.domains.servers.processors.cpu_names import find_family
from perfcast.domains.servers.processors.facts import read_facts
from perfcast.domains.servers.processors.user_facts import (
    COLUMNS,
    append_fact_row,
    find_fact_problems,
    read_user_facts,
)
from perfcast.utils.errors import UserError

ROW = {"cpu_model": "Intel Xeon 6799P", "known_from": "2026-11-23", "source": "data sheet, page 2", "quality": "1"}


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["cpu_model,family,tdp_w,base_mhz,known_from,source,quality", *lines, ""]))
    return path


def test_added_lines_are_read_as_facts_by_key(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    append_fact_row(path, {**ROW, "tdp_w": "400", "cores_per_chip": "96"})
    append_fact_row(path, {**ROW, "cpu_model": "New 1", "family": "Turin", "tdp_w": "500"})
    facts = {(fact.cpu_model, fact.name): fact for fact in read_user_facts(path)}
    assert facts["xeon 6799p", "tdp_w"].number == 400
    assert facts["xeon 6799p", "tdp_w"].source == "data sheet, page 2"
    assert facts["new 1", "tdp_w"].family == "Turin"
    assert path.read_text().splitlines()[0] == ",".join(COLUMNS)


def test_a_model_is_added_once_and_a_refused_line_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    append_fact_row(path, {**ROW, "tdp_w": "400"})
    before = path.read_bytes()
    with pytest.raises(UserError, match="line 2 has"):
        append_fact_row(path, {**ROW, "cpu_model": "xeon 6799p", "tdp_w": "410"})
    with pytest.raises(UserError, match="tdp_w must be a number from 5 to 2000 W"):
        append_fact_row(path, {**ROW, "cpu_model": "Xeon 6798P", "tdp_w": "4000"})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("EPYC 9755,,505,,2026-13-01,list,1", "known_from must be a day"),
        ("EPYC 9755,,505,,2026-11-01,,1", "source is missing"),
        ("EPYC 9755,,505,,2026-11-01,list,5", "quality must be 0, 1 or 2"),
        ("Quantum 7,,505,,2026-11-01,list,1", "no rule names that of 'Quantum 7'"),
        ("EPYC 9755,Nowhere,505,,2026-11-01,list,1", "'Nowhere' is unknown"),
        ("EPYC 9755,,many,,2026-11-01,list,1", "tdp_w must be a number"),
        ("EPYC 9755,,nan,,2026-11-01,list,1", "tdp_w must be a number"),
        ("EPYC 9755,,,,2026-11-01,list,1", "no fact is stated"),
        (",,505,,2026-11-01,list,1", "cpu_model is missing"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path / "facts.csv", line)
    with pytest.raises(UserError, match=r"facts\.csv, line 2: .*" + message):
        read_user_facts(path)


def test_an_unknown_column_and_an_absent_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("cpu_model,watts\nEPYC 9755,500\n")
    with pytest.raises(UserError, match="'watts'"):
        read_user_facts(tmp_path / "other.csv")
    with pytest.raises(UserError, match="must exist"):
        read_user_facts(tmp_path / "absent.csv")


def test_two_values_of_one_fact_are_refused(tmp_path: Path) -> None:
    lines = "EPYC 9755,,505,,2026-11-01,list,1", "AMD EPYC 9755,,500,2700,2026-11-02,other,1"
    with pytest.raises(UserError, match="epyc 9755: tdp_w is 500 and 505"):
        read_user_facts(write(tmp_path / "facts.csv", *lines))


@pytest.mark.parametrize(
    "table", ["families.csv", "caches.csv", "exceptions.csv", "cpu_models.csv", "cores.csv", "processes.csv"]
)
def test_the_tables_of_the_project_have_no_problem_and_facts_that_were_verified(table: str) -> None:
    facts = read_facts(table)
    assert list(find_fact_problems(facts)) == []
    assert any(fact.quality > 0 for fact in facts)
    if table == "cpu_models.csv":
        assert [fact for fact in facts if find_family(fact.cpu_model) != fact.family] == []


def test_facts_of_a_user_come_first_and_the_family_last(tmp_path: Path) -> None:
    facts = read_user_facts(write(tmp_path / "facts.csv", "EPYC 9755,,505,,2026-11-01,list,1"))
    listed = {
        fact.name: fact for fact in list_facts("AMD EPYC 9755", facts, list_catalog_facts("any", tmp_path / "absent"))
    }
    assert listed["tdp_w"].value == "505"
    assert listed["cores_per_chip"].value == "128"
    assert listed["channels_per_chip"].family == "Turin"
    assert list_facts("Quantum 7", facts, list_catalog_facts("any", tmp_path / "absent")) == []


def test_commands_add_and_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = ["--facts", str(tmp_path / "facts.csv")]
    add = ["facts", "add", "Foo 1", "--family", "Turin", "--set", "tdp_w=300", "--source", "list"]
    assert main([*add, "--known-from", "2026-11-23", *file]) == 0
    assert capsys.readouterr().out == f"{file[1]}: Foo 1 added; commands use it with --facts {file[1]}\n"
    assert main([*add, "--known-from", "2026-11-23", *file]) == 2
    assert "line 2 has 'Foo 1' already" in capsys.readouterr().err
    assert main(["facts", "list", "foo 1", *file]) == 0
    assert "300 W" in capsys.readouterr().out
    assert main(["facts", "list", "Quantum 7", *file]) == 2
    assert main(["facts", "list", "foo 1"]) == 2
    write(tmp_path / "facts.csv", "EPYC 9755,,505,,2026-11-01,a,1", "EPYC 9755,,500,,2026-11-01,b,1")
    assert main(["facts", "list", "foo 1", *file]) == 2
    assert "tdp_w is 500 and 505" in capsys.readouterr().err


@pytest.mark.reliability("wrong lines in a user's table of facts")
@pytest.mark.parametrize("day", ["NaT", "nan", "now", "today", "-1", "2026", "20261123", "0001-01-01", "9999-12-31"])
def test_only_days_are_days(tmp_path: Path, day: str) -> None:
    with pytest.raises(UserError, match="known_from must be a day, YYYY-MM-DD, from 1970 to 2100"):
        append_fact_row(tmp_path / "facts.csv", {**ROW, "known_from": day, "tdp_w": "400"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.reliability("wrong lines in a user's table of facts")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cpu_model": "   "}, "cpu_model is missing"),
        ({"cpu_model": ",", "family": "Turin"}, "must begin with a letter"),
        ({"cpu_model": "=cmd|calc", "family": "Turin"}, "must begin with a letter"),
        ({"cpu_model": "\x1b[31mXeon 6799P"}, r"cpu_model must be UTF-8 text that can be printed, but it has '\\x1b'"),
        ({"cpu_model": "Xeon\n6799P"}, "can be printed"),
        ({"cpu_model": "\u202eXeon 6799P"}, "can be printed"),
        ({"cpu_model": "\udcff"}, "can be printed"),
        ({"cpu_model": "x" * 1000, "family": "Turin"}, "at most 200 letters, but it has 1000"),
        ({"source": "a\x00b"}, "source must be UTF-8 text"),
        ({"source": "  "}, "source is missing"),
        ({"max_sockets": "2.5"}, "max_sockets must be a whole number from 1 to 64"),
        ({"cores_per_chip": "1_0"}, "cores_per_chip must be a whole number"),
        ({"cores_per_chip": "٢"}, "cores_per_chip must be a whole number"),
    ],
)
def test_texts_and_counts_are_checked(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message) as refused:
        append_fact_row(tmp_path / "facts.csv", {**ROW, "tdp_w": "400", **changes})
    assert str(refused.value).isprintable()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.reliability("wrong lines in a user's table of facts")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cpu_model,tdp_w,known_from,source\nXeon \xc9,400,2026-11-23,x\n", "UTF-8"),
        (b"cpu_model,tdp_w,tdp_w,known_from,source\nXeon 6798P,4,400,2026-11-23,x\n", "'tdp_w' twice"),
        (b"cpu_model,tdp_w,known_from,source\nXeon 6798P,400,2026-11-23,x,5\n", "line 2 has 5, the first line 4"),
    ],
)
def test_a_wrong_file_is_refused_and_left_alone(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "facts.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_user_facts(path)
    with pytest.raises(UserError):
        append_fact_row(path, {**ROW, "tdp_w": "400"})
    assert path.read_bytes() == content


def test_earlier_lines_stay_when_a_line_is_added(tmp_path: Path) -> None:
    path = write(tmp_path / "facts.csv", "Xeon 6798P,,400,,2026-11-23,x,1")
    append_fact_row(path, {**ROW, "tdp_w": "410", "cores_per_chip": "96"})
    facts = {(fact.cpu_model, fact.name): fact.value for fact in read_user_facts(path)}
    assert facts["xeon 6798p", "tdp_w"] == "400"
    assert (facts["xeon 6799p", "tdp_w"], facts["xeon 6799p", "cores_per_chip"]) == ("410", "96")
