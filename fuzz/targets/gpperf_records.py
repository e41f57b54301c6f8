"""Records of GPPerf's script, whole or not: no line may vanish."""

from __future__ import annotations

import tempfile
from pathlib import Path

from perfcast.domains.gemm.datasets.gemm_records import parse_records
from perfcast.domains.gemm.sources import gpperf
from perfcast.domains.gemm.testing import gpperf as fake

_made = Path(tempfile.mkdtemp(prefix="perfcast-fuzz-seeds-"))
fake.write(_made, rows=60, seed=0)
SEEDS = [gpperf.read_archive(_made / gpperf.ARCHIVE)[gpperf.RESULTS].encode()[:4000], b"1,2,3,4,5\r\n\r\nx\n1,1,1,1,\n"]


def check(data: bytes) -> None:
    """Read records."""
    text = data.decode("utf-8", errors="replace")
    records = list(parse_records(text))
    stated = [number for number, line in enumerate(text.split("\n"), 1) if line.rstrip("\r")]
    if bool(stated) != bool(records):
        raise AssertionError("lines are lost")
    for record in records:
        if bool(record.fields) == bool(record.reason):
            raise AssertionError(record)
