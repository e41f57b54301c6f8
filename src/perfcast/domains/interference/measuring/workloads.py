"""Workloads of tenants: arithmetic units, caches, memory, documents, files, servers and processes.

A new class below `Workload` is measured without any other change.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import shutil
import signal
import socket
import sqlite3
import struct
import sys
import zlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from perfcast.utils.errors import UserError, unknown_name

_PR_SET_PDEATHSIG = 1
KIB, MIB = 2**10, 2**20


def die_with_parent() -> None:
    """Have the system kill this process when its parent ends (prctl(2), PR_SET_PDEATHSIG)."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the call
        os._exit(1)


class Workload(ABC):
    """Work that one tenant repeats: the constructor prepares, `operate` does one operation, `close` frees.

    An operation lasts between a tenth of a millisecond and some ten milliseconds, so that a second has many of them.
    A workload uses one thread, besides a server of its own. Its files stay inside `folder`, which the caller removes.

    Args:
        folder: Empty folder for files of this workload alone.
        seed: Seed of generated contents.
    """

    MEANING: ClassVar[str] = ""
    """One operation, in words; a class without it is no workload but a base."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.prepare()

    @classmethod
    def name(cls) -> str:
        """Return the class name with underscores: `KeyValue` is key_value."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    @abstractmethod
    def prepare(self) -> None:
        """Create contents, files and servers."""

    @abstractmethod
    def operate(self) -> None:
        """Do one operation."""

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """End what `prepare` started."""


class Sort(Workload):
    """Sort of random whole numbers in the second-level cache."""

    MEANING = "sort of 32,768 random 64-bit integers"

    def prepare(self) -> None:
        """Draw the numbers."""
        self._numbers = np.random.default_rng(self.seed).integers(2**63 - 1, size=2**15)

    def operate(self) -> None:
        """Sort a copy."""
        np.sort(self._numbers)


class MatrixProduct(Workload):
    """Dense arithmetic on cached operands."""

    MEANING = "product of two matrices of float64, 209 by 209"

    def prepare(self) -> None:
        """Draw the matrices."""
        generator = torch.Generator().manual_seed(self.seed)
        self._a, self._b = (torch.rand(209, 209, generator=generator, dtype=torch.float64) for _ in range(2))

    def operate(self) -> None:
        """Multiply the matrices."""
        torch.mm(self._a, self._b)


class Triad(Workload):
    """Memory bandwidth, beyond the caches of one core."""

    MEANING = "four passes of a += s c over 16 MiB"

    def prepare(self) -> None:
        """Create the vectors."""
        self._a, self._c = torch.zeros(MIB, dtype=torch.float64), torch.ones(MIB, dtype=torch.float64)

    def operate(self) -> None:
        """Pass over both vectors."""
        for _ in range(4):
            self._a.add_(self._c, alpha=0.5)


class Chase(Workload):
    """Memory latency: dependent loads, beyond the caches of one core.

    `take` copies links[index[i]] to out[i], and `out` is `index` shifted by one: each step writes the index that the
    next step reads, so no step can start before the previous one has ended. The cycle is in random order, which no
    prefetcher can follow.
    """

    MEANING = "65,536 dependent loads of a random cycle in 16 MiB"
    LINES, WORDS = 2**18, 8
    """Cache lines, and words of each."""

    def prepare(self) -> None:
        """Link the first words of the lines to one cycle."""
        order = self.WORDS * np.random.default_rng(self.seed).permutation(self.LINES)
        self._links = np.zeros(self.LINES * self.WORDS, np.intp)
        self._links[order] = np.roll(order, -1)
        self._path = np.zeros(2**16 + 1, np.intp)

    def operate(self) -> None:
        """Follow the links."""
        self._path[0] = self._path[-1]
        # mode "raise" would copy the index first
        np.take(self._links, self._path[:-1], out=self._path[1:], mode="wrap")


class Compress(Workload):
    """Compression of text with DEFLATE."""

    MEANING = "zlib level 6 of 32 KiB of generated text"

    def prepare(self) -> None:
        """Generate the text."""
        random = np.random.default_rng(self.seed)
        words = [random.bytes(length).hex().encode() for length in random.integers(1, 6, size=5000)]
        # as in a language, the n-th word has a probability of about 1 / n
        self._text = b" ".join(words[number] for number in random.zipf(1.1, 32 * KIB) % len(words))[: 32 * KIB]

    def operate(self) -> None:
        """Compress the text."""
        zlib.compress(self._text, 6)


class JsonDocuments(Workload):
    """Parsing and writing of JSON, as most web services do."""

    MEANING = "parse, change and write a JSON document of 100 records"

    def prepare(self) -> None:
        """Generate the document."""
        random = np.random.default_rng(self.seed)
        self._document = json.dumps(
            [
                {
                    "id": number,
                    "name": random.bytes(8).hex(),
                    "tags": [random.bytes(3).hex() for _ in range(5)],
                    "scores": [round(float(value), 6) for value in random.random(10)],
                    "active": bool(number % 3),
                }
                for number in range(100)
            ]
        )

    def operate(self) -> None:
        """Parse the document, sum its scores, and write it again."""
        records = json.loads(self._document)
        for record in records:
            record["total"] = sum(record["scores"])
        json.dumps(records)


class KeyValue(Workload):
    """A key-value store in memory with a binary protocol over TCP: 90 % reads of values of 512 bytes."""

    MEANING = "twenty requests of a key-value server, one after another"
    KEYS, VALUE, REQUESTS = 10_000, 512, 20
    _HEADER = struct.Struct("<BIH")
    """Operation (0 get, 1 set), key, and length of the value that follows."""

    def prepare(self) -> None:
        """Start the server and connect."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._server = os.fork()
        if self._server == 0:
            try:
                die_with_parent()
                self._serve(listener)
            finally:
                os._exit(0)
        self._connection = socket.create_connection(listener.getsockname())
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.close()
        random = np.random.default_rng(self.seed)
        self._keys = random.zipf(1.2, 100_000) % self.KEYS
        self._writes = random.random(100_000) < 0.1
        self._value = random.bytes(self.VALUE)
        self._next = 0

    def _serve(self, listener: socket.socket) -> None:
        values = {key: bytes(self.VALUE) for key in range(self.KEYS)}
        connection, _ = listener.accept()
        listener.close()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while header := connection.recv(self._HEADER.size, socket.MSG_WAITALL):
            operation, key, length = self._HEADER.unpack(header)
            if operation:
                values[key] = connection.recv(length, socket.MSG_WAITALL)
                connection.sendall(self._HEADER.pack(operation, key, 0))
            else:
                connection.sendall(self._HEADER.pack(operation, key, self.VALUE) + values[key])

    def operate(self) -> None:
        """Send requests and wait for each answer."""
        for _ in range(self.REQUESTS):
            index = self._next = (self._next + 1) % len(self._keys)
            write = bool(self._writes[index])
            content = self._value if write else b""
            self._connection.sendall(self._HEADER.pack(write, int(self._keys[index]), len(content)) + content)
            length = self._HEADER.unpack(self._connection.recv(self._HEADER.size, socket.MSG_WAITALL))[2]
            if length:
                self._connection.recv(length, socket.MSG_WAITALL)

    def close(self) -> None:
        """Disconnect and end the server."""
        self._connection.close()
        os.waitpid(self._server, 0)


class Transactions(Workload):
    """Transactions of SQLite with a write-ahead log."""

    MEANING = "a transaction of SQLite: ten reads, two updates, one insert"
    ROWS = 20_000

    def prepare(self) -> None:
        """Create the database."""
        self._database = sqlite3.connect(self.folder / "accounts.sqlite", isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance REAL, note TEXT)")
        self._database.execute("CREATE TABLE history (id INTEGER PRIMARY KEY, account INTEGER, amount REAL)")
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT INTO account VALUES (?, ?, ?)", ((number, 100.0, "x" * 100) for number in range(self.ROWS))
        )
        self._database.execute("COMMIT")
        self._random = np.random.default_rng(self.seed)
        self._done = 0

    def operate(self) -> None:
        """Read ten accounts, move an amount between two of them, and record it."""
        accounts = self._random.integers(self.ROWS, size=10).tolist()
        execute = self._database.execute
        execute("BEGIN IMMEDIATE")
        for account in accounts:
            execute("SELECT balance FROM account WHERE id = ?", (account,)).fetchone()
        execute("UPDATE account SET balance = balance - 1 WHERE id = ?", (accounts[0],))
        execute("UPDATE account SET balance = balance + 1 WHERE id = ?", (accounts[1],))
        # a ring of records, so that the file stays small
        self._done = (self._done + 1) % 50_000
        execute("INSERT OR REPLACE INTO history VALUES (?, ?, 1)", (self._done, accounts[0]))
        execute("COMMIT")

    def close(self) -> None:
        """Close the database."""
        self._database.close()


class _OneFile(Workload):
    """Blocks of one file, filled in `prepare`."""

    SIZE = MIB
    FILL = MIB
    """Bytes of each write that fills the file."""

    def prepare(self) -> None:
        """Write the file."""
        self._block = np.random.default_rng(self.seed).bytes(MIB)
        self._file = os.open(self.folder / "content", os.O_RDWR | os.O_CREAT, 0o600)
        for offset in range(0, self.SIZE, self.FILL):
            os.pwrite(self._file, self._block[: self.FILL], offset)
        os.fsync(self._file)
        self._offset = 0

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class SynchronousWrite(_OneFile):
    """Small writes that wait for the disk, as a log of a database does."""

    MEANING = "write 4 KiB and wait for the disk (fsync)"
    SIZE = 16 * MIB
    # large writes leave large pages in the cache, which the system would write in full for each block
    FILL = 4 * KIB

    def operate(self) -> None:
        """Write the next block and wait for it."""
        os.pwrite(self._file, self._block[: 4 * KIB], self._offset)
        os.fsync(self._file)
        self._offset = (self._offset + 4 * KIB) % self.SIZE


class PageCache(_OneFile):
    """Random reads of a file that fits into the page cache until a neighbor takes its memory."""

    MEANING = "read ten blocks of 64 KiB at random places of a file of 128 MiB"
    SIZE = 128 * MIB

    def prepare(self) -> None:
        """Write the file and draw places."""
        super().prepare()
        blocks = np.random.default_rng(self.seed).integers(self.SIZE // (64 * KIB), size=(10_000, 10))
        self._places = (blocks * 64 * KIB).tolist()
        self._next = 0

    def operate(self) -> None:
        """Read at the next ten places."""
        for place in self._places[self._next]:
            os.pread(self._file, 64 * KIB, place)
        self._next = (self._next + 1) % len(self._places)


class Processes(Workload):
    """Start and end of processes, as a build or a shell script does."""

    MEANING = "start two processes of a small program and wait for them"

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
    SIZE = 4 * MIB

    def prepare(self) -> None:
        """Create the byte of every page."""
        self._bytes = b"\x01" * (self.SIZE // mmap.PAGESIZE)

    def operate(self) -> None:
        """Touch pages of a new mapping, one at a time."""
        with mmap.mmap(-1, self.SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pages:
            pages[:: mmap.PAGESIZE] = self._bytes


_WORKLOADS: dict[str, type[Workload]] = {
    kind.name(): kind
    for kind in globals().copy().values()
    if isinstance(kind, type) and issubclass(kind, Workload) and kind.MEANING
}


def workload_names() -> list[str]:
    """Return the names of the workloads, sorted."""
    return sorted(_WORKLOADS)


def load_workload(name: str) -> type[Workload]:
    """Return a workload. Raises: UserError for an unknown name."""
    if name not in _WORKLOADS:
        raise unknown_name("a workload", name, workload_names())
    return _WORKLOADS[name]


def parse_workloads(text: str | None) -> list[str]:
    """Return the workloads of a typed list, all without one. Raises: UserError for an unknown name or less than two."""
    if text is None:
        return workload_names()
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        load_workload(name)
    if len(names) < 2:
        raise UserError("--workloads must name at least two workloads", f"it names {len(names)}", "separate by commas")
    return names
