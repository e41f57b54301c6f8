"""Hostile machine descriptions in files and flags of `perfcast predict`."""

from __future__ import annotations

import pytest
from champion_project import project
from hostile_input import refused

MILLION = 1_000_000
LAUGHS = "a: &a [x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)

FILES = {
    # CSV
    "csv nothing": ("csv", b"", "empty"),
    "csv NUL bytes": ("csv", bytes(1000), "describes none"),
    "csv UTF-16": ("csv", "processor,chips\nEPYC 9654,2\n".encode("utf-16"), "UTF-8"),
    "csv Latin-1": ("csv", "processor,chips\nÉPYC,2\n".encode("latin-1"), "line 2"),
    "csv a column twice": ("csv", b"chips,chips\n2,2\n", "once"),
    "csv the same name in another case": ("csv", b"chips,CHIPS\n2,4\n", "must agree"),
    "csv too many fields": ("csv", b"processor,chips\nEPYC 9654,2,3\n", "line 2 has 3"),
    "csv a quote without end": ("csv", b'processor,chips\n"EPYC 9654,2\n' * 3, "CSV"),
    "csv a million columns": ("csv", b",".join(b"c%d" % n for n in range(MILLION)) + b"\n1\n", "at most 1000 columns"),
    "csv 1e309": ("csv", b"processor,chips\nXeon Gold 6148,1e309\n", "chips must be a number"),
    "csv a control character": ("csv", b"processor,chips\n\x1b]0;owned\x07,2\n", "processor"),
    "csv a formula": ("csv", b"processor,chips\n\"=cmd|'/C calc'!A0\",2\n", "processor"),
    # JSON
    "json half": ("json", b'{"processor": ', "must be JSON"),
    "json NaN": ("json", b'{"chips": NaN}', "finite"),
    "json a huge whole number": ("json", b'{"chips": ' + b"9" * 4000 + b"}", "longer number"),
    "json half a character": ("json", b'{"processor": "\\ud800"}', "can be printed"),
    "json a name twice": ("json", b'{"chips": 1, "chips": 2}', "unique"),
    "json nested without end": ("json", b"[" * 100_000, "3 deep"),
    "json of nested names": ("json", b'{"cores": {"b": {"c": 1}}}', "cores must be one value"),
    "json a list of lists": ("json", b"[[1]]", "names with values"),
    # YAML
    "yaml a command": ("yaml", b"chips: !!python/object/apply:os.system ['true']\n", "must be YAML"),
    "yaml laughs": ("yaml", LAUGHS.encode(), "references"),
    "yaml a name twice": ("yaml", b"chips: 1\nchips: 2\n", "repeated"),
    "yaml a list as a name": ("yaml", b"? [a]\n: 1\n", "must be text"),
    "yaml a set": ("yaml", b"chips: !!set {a, b}\n", "one value"),
    "yaml nested without end": ("yaml", b"[" * 5_000, "YAML"),
    "yaml 2 MB": ("yaml", b"- chips: 1\n" * 200_000, "at most 1048576"),
    # no file of machines
    "another ending": ("toml", b"chips = 2", "must end in"),
}


@pytest.mark.parametrize("name", FILES)
def test_invalid_machine_file_gets_one_line(tmp_path, capsys, name):
    ending, content, words = FILES[name]
    (tmp_path / f"machines.{ending}").write_bytes(content)
    command = ["predict", tmp_path / f"machines.{ending}", "--champion", project().folder]
    refused([*command, "--out", tmp_path / "out" / "predictions.csv"], capsys, words, out=tmp_path / "out")


def test_folder_and_missing_file_get_one_line(tmp_path, capsys):
    (tmp_path / "machines.csv").mkdir()
    for name in ("machines.csv", "none.csv", "none/none.json"):
        refused(["predict", tmp_path / name, "--champion", project().folder], capsys, "must exist")


def test_too_many_machines_are_refused(tmp_path, capsys):
    (tmp_path / "machines.csv").write_bytes(b"chips\n" + b"2\n" * 200_001)
    refused(["predict", tmp_path / "machines.csv", "--champion", project().folder], capsys, "at most 200000 machines")
    (tmp_path / "machines.json").write_bytes(b"[" + b"{}," * 200_001 + b"{}]")
    refused(["predict", tmp_path / "machines.json", "--champion", project().folder], capsys, "at most 200000 machines")


CANDIDATES = {
    "a price that is none": b"processor,chips,price\nXeon Gold 6148,2,cheap\n",
    "a price whose square is infinite": b"processor,chips,price\nXeon Gold 6148,2,1e200\n",
    "watts that are none": b"processor,chips,watts\nXeon Gold 6148,2,nan\n",
    "no known name": b"a,b\n1,2\n",
}


@pytest.mark.parametrize("name", CANDIDATES)
def test_invalid_candidates_get_one_line(tmp_path, capsys, name):
    (tmp_path / "candidates.csv").write_bytes(CANDIDATES[name])
    command = ["rank", tmp_path / "candidates.csv", "--champion", project().folder, "--by", "score/price"]
    refused([*command, "--out", tmp_path / "out" / "predictions.csv"], capsys, out=tmp_path / "out")


MEASURED = {
    "nothing": (b"", "empty"),
    "another name of the suite": (b"processor,chips,kernel,score\nXeon Gold 6148,2,CFP2017rate,9\n", "has 'kernel'"),
    "no score": (b"processor,chips,suite\nXeon Gold 6148,2,CFP2017rate\n", "must have a score"),
    "a score past all": (b"processor,chips,suite,score\nXeon Gold 6148,2,CFP2017rate,1e309\n", "score must be"),
    "a suite that is none": (b"processor,chips,suite,score\nXeon Gold 6148,2,CFP2099,5\n", "suite must be one of"),
    "too many": (b"processor,suite,score\n" + b"Xeon Gold 6148,CFP2017rate,9\n" * 501, "at most 500"),
}


@pytest.mark.parametrize("name", MEASURED)
def test_invalid_measurements_get_one_line(tmp_path, capsys, name):
    content, words = MEASURED[name]
    (tmp_path / "measured.csv").write_bytes(content)
    options = ["--processor", "Xeon Gold 6148", "--chips", "2", "--measured", tmp_path / "measured.csv"]
    refused(["predict", *options, "--champion", project().folder], capsys, words)
