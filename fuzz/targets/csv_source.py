"""Tables of sources that are small CSV files: the rows, then the catalog."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

from _refusing import refusing, written

from perfcast.data.strict_csv import read_rows
from perfcast.domains.gemm.datasets.host_gemm import CONFIGURATION as COLUMNS
from perfcast.domains.gemm.datasets.host_gemm import TABLE
from perfcast.domains.gemm.testing import host_gemm
from perfcast.domains.servers.processors.catalog import read_catalog
from perfcast.domains.servers.testing import cpu_catalog

_made = Path(tempfile.mkdtemp(prefix="perfcast-fuzz-seeds-"))
host_gemm.write(_made, rows=5, seed=0)
cpu_catalog.write(_made, rows=4, seed=0)
CATALOG = ("boavizta_cpu_specs.csv", "intel_xeon_processors_v1_8.csv", "amd-cpus.csv")
SEEDS = [
    b"\x00" + gzip.decompress((_made / TABLE).read_bytes()),
    *(bytes([1 + number]) + (_made / name).read_bytes() for number, name in enumerate(CATALOG)),
    b'\x00m,n,k\r\n"1,2\r\n\xff,1,2\r\n',
]


def check(data: bytes) -> None:
    """Read a table."""
    if not data:
        return
    which = data[0] % (1 + len(CATALOG))
    if not which:
        path = written("table.csv", data[1:])
        with refusing():
            rows = read_rows("host_gemm", path, COLUMNS)
            if rows.rows_in != len(rows.frame) + len(rows.rejections):
                raise AssertionError("rows are lost")
        return
    path = written(f"catalog/{CATALOG[which - 1]}", data[1:])
    with refusing():
        read_catalog(path.parent)
    path.unlink()
