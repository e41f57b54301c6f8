"""Release: what refuses a version, the file that a wheel pins, and its download from anywhere."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from champion_project import project

import perfcast
from perfcast.cli.main import main
from perfcast.sources import released_champion

ROOT = Path(__file__).parents[2]
NAME = "perfcast-spec_cpu2017.zip"
_SPEC = importlib.util.spec_from_file_location("release", ROOT / ".github" / "release.py")
release = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(release)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, *_):  # a client that reads no more than the pinned bytes
        pass


@pytest.fixture
def server(tmp_path):
    """Return a folder with an exported champion and the address of a server of it."""
    folder = tmp_path / "released"
    export = ["champion", "export", "--champion", str(project().folder), "--out", str(folder / NAME)]
    assert main(export) == 0
    with Server(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Give every test an empty folder and home, and a package that may pin a champion."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PERFCAST_MIRROR", raising=False)
    monkeypatch.setattr(released_champion, "PIN", tmp_path / "champion.json")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")


def pin(folder, address, **changed):
    content = (folder / NAME).read_bytes()
    facts = {"dataset": "spec_cpu2017", "url": f"{address}/{NAME}", "bytes": len(content)}
    facts["sha256"] = hashlib.sha256(content).hexdigest()
    released_champion.PIN.write_text(json.dumps({**facts, **changed}))


PREDICT = ["predict", "--processor", "Xeon Gold 6148", "--chips", "2"]


def test_a_downloaded_champion_answers_where_no_run_is(server, capsys):
    folder, url = server
    assert main(PREDICT) == 2
    assert "run `perfcast champion download`" in capsys.readouterr().err
    pin(folder, url)
    assert main(["champion", "download"]) == 0
    capsys.readouterr()
    assert main(PREDICT) == 0
    assert "published results of such machines, in any set-up" in capsys.readouterr().out
    whole = perfcast.predict({"processor": "Xeon Gold 6148", "chips": 2}, project().folder).machines[0]
    mine = perfcast.predict({"processor": "Xeon Gold 6148", "chips": 2}).machines[0]
    assert [each.median for each in mine.estimates] == [each.median for each in whole.estimates]
    assert main([*PREDICT, "--results", "elsewhere"]) == 2, "only for a run that nobody named"
    assert main(["update"]) == 2
    assert "must be a folder" in capsys.readouterr().err


@pytest.mark.parametrize("by", ["file", "folder", "mirror"])
def test_a_file_and_a_folder_replace_the_address(server, monkeypatch, by):
    folder, _ = server
    pin(folder, "http://127.0.0.1:9")
    if by == "mirror":
        monkeypatch.setenv("PERFCAST_MIRROR", f"/nowhere:{folder}")
    given = {"file": ["--from", str(folder / NAME)], "folder": ["--from", str(folder)], "mirror": []}[by]
    assert main(["champion", "download", *given]) == 0
    assert main(PREDICT) == 0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sha256": "0" * 64}, "has another SHA-256 than 000000000000"),
        ({"bytes": 1000}, "has another SHA-256"),
        ({"url": "http://127.0.0.1:9/x.zip"}, "http://127.0.0.1:9/x.zip: [Errno 111] Connection refused"),
        ({"url": "none"}, "no such file"),
    ],
)
def test_what_cannot_be_had_is_one_line_and_leaves_nothing(server, changed, words, capsys, tmp_path):
    folder, url = server
    pin(folder, url, **changed)
    capsys.readouterr()
    assert main(["champion", "download"]) == 2
    message = capsys.readouterr().err
    assert words.lower() in message.lower() and "--from FILE" in message
    assert message.count("\n") == 1
    assert not list((tmp_path / "home").rglob("*.zip"))


def test_a_clone_pins_none(capsys):
    assert main(["champion", "download"]) == 2
    assert "a source checkout pins no champion; run `make demo`" in capsys.readouterr().err
    assert not (ROOT / "src" / "perfcast" / "champion.json").exists()


@pytest.fixture
def clone(tmp_path):
    """Return a repository of the files that a version stands in."""
    root = tmp_path / "clone"
    (root / "src" / "perfcast").mkdir(parents=True)
    for name in ("src/perfcast/__init__.py", "CITATION.cff"):
        shutil.copy(ROOT / name, root / name)
    version = release.read_version(root)
    (root / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## [Unreleased]\n\n## [{version}] - 2026-01-01\n\n- A change.\n"
    )
    citation = (root / "CITATION.cff").read_text()
    (root / "CITATION.cff").write_text(f"{citation}\nversion: {version}\n")
    identity = ["-c", "user.name=A", "-c", "user.email=a@localhost"]
    for words in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "--message", "All"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root, version


def test_a_version_that_is_tagged_or_not_in_the_changelog_is_refused(clone):
    root, version = clone
    assert release.list_obstacles(root, "") == []
    changelog = (root / "CHANGELOG.md").read_text()
    (root / "CHANGELOG.md").write_text(changelog.replace(f"## [{version}]", "## [0.1.0]"))
    assert release.list_obstacles(root, "") == [f"CHANGELOG.md has no section [{version}]"]
    (root / "CHANGELOG.md").write_text(changelog.replace("[Unreleased]\n", "[Unreleased]\n\n- Later.\n"))
    assert "changes under [Unreleased]" in release.list_obstacles(root, "")[0]
    (root / "CHANGELOG.md").write_text(changelog)
    subprocess.run(["git", "tag", f"v{version}"], cwd=root, check=True)
    assert f"{version} is tagged already" in release.list_obstacles(root, "")[0]
    assert release.list_obstacles(root, f"refs/tags/v{version}") == [], "the tag that started the workflow"
    assert "is not that of version" in release.list_obstacles(root, "refs/tags/v0.9")[-1]
