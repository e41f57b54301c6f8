"""Commands `snakemake`, `perfcast` and `python` whose processes start warm: their imports are those of a server.

A start costs 1 to 3 seconds of imports, and the graph of a miniature project has 20 of them. The commands stand first
on the path of `small_project.environment`; `cold` in it gives the real ones. The code is that of this repository.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from shlex import quote
from tempfile import mkdtemp

_HERE = Path(__file__).parent
_COMMANDS = ("snakemake", "perfcast")


@cache
def warm_commands(variables: tuple[tuple[str, str], ...]) -> Path:
    """Start the server, once for the process of the tests, and return the folder with the commands."""
    folder = Path(mkdtemp(prefix="perfcast-warm-"))
    address = folder / "server"
    server = subprocess.Popen(
        [sys.executable, str(_HERE / "warm_server.py"), str(address)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(variables),
        cwd=folder,
    )
    assert server.stdout
    assert server.stdout.readline() == b"ready\n"
    atexit.register(_end, server, folder)
    words = [sys.executable, "-IS", str(_HERE / "warm_client.py"), str(address), str(folder / "python")]
    client = " ".join(map(quote, words))
    for name in _COMMANDS:
        _write_script(folder / name, f'exec {client} {name} "$@"')
    modules = "".join(f'"-m {name}") shift 2; exec {client} {name} "$@";; ' for name in _COMMANDS)
    _write_script(folder / "python", f'case "$1 $2" in {modules}*) exec {quote(sys.executable)} "$@";; esac')
    return folder


def warm(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables with the commands first on the path."""
    folder = warm_commands(tuple(sorted(variables.items())))
    return {**variables, "PATH": f"{folder}{os.pathsep}{variables['PATH']}"}


def _write_script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def _end(server: subprocess.Popen[bytes], folder: Path) -> None:
    assert server.stdin
    server.stdin.close()
    server.wait()
    shutil.rmtree(folder, ignore_errors=True)
