"""Dumps of SPEC's results, from bytes to a table of one dataset."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

from _refusing import refusing, written

from perfcast.domains.servers.datasets.spec_cpu.dump_file import read_dump
from perfcast.domains.servers.datasets.spec_java.power import build
from perfcast.domains.servers.testing import spec_cpu2017, spec_power

_made = Path(tempfile.mkdtemp(prefix="perfcast-fuzz-seeds-"))
spec_power.write(_made, rows=4, seed=0)
spec_cpu2017.write(_made, rows=4, seed=0)
_POWER = (_made / spec_power.FILE).read_bytes()
SEEDS = [b"\x00" + _POWER[:8000], b"\x01" + gzip.decompress((_made / spec_cpu2017.FILE).read_bytes())[:8000]]
WANTED = ("Benchmark", "Hardware Vendor", "System", "Peak Result", "Base Result")


def check(data: bytes) -> None:
    """Read a dump, and make a table of it."""
    if not data:
        return
    if data[0] & 1:
        path = written("dump.csv", data[1:])
        with refusing():
            dump = read_dump("spec_cpu2017", path, WANTED)
            if dump.rows_in != len(dump.frame) + len(dump.rejections):
                raise AssertionError("rows are lost")
        return
    path = written(f"power/{spec_power.FILE}", data[1:])
    with refusing():
        made = build({"spec_power": path.parent}, {})
        if made.rows_in != len(made.table.frame) + made.rows_merged + len(made.rejected):
            raise AssertionError("rows are lost")
