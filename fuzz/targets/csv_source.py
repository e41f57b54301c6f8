"""Tables of sources that are small CSV files."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

from _refusing import refusing, written

from perfcast.data.strict_csv import read_rows
from perfcast.domains.gemm.datasets.host_gemm import CONFIGURATION as COLUMNS
from perfcast.domains.gemm.datasets.host_gemm import TABLE
from perfcast.domains.gemm.testing import host_gemm

_made = Path(tempfile.mkdtemp(prefix="perfcast-fuzz-seeds-"))
host_gemm.write(_made, rows=5, seed=0)
SEEDS = [
    gzip.decompress((_made / TABLE).read_bytes()),
    b'm,n,k\r\n"1,2\r\n\xff,1,2\r\n',
]


def check(data: bytes) -> None:
    """Read a table."""
    path = written("table.csv", data)
    with refusing():
        rows = read_rows("host_gemm", path, COLUMNS)
        if rows.rows_in != len(rows.frame) + len(rows.rejections):
            raise AssertionError("rows are lost")
