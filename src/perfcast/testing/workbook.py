"""Writer of an Excel workbook of one sheet of texts: equal rows give equal bytes."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

from perfcast.utils.io import atomic_path

_TIME = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")


def write_sheet(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Write rows of texts as the only sheet of a workbook; an empty row stays an empty row."""
    import openpyxl

    workbook = openpyxl.Workbook(write_only=True)
    sheet = workbook.create_sheet()
    for row in rows:
        sheet.append(row)
    workbook.save(content := io.BytesIO())
    with atomic_path(path) as temporary, zipfile.ZipFile(content) as saved, zipfile.ZipFile(temporary, "w") as archive:
        for name in saved.namelist():
            # openpyxl writes the current time into the properties; ZipInfo without a time gives 1980-01-01.
            data = _TIME.sub(rb"\g<1>1980-01-01T00:00:00Z", saved.read(name))
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=zipfile.ZIP_DEFLATED)
