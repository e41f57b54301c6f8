"""Workloads of files: transactions, synchronous writes, sequential writes and reads, and the page cache."""

from __future__ import annotations

import os
import sqlite3

import numpy as np

from perfcast.domains.interference.measuring.workloads.workload import Workload
from perfcast.microbench.kernels import KIB, MIB


class Transactions(Workload):
    """Transactions of SQLite with a write-ahead log."""

    MEANING = "a transaction of SQLite: ten reads, two updates, one insert"
    RESOURCE = "disk"
    DISK_MIB = 64
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

    RESOURCE = "disk"
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
    DISK_MIB = 16

    def operate(self) -> None:
        """Write the next block and wait for it."""
        os.pwrite(self._file, self._block[: 4 * KIB], self._offset)
        os.fsync(self._file)
        self._offset = (self._offset + 4 * KIB) % self.SIZE


class SequentialDisk(_OneFile):
    """Large sequential writes and reads that pass the page cache, as a backup does."""

    MEANING = "write 512 KiB to the disk and read 512 KiB back from it"
    SIZE = 192 * MIB
    DISK_MIB = 192
    STEP = 512 * KIB

    def operate(self) -> None:
        """Write a block, wait for it, and read a block that was written half a file ago."""
        os.pwrite(self._file, self._block[: self.STEP], self._offset)
        os.fdatasync(self._file)
        far = (self._offset + self.SIZE // 2) % self.SIZE
        os.posix_fadvise(self._file, far, self.STEP, os.POSIX_FADV_DONTNEED)
        os.pread(self._file, self.STEP, far)
        self._offset = (self._offset + self.STEP) % self.SIZE


class PageCache(_OneFile):
    """Random reads of a file that fits into the page cache until a neighbor takes its memory."""

    MEANING = "read ten blocks of 64 KiB at random places of a file of 128 MiB"
    RESOURCE = "memory"
    SIZE = 128 * MIB
    DISK_MIB = 128

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
