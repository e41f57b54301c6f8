"""Stores that cannot be used cost one line within seconds, and no result; recording later catches up."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from loopback import Loopback, Page
from recorded_results import make_recordable, record, recorded_runs

from perfcast.ops import doctor
from perfcast.tracking import warn_unusable

SECONDS = 5.0
STOPPED = 10.0
BUSY = 15.0  # a machine with much else to do


class Fault:
    """A project whose store is about to be broken; `undo` repairs it."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch, undo: ExitStack) -> None:
        self.project, self.monkeypatch, self.undo = project, monkeypatch, undo
        self.folder = project / "results" / "mlflow"
        self.database = self.folder / "mlflow.db"
        self.on_network = False

    def address(self, uri: str) -> None:
        self.on_network = True
        self.monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        self.undo.callback(self.monkeypatch.delenv, "MLFLOW_TRACKING_URI")

    def replace(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.undo.callback(path.unlink)


def refuse(fault):
    fault.address("http://127.0.0.1:9")


def listen(fault, serve=lambda connection: None):
    """Accept connections and never answer."""
    server = fault.undo.enter_context(closing(socket.create_server(("127.0.0.1", 0))))

    def accept():
        connections = []
        while server.fileno() >= 0:
            try:
                connections.append(server.accept()[0])
            except OSError:
                return
            threading.Thread(target=serve, args=(connections[-1],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    fault.address(f"http://127.0.0.1:{server.getsockname()[1]}")


def trickle(fault):
    """Send one byte of the status line per half second: no single wait is long."""

    def serve(connection):
        for _ in range(100):
            try:
                connection.send(b"H")
            except OSError:
                return
            time.sleep(0.5)

    listen(fault, serve)


def answer_503(fault):
    server = fault.undo.enter_context(Loopback())
    server.pages["/health"] = Page(b"maintenance", status=503)
    fault.address(server.url(""))


def other_server(fault):
    """Something else answers: health is fine, and nothing more is found."""
    server = fault.undo.enter_context(Loopback())
    server.pages["/health"] = Page(b"OK")
    fault.address(server.url(""))


def nonsense(fault):
    fault.address("nonsense://x")


def no_driver(fault):
    fault.address("postgresql+pg8000://user:secret@127.0.0.1:9/x")


def lock(fault):
    fault.folder.mkdir(parents=True)
    sqlite3.connect(fault.database).close()
    base = sqlite3.connect(fault.database, isolation_level=None)
    base.execute("create table other (name)")
    base.execute("begin exclusive")
    fault.undo.callback(base.close)


def truncate(fault):
    """MLflow keeps connections to a file: another one is made and cut."""
    whole = fault.project / "whole.db"
    with closing(sqlite3.connect(whole)) as base, base:
        base.execute("create table experiments (name)")
        base.executemany("insert into experiments values (?)", [("x" * 1000,)] * 100)
    content = whole.read_bytes()
    fault.replace(fault.database, content[: len(content) // 2 + 17])


def garbage(fault):
    fault.replace(fault.database, b"\xff no database" * 10_000)


def folder_is_a_file(fault):
    fault.replace(fault.folder, b"x")


def artifacts_are_a_file(fault):
    fault.replace(fault.folder / "artifacts", b"x")


def database_is_a_folder(fault):
    fault.database.mkdir(parents=True)
    fault.undo.callback(fault.database.rmdir)


def database_is_a_pipe(fault):
    fault.folder.mkdir(parents=True)
    os.mkfifo(fault.database)
    fault.undo.callback(fault.database.unlink)


def link_to_nowhere(fault):
    fault.folder.mkdir(parents=True)
    (fault.folder / "artifacts").symlink_to(fault.project / "gone" / "artifacts")
    (fault.project / "gone").write_text("a file")
    fault.undo.callback((fault.project / "gone").unlink)


def read_only(fault):
    """Root is held by the immutable flag alone."""
    fault.folder.mkdir(parents=True)
    if os.geteuid():
        fault.folder.chmod(0o555)
        fault.undo.callback(fault.folder.chmod, 0o755)
        return
    if not shutil.which("chattr") or subprocess.run(["chattr", "+i", str(fault.folder)], check=False).returncode:
        pytest.skip("permissions do not bind this user, and folders cannot be made immutable here")
    fault.undo.callback(subprocess.run, ["chattr", "-i", str(fault.folder)], check=True)


FAULTS = {
    "the server of the tracking store refuses connections": refuse,
    "the server of the tracking store accepts and never answers": listen,
    "the server of the tracking store sends a byte per half second": trickle,
    "the server of the tracking store answers 503": answer_503,
    "another server than MLflow's answers": other_server,
    "the address of the tracking store is nonsense": nonsense,
    "the tracking store is PostgreSQL without its driver": no_driver,
    "the tracking database is locked by another program": lock,
    "the tracking database is truncated": truncate,
    "the tracking database is garbage": garbage,
    "the tracking folder is a file": folder_is_a_file,
    "the folder of artifacts is a file": artifacts_are_a_file,
    "the tracking database is a folder": database_is_a_folder,
    "the tracking database is a named pipe": database_is_a_pipe,
    "the folder of artifacts is a link below a file": link_to_nowhere,
    "the tracking folder is read-only": read_only,
}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A project with one training to record."""
    return make_recordable(tmp_path_factory.mktemp("original") / "project")


@pytest.fixture
def fault(original, tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    project = Path(shutil.copytree(original, tmp_path / "a project"))
    with ExitStack() as undo:
        yield Fault(project, monkeypatch, undo)


def place(project):
    return doctor.ProjectPlace(
        project, cache=project, mirrors=(), embedded=project, params=doctor.find_place(project, os.environ).params
    )


@pytest.mark.parametrize(
    "name",
    [
        # every second one in all tests, all of them in `make faults`
        pytest.param(name, marks=[pytest.mark.reliability(name), *([pytest.mark.faults] if number % 2 else [])])
        for number, name in enumerate(FAULTS)
    ],
    ids=lambda name: name,
)
def test_unusable_store_costs_one_line_in_seconds_and_later_recording_catches_up(fault, capsys, name):
    FAULTS[name](fault)
    capsys.readouterr()
    note = fault.project / "note.txt"
    began = time.monotonic()
    assert record(fault.project, "--note", str(note)) == 0
    took = time.monotonic() - began
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tracking: NOT recorded: ") and line.endswith("`perfcast pipeline record` catches up")
    assert "secret" not in line
    assert note.read_text().startswith("NOT recorded")
    assert took < SECONDS + BUSY

    if FAULTS[name] is not other_server:  # it answers
        began = time.monotonic()
        warn_unusable(fault.project, os.environ)
        assert time.monotonic() - began < SECONDS
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("perfcast: tracking: ") and "The run goes on" in line
    began = time.monotonic()
    (finding,) = doctor.check_tracking(place(fault.project))
    assert time.monotonic() - began < SECONDS
    assert finding.state == doctor.CARE and "the store cannot be used" in finding.fact

    fault.undo.close()
    if fault.on_network and FAULTS[name] is not refuse:  # one of them is enough
        return
    assert record(fault.project, "--note", str(note)) == 0
    assert "NOT" not in note.read_text()
    assert recorded_runs(fault.project) == ["FINISHED"]


@pytest.mark.reliability("the server of the tracking store stops to answer while results are recorded")
def test_server_that_stops_to_answer_costs_seconds(fault, capsys):
    requests = []

    def serve(connection):
        request = connection.recv(4096)
        requests.append(request.split(b" ")[1])
        if requests[-1] == b"/health":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK")
            connection.close()

    listen(fault, serve)
    note = fault.project / "note.txt"
    began = time.monotonic()
    assert record(fault.project, "--note", str(note)) == 0
    assert time.monotonic() - began < STOPPED + BUSY
    assert len(requests) > 1, "what came after the check"
    assert note.read_text().startswith("NOT recorded")
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.reliability("a database that was deleted left its journal or write-ahead log behind")
@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_leftovers_of_a_deleted_database_do_not_reach_the_new_one(fault, suffix, capsys):
    other = fault.project / "other.db"
    mode = {"-wal": "wal", "-journal": "persist"}[suffix]
    with closing(sqlite3.connect(other, isolation_level=None)) as base:
        base.execute(f"pragma journal_mode = {mode}")
        base.execute("create table experiments (name)")
        base.execute("begin")
        base.executemany("insert into experiments values (?)", [("x" * 1000,)] * 200)
        left = other.with_name(other.name + suffix).read_bytes() if suffix == "-journal" else b""
        base.execute("commit")
        left = left or other.with_name(other.name + suffix).read_bytes()
    fault.folder.mkdir(parents=True)
    (fault.folder / f"mlflow.db{suffix}").write_bytes(left)
    assert record(fault.project) == 0, capsys.readouterr().err
    assert recorded_runs(fault.project) == ["FINISHED"]
    assert not (fault.folder / f"mlflow.db{suffix}").exists()


@pytest.mark.reliability("a full disk or a kill left half of a new tracking database")
def test_half_of_a_new_database_is_removed(fault):
    for name in (".mlflow.db.new", ".mlflow.db.abcd1234"):
        (fault.folder / name).mkdir(parents=True)
        (fault.folder / name / "mlflow.db").write_bytes(b"half")
    assert record(fault.project) == 0
    assert not list(fault.folder.glob(".*"))
    (fault.folder / ".mlflow.db.new").mkdir()
    assert record(fault.project) == 0
    assert not list(fault.folder.glob(".*"))


@pytest.mark.reliability("making the tracking database fails, as on a full disk")
def test_failing_to_make_the_database_leaves_nothing(fault, monkeypatch, capsys):
    def fail(*arguments, **options):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("mlflow.MlflowClient.search_experiments", fail)
        assert record(fault.project, "--note", str(fault.project / "note.txt")) == 0
    assert "disk is full" in capsys.readouterr().err
    assert not list(fault.folder.glob(".*"))
    assert record(fault.project) == 0


@pytest.mark.reliability("another process that records hangs")
def test_recorder_beside_one_that_hangs_says_so_and_ends(fault, monkeypatch, capsys):
    from filelock import FileLock

    monkeypatch.setattr("perfcast.tracking.store._SHORT_WAIT", 0.1)
    monkeypatch.setattr("perfcast.tracking.store._LONG_WAIT", 0.2)
    fault.folder.mkdir(parents=True)
    with FileLock(fault.folder / "record.lock", is_singleton=False):
        assert record(fault.project, "--note", str(fault.project / "note.txt")) == 0
    waiting, outcome = [line for line in capsys.readouterr().err.splitlines() if "tracking:" in line]
    assert "waiting for another process" in waiting
    assert "NOT recorded" in outcome and "record.lock" in outcome
    assert record(fault.project) == 0
