"""Server of warm processes: it imports once, and forks a process for every command of `warm_processes`.

The first process imports what the commands of before have imported; one that it forks has the folder, the variables,
the files and the arguments of its client. It ends when the client does, and the other way round. All of them have the
same order of sets: a test of equal bytes compares them with a process that started cold.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mlflow_tables import remember_tables

import perfcast
from perfcast.cli.command_parser import STAGES
from perfcast.code_hash import code_digest
from perfcast.utils.safe_yaml import read_yaml_text

_SOURCES = (sys.prefix, sys.base_prefix, str(Path(perfcast.__file__).parent))
_MAIN = {"snakemake": "snakemake.cli", "perfcast": "perfcast.cli.main"}
_FOREIGN = ("__", "snakemake.deployment", "torch._inductor", "triton")
"""Beginnings of names of modules that the server leaves to its processes."""

_TRIED: set[str] = set()
"""Names of modules that the server has tried to import."""
_TABLES = "mlflow.db"
"""File with the tables of MLflow, which the first command that needs them makes."""


@dataclass
class _Running:
    """A command that runs: its client, and the file with the names of modules that it imported."""

    client: socket.socket
    learned: int


def receive(client: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return a request and the standard files of its client."""
    files = array.array("i")
    size = socket.CMSG_SPACE(3 * files.itemsize)
    message, ancillary, *_ = client.recvmsg(1 << 16, size)
    for _, _, content in ancillary:
        files.frombytes(content[: len(content) - len(content) % files.itemsize])
    while not message.endswith(b"\0"):
        message += client.recv(1 << 16)
    return json.loads(message[:-1]), list(files)


@cache
def read_configuration(text: str) -> None:
    """Read a file of `conf/`, so that no process has to parse the text that one before it has parsed."""
    with suppress(Exception):
        read_yaml_text(text, "a file")


def become(request: dict[str, Any], files: list[int]) -> None:
    """Take the folder, the variables, the files and the arguments of a client."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, errors="backslashreplace", closefd=False)
    sys.argv = [request["program"], *request["arguments"]]
    sys.path.insert(0, request["folder"])
    # the jobs of Snakemake are commands of this server too
    sys.executable = request["python"]


def run(request: dict[str, Any], files: list[int], learned: int) -> int:
    """Run a command in this process and return its exit code."""
    become(request, files)
    before = set(sys.modules)
    try:
        code = importlib.import_module(_MAIN[request["program"]]).main()
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    with suppress(OSError):
        os.write(learned, json.dumps([name for name in sys.modules if name not in before]).encode())
    return int(code or 0)


def fork(request: dict[str, Any], files: list[int], closed: list[socket.socket]) -> tuple[int, int]:
    """Start a command; return its process and a file with the names of modules that it imported."""
    learned = os.memfd_create("learned")
    gc.freeze()  # a collection in the process would copy the memory of all that is imported
    if process := os.fork():
        for file in files:
            os.close(file)
        return process, learned
    code = 1
    try:
        for connection in closed:
            connection.close()
        code = run(request, files, learned)
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def learn(file: int) -> None:
    """Import what a command imported, so that the next one finds it."""
    with open(file, "rb") as content:
        content.seek(0)
        names = content.read()
    for name in json.loads(names or b"[]"):
        if name in sys.modules or name in _TRIED or name.startswith(_FOREIGN):
            continue
        _TRIED.add(name)
        with suppress(Exception):
            spec = importlib.util.find_spec(name)
            if spec and (spec.origin or "").startswith(_SOURCES):
                importlib.import_module(name)
    if "mlflow.store.db.utils" in sys.modules and _TABLES not in _TRIED:
        _TRIED.add(_TABLES)
        remember_tables(Path(sys.argv[1]).with_name(_TABLES))


class Server:
    """Socket that takes commands, and the processes that run them; it ends with the last process of the tests."""

    def __init__(self, address: str) -> None:
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(address)
        self.listening.listen(64)
        self.running: dict[int, _Running] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listening, selectors.EVENT_READ)
        self.tests: list[socket.socket] = []
        woken, self.wake = socket.socketpair()
        woken.setblocking(False)
        self.wake.setblocking(False)
        self.woken = woken
        self.selector.register(woken, selectors.EVENT_READ)
        signal.set_wakeup_fd(self.wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(self) -> None:
        """Take commands until the processes of the tests end."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listening:
                    self.accept()
                elif key.fileobj in self.tests:
                    self.selector.unregister(key.fileobj)
                    self.tests.remove(key.fileobj)
                    if not self.tests:
                        return self.close()
                elif key.fileobj is self.woken:
                    self.woken.recv(1 << 10)
                else:
                    self.hear(key.data)
            self.collect()

    def accept(self) -> None:
        """Start the command of a new client, or keep a connection that tells when a process of tests ends."""
        client, _ = self.listening.accept()
        request, files = receive(client)
        if not request:
            self.tests.append(client)
            self.selector.register(client, selectors.EVENT_READ)
            client.sendall(b"0")
            return
        if request["program"] == "snakemake":
            for path in Path(request["folder"]).glob("conf/**/*.yaml"):
                read_configuration(path.read_text(encoding="utf-8", errors="replace"))
        clients = [client, *self.tests, *[entry.client for entry in self.running.values()]]
        inherited = [self.listening, self.woken, self.wake, *clients]
        process, learned = fork(request, files, inherited)
        self.running[process] = _Running(client, learned)
        self.selector.register(client, selectors.EVENT_READ, process)

    def hear(self, process: int) -> None:
        """Pass on a signal of a client, or end the process of a client that is gone."""
        if process not in self.running:
            return
        number = self.running[process].client.recv(1)
        os.kill(process, number[0] if number else signal.SIGKILL)
        if not number:
            self.selector.unregister(self.running[process].client)

    def collect(self) -> None:
        """Tell the clients of ended processes how they ended."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                entry = self.running.pop(ended[0])
                with suppress(KeyError, ValueError):
                    self.selector.unregister(entry.client)
                with suppress(OSError):
                    entry.client.sendall(f"{os.waitstatus_to_exitcode(ended[1])}\n".encode())
                entry.client.close()
                learn(entry.learned)

    def close(self) -> None:
        """End all processes, and remove the folder of the commands."""
        for process in self.running:
            os.kill(process, signal.SIGKILL)
        shutil.rmtree(Path(sys.argv[1]).parent, ignore_errors=True)


if __name__ == "__main__":
    for module in ("snakemake.cli", "perfcast.cli.main", "pandas"):
        importlib.import_module(module)
    for stage in STAGES:
        code_digest(f"perfcast.cli.pipeline:{stage}")
    server = Server(sys.argv[1])
    print("ready", flush=True)
    server.serve()
