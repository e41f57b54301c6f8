"""Workloads of the operating system: processes, address spaces, context switches."""

from __future__ import annotations

import mmap
import os
import shutil
import sys

from perfcast.domains.interference.measuring.workloads.servers import start_server
from perfcast.domains.interference.measuring.workloads.workload import Workload
from perfcast.microbench.kernels import MIB


class Processes(Workload):
    """Start and end of processes, as a build or a shell script does."""

    MEANING = "start two processes of a small program and wait for them"
    RESOURCE = "kernel"

    def prepare(self) -> None:
        """Find the program."""
        # without the small program, an interpreter that does nothing
        program = shutil.which("true")
        self._command = [program] if program else [sys.executable, "-I", "-S", "-c", ""]

    def operate(self) -> None:
        """Start one process after another."""
        for _ in range(2):
            os.waitpid(os.posix_spawn(self._command[0], self._command, {}), 0)


class PageFaults(Workload):
    """Growth and release of memory: the system clears every page at its first use."""

    MEANING = "map 4 MiB, touch every page, and release them"
    RESOURCE = "memory"
    SIZE = 4 * MIB

    def prepare(self) -> None:
        """Create the byte of every page."""
        self._bytes = b"\x01" * (self.SIZE // mmap.PAGESIZE)

    def operate(self) -> None:
        """Touch pages of a new mapping, one at a time."""
        with mmap.mmap(-1, self.SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pages:
            pages[:: mmap.PAGESIZE] = self._bytes


class ContextSwitches(Workload):
    """Two processes that wake each other over pipes."""

    MEANING = "fifty bytes to another process and back, one after another"
    RESOURCE = "kernel"
    TURNS = 50
    _server = 0

    def prepare(self) -> None:
        """Start the process that answers."""
        read_request, self._request = os.pipe()
        self._answer, write_answer = os.pipe()
        self._server = start_server(lambda: self._serve(read_request, write_answer))
        os.close(read_request)
        os.close(write_answer)

    def _serve(self, read: int, write: int) -> None:
        os.close(self._request)
        while byte := os.read(read, 1):
            os.write(write, byte)

    def operate(self) -> None:
        """Exchange bytes."""
        for _ in range(self.TURNS):
            os.write(self._request, b"x")
            os.read(self._answer, 1)

    def close(self) -> None:
        """End the process that answers."""
        os.close(self._request)
        os.close(self._answer)
        os.waitpid(self._server, 0)
