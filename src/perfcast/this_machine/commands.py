"""Run the system's own commands, and read its files: bounded in time and size, in its plain language."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

Run = Callable[[Sequence[str]], str]
"""Runs a command and returns what it prints; raises OSError or subprocess.SubprocessError where it cannot."""

FAILURES = (OSError, subprocess.SubprocessError)
"""What running a command raises where there is none, it fails or it does not answer."""

MAX_CHARACTERS = 4 * 1024 * 1024
"""A machine with thousands of DIMMs and processors says less."""

_SECONDS = 20.0
_SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")


def run_command(command: Sequence[str]) -> str:
    """Return what a command prints, in English; what is beyond MAX_CHARACTERS is cut off.

    Raises: FileNotFoundError where there is no such command; CalledProcessError where it fails; TimeoutExpired.
    """
    # dmidecode lies where the search path of ordinary users does not lead.
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
    """Where a machine is read: its commands, and the root of its file system."""

    run: Run
    root: Path

    def say(self, *command: str) -> str:
        """Return what a command prints without surrounding blanks; "" where it cannot be run."""
        try:
            return self.run(command).strip()
        except FAILURES:
            return ""

    def text(self, path: str) -> str:
        """Return a file's text without surrounding blanks; "" where it cannot be read."""
        try:
            with (self.root / path.lstrip("/")).open("rb") as file:
                return file.read(MAX_CHARACTERS).decode("utf-8", errors="replace").strip()
        except (OSError, ValueError):
            return ""

    def names(self, path: str) -> list[str]:
        """Return the names in a folder in order; none where it cannot be read."""
        try:
            return sorted(entry.name for entry in (self.root / path.lstrip("/")).iterdir())
        except (OSError, ValueError):
            return []

    def exists(self, path: str) -> bool:
        """Tell whether there is such a file or folder."""
        try:
            return (self.root / path.lstrip("/")).exists()
        except (OSError, ValueError):
            return False
