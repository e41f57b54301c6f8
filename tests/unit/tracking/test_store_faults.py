"""Stores that cannot be used cost one line, and no result; recording later catches up."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from loopback import Loopback, Page
from recorded_results import make_recordable, record, recorded_runs

from perfcast.ops import doctor

SECONDS = 60.0


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


def lock(fault):
    fault.folder.mkdir(parents=True)
    sqlite3.connect(fault.database).close()
    base = sqlite3.connect(fault.database, isolation_level=None)
    base.execute("create table other (name)")
    base.execute("begin exclusive")
    fault.undo.callback(base.close)


def serve_health(body, status):
    def serve(fault):
        server = fault.undo.enter_context(Loopback())
        server.pages["/health"] = Page(body, status=status)
        fault.address(server.url(""))

    return serve


REFUSED = "the server of the tracking store refuses connections"
FAULTS = {
    REFUSED: lambda fault: fault.address("http://127.0.0.1:9"),
    "the server of the tracking store accepts and never answers": listen,
    "another server than MLflow's answers": serve_health(b"OK", 200),
    "the tracking database is locked by another program": lock,
    "the tracking database is garbage": lambda fault: fault.replace(fault.database, b"\xff no database" * 10_000),
    "the folder of artifacts is a file": lambda fault: fault.replace(fault.folder / "artifacts", b"x"),
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


@pytest.mark.parametrize(
    "name",
    [
        # every second one in all tests, all of them in `make faults`
        pytest.param(name, marks=[pytest.mark.faults] if number % 2 else [])
        for number, name in enumerate(FAULTS)
    ],
    ids=lambda name: name,
)
def test_unusable_store_costs_one_line_and_later_recording_catches_up(fault, capsys, name):
    FAULTS[name](fault)
    capsys.readouterr()
    note = fault.project / "note.txt"
    began = time.monotonic()
    assert record(fault.project, "--note", str(note)) == 0
    assert time.monotonic() - began < SECONDS
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tracking: NOT recorded: ") and line.endswith("`perfcast pipeline record` catches up")
    assert "secret" not in line
    assert note.read_text().startswith("NOT recorded")
    (finding,) = doctor.check_tracking(doctor.find_place(fault.project, os.environ))
    assert finding.state == doctor.CARE and "the store cannot be used" in finding.fact

    fault.undo.close()
    if fault.on_network and name != REFUSED:  # one of them is enough
        return
    assert record(fault.project, "--note", str(note)) == 0
    assert note.read_text() == "1 new runs recorded\n"
    assert recorded_runs(fault.project) == ["FINISHED"]
    assert [finding.state for finding in doctor.check_tracking(doctor.find_place(fault.project, os.environ))] == [
        doctor.FINE
    ]


def test_half_of_a_new_database_is_removed(fault):
    (fault.folder / "new").mkdir(parents=True)
    (fault.folder / "new" / "mlflow.db").write_bytes(b"half")
    assert record(fault.project) == 0
    assert not (fault.folder / "new").exists()
    assert recorded_runs(fault.project) == ["FINISHED"]


def test_failing_to_make_the_database_leaves_nothing(fault, monkeypatch, capsys):
    def fail(*arguments, **options):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("mlflow.MlflowClient.search_experiments", fail)
        assert record(fault.project, "--note", str(fault.project / "note.txt")) == 0
        assert record(fault.project) == 2, "without a note the command is a person's"
    assert "disk is full" in capsys.readouterr().err
    assert record(fault.project) == 0


def test_recorder_beside_one_that_hangs_says_so_and_ends(fault, monkeypatch, capsys):
    from filelock import FileLock

    monkeypatch.setattr("perfcast.tracking.store.LOCK_SECONDS", 0.2)
    fault.folder.mkdir(parents=True)
    with FileLock(fault.folder / "record.lock", is_singleton=False):
        assert record(fault.project, "--note", str(fault.project / "note.txt")) == 0
    (outcome,) = [line for line in capsys.readouterr().err.splitlines() if "tracking:" in line]
    assert "NOT recorded" in outcome and "record.lock" in outcome
    assert record(fault.project) == 0
