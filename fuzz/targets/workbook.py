"""The workbook of processor samples: any sheet and any shared strings inside a whole archive, or any archive."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

from _refusing import refusing, written

from perfcast.domains.servers.datasets.perfcastdb.runs_table import SKU_TABLE, read_skus
from perfcast.domains.servers.testing import perfcastdb as fake

_made = Path(tempfile.mkdtemp(prefix="perfcast-fuzz-seeds-"))
fake.write(_made, rows=10, seed=0)
with zipfile.ZipFile(_made / SKU_TABLE) as _whole:
    PARTS = {name: _whole.read(name) for name in _whole.namelist()}
SHEET = "xl/worksheets/sheet1.xml"
_ROWS = PARTS[SHEET]
SEEDS = [
    b"\x00" + _ROWS[:6000],
    b"\x00" + _ROWS[: _ROWS.index(b"<sheetData>") + 11] + b'<row r="1"><c r="XFD1048576" t="s"><v>7</v></c></row>',
    b"\x01" + PARTS["xl/workbook.xml"],
    b"\x02" + PARTS["xl/_rels/workbook.xml.rels"],
    b"\x03" + PARTS["[Content_Types].xml"],
    b"\x04" + (_made / SKU_TABLE).read_bytes()[-3000:],
]
FUZZED = (SHEET, "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "[Content_Types].xml")


def check(data: bytes) -> None:
    """Read a workbook of which one part is the input."""
    if not data:
        return
    which = data[0] % (1 + len(FUZZED))
    if which == len(FUZZED):
        content = data[1:]
    else:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, part in {**PARTS, FUZZED[which]: data[1:]}.items():
                archive.writestr(name, part)
        content = buffer.getvalue()
    with refusing():
        read_skus(written("book.xlsx", content))
