"""Commands and files of the system, with limits of time and size and in English."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

Run = Callable[[Sequence[str]], str]
"""Runs a command and returns its output. Raises: OSError or subprocess.SubprocessError when it fails."""

FAILURES = (OSError, subprocess.SubprocessError)
"""Exceptions of a command that is missing, fails or does not end."""

MAX_CHARACTERS = 4 * 1024 * 1024
"""The output of a machine with thousands of DIMMs and CPUs is shorter."""

_SECONDS = 20.0
_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")


def run_command(command: Sequence[str]) -> str:
    """Return the output of a command in English, cut after MAX_CHARACTERS.

    Raises: FileNotFoundError when the command does not exist; CalledProcessError when it fails; TimeoutExpired.
    """
    # ordinary users do not have the folder of dmidecode in PATH
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS])
    environment = {**os.environ, "LC_ALL": "C", "PATH": path}
    with subprocess.Popen(
        list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        expired = threading.Event()

        def stop() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(_SECONDS, stop)
        timer.start()
        try:
            output = process.stdout.read(MAX_CHARACTERS) if process.stdout else b""
            cut = len(output) == MAX_CHARACTERS
            if cut:
                process.kill()
            status = process.wait()
        finally:
            timer.cancel()
    if expired.is_set():
        raise subprocess.TimeoutExpired(list(command), _SECONDS)
    if status and not cut:
        raise subprocess.CalledProcessError(status, list(command))
    return output.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Host:
    """Access to a machine: its commands, and the root of its file system."""

    run: Run
    root: Path

    def run_or_empty(self, *command: str) -> str:
        """Return the stripped output of a command; "" when it fails."""
        try:
            return self.run(command).strip()
        except FAILURES:
            return ""

    def read_text(self, path: str) -> str:
        """Return the stripped text of a file; "" when it cannot be read."""
        try:
            with (self.root / path.lstrip("/")).open("rb") as file:
                return file.read(MAX_CHARACTERS).decode("utf-8", errors="replace").strip()
        except (OSError, ValueError):
            return ""

    def list_names(self, path: str) -> list[str]:
        """Return the sorted names in a folder; an empty list when it cannot be read."""
        try:
            return sorted(entry.name for entry in (self.root / path.lstrip("/")).iterdir())
        except (OSError, ValueError):
            return []

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        try:
            return (self.root / path.lstrip("/")).exists()
        except (OSError, ValueError):
            return False
