"""Commands `snakemake`, `perfcast` and `python` whose processes start warm: their imports are those of a server.

A start costs 1 to 3 seconds of imports, and the graph of a miniature project has 20 of them. The commands stand first
on the path of `small_project.environment`; `cold` in it gives the real ones. The code is that of this repository.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Mapping
from fcntl import LOCK_EX, flock
from functools import cache
from pathlib import Path
from shlex import quote
from socket import AF_UNIX, socket
from tempfile import gettempdir

from perfcast.utils.portable_digits import ONE_THREAD, portable_instructions

_HERE = Path(__file__).parent
_COMMANDS = ("snakemake", "perfcast")
SETTINGS = {"MLFLOW_DISABLE_TELEMETRY": "true", "DVC_NO_ANALYTICS": "true"}
SETTINGS |= ONE_THREAD | portable_instructions()
"""Variables of every process of a miniature project. Imported libraries know their instructions already."""


@cache
def warm_commands() -> Path:
    """Return the folder with the commands; the first process of a run of tests starts the server for all of them."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"{os.getpid()}-{os.urandom(8).hex()}"
    folder = Path(gettempdir()) / f"perfcast-warm-{run}"
    folder.mkdir(mode=0o700, exist_ok=True)
    address = folder / "server"
    with (folder / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not address.exists():
            _start(folder, address)
        connection = socket(AF_UNIX)  # as long as it is open, the server runs
        connection.connect(str(address))
        connection.sendall(b"{}\0")
        assert connection.recv(1)
    atexit.register(connection.close)
    return folder


def _start(folder: Path, address: Path) -> None:
    words = [sys.executable, "-IS", str(_HERE / "warm_client.py"), str(address), str(folder / "python")]
    client = " ".join(map(quote, words))
    for name in _COMMANDS:
        _write_script(folder / name, f'exec {client} {name} "$@"')
    modules = "".join(f'"-m {name}") shift 2; exec {client} {name} "$@";; ' for name in _COMMANDS)
    _write_script(folder / "python", f'case "$1 $2" in {modules}*) exec {quote(sys.executable)} "$@";; esac')
    server = subprocess.Popen(
        [sys.executable, str(_HERE / "warm_server.py"), str(address)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, **SETTINGS, "PYTHONPATH": str(_HERE.parents[1] / "src")},
        cwd=folder,
    )
    assert server.stdout
    assert server.stdout.readline() == b"ready\n"


def warm(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables with the commands first on the path."""
    return {**variables, "PATH": f"{warm_commands()}{os.pathsep}{variables['PATH']}"}


def _write_script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
