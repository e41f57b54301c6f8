"""Folders of models and champions whose digests were made to fit what was planted in them: nothing of it runs."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest
from champion_project import project
from hostile_input import refused

from perfcast.schema.schema_version import SCHEMA_KEY, SCHEMA_VERSION
from perfcast.utils.result_digests import record_digests

MACHINE = ["--processor", "Xeon Gold 6148", "--chips", "2"]
FILES = sorted(path.relative_to(project().folder).as_posix() for path in project().folder.rglob("*") if path.is_file())


class Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


def signed(champion: Path) -> None:
    """Write the digests anew, as whoever plants a file would."""
    record_digests(champion / "model")
    record_digests(champion)


@pytest.mark.reliability("a crafted champion whose digests fit")
@pytest.mark.parametrize("content", ["a pickle", "a npy of objects", "NUL bytes", "nested JSON", "an empty object"])
@pytest.mark.parametrize("name", [name for name in FILES if name != "about.json" and not name.endswith(".sha256")])
def test_planted_pickle_with_valid_digest_is_refused_and_not_executed(tmp_path, capsys, name, content):
    champion, marker = tmp_path / "champion", tmp_path / "executed"
    shutil.copytree(project().folder, champion)
    pickled = pickle.dumps(Planted(marker))
    head = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    contents = {
        "a pickle": pickled,
        "a npy of objects": b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + pickled,
        "NUL bytes": bytes(4096),
        "nested JSON": b"[" * 100_000,
        "an empty object": b"{}",
    }
    (champion / name).write_bytes(contents[content])
    signed(champion)
    refused(
        ["predict", *MACHINE, "--champion", champion, "--out", tmp_path / "out" / "x.csv"], capsys, out=tmp_path / "out"
    )
    assert not marker.exists()


CLASSES = (
    "os:system",
    "subprocess:Popen",
    "perfcast.predictors.predictor:load_predictor",
    "perfcast.predictors.predictor:Path",
    "perfcast.predictors.linear:np",
    "perfcast.predictors..linear:Ridge",
    "perfcast.predictors.nope:Nope",
    "perfcast.predictors.linear:",
    "",
)


@pytest.mark.reliability("a crafted champion whose digests fit")
@pytest.mark.parametrize("name", CLASSES)
def test_load_predictor_makes_only_predictors(tmp_path, capsys, name):
    champion = tmp_path / "champion"
    shutil.copytree(project().folder, champion)
    path = champion / "model" / "predictor.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "class": name, "params": {}}))
    signed(champion)
    refused(["predict", *MACHINE, "--champion", champion], capsys)


def _describe(dataset: str, *files: str) -> bytes:
    """Return the description of a champion of this schema version."""
    about = {SCHEMA_KEY: SCHEMA_VERSION, "dataset": dataset, "files": dict.fromkeys(files, "0")}
    return json.dumps(about).encode()


ABOUTS = {
    "nothing": b"",
    "a list": b"[]",
    "no keys": b"{}",
    "nested without end": b"[" * 100_000,
    "another dataset": _describe("host_gemm"),
    "files elsewhere": _describe("spec_cpu2017", "../../../etc/passwd"),
    "no text": b"\xff\xfe",
}


@pytest.mark.reliability("a crafted champion whose digests fit")
@pytest.mark.parametrize("name", ABOUTS)
def test_load_champion_refuses_empty_description(tmp_path, capsys, name):
    shutil.copytree(project().folder, tmp_path / "champion")
    (tmp_path / "champion" / "about.json").write_bytes(ABOUTS[name])
    refused(["predict", *MACHINE, "--champion", tmp_path / "champion"], capsys)
