"""Readers run in a process with bounded additional memory; the peak is measured."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from perfcast.utils.errors import UserError

ROOM = 512
"""MiB that a reader may take beside what is loaded."""


def doors():
    from perfcast.config.conf_files import read_yaml
    from perfcast.data.strict_csv import read_rows
    from perfcast.domains.servers.datasets.perfcastdb.runs_table import read_skus
    from perfcast.domains.servers.datasets.spec_cpu.dump_file import read_dump
    from perfcast.inference.machine_files import read_entries
    from perfcast.schema.table_files import read_table
    from perfcast.sources.bounded_files import check_zip, read_tar_files
    from perfcast.utils.io import read_json

    return {
        "rows": lambda path: read_rows("source", path, ["a"]),
        "dump": lambda path: read_dump("source", path, ["a", "b"]),
        "archive": lambda path: read_tar_files(path, bool),
        "workbook": read_skus,
        "torch": lambda path: check_zip(path, "a PyTorch file", bool, 16 << 20, remedy=""),
        "machines": read_entries,
        "configuration": read_yaml,
        "json": read_json,
        "table": read_table,
    }


def read_bounded(cases):
    """Read every (reader, path) in bounded memory; return the message and the additional peak of memory in MiB."""
    words = [json.dumps([(door, str(path)) for door, path in cases])]
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=True, timeout=1200)
    return [tuple(line) for line in map(json.loads, done.stdout.splitlines())]


def _size() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _read(door, path) -> None:
    bound = _size() + (ROOM << 20)
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        door(path)
        words = "it was read"
    except UserError as error:
        words = str(error)
    except MemoryError:
        words = "MemoryError"
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(json.dumps([words, peak]), flush=True)


if __name__ == "__main__":
    every = doors()
    for name, path in json.loads(sys.argv[1]):
        child = os.fork()
        if not child:
            _read(every[name], Path(path))
            os._exit(0)
        os.waitpid(child, 0)
