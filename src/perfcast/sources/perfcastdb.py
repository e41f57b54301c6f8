"""The public sample of PerfCastDB: two CSV files of runs, a workbook of processors, a description of columns."""

from __future__ import annotations

from pathlib import Path

from perfcast.sources.bounded_files import FETCH_AGAIN, check_zip
from perfcast.sources.file_checks import check_text
from perfcast.utils import size_limits

PROCESSORS = "SPR_QDF_INFO.xlsx"
DESCRIPTION = "characteristic_description.md"


def check(folder: Path) -> None:
    """Check the workbook and the description; conf declares the columns of the runs. Raises: UserError."""
    check_text(folder / DESCRIPTION)
    check_zip(
        folder / PROCESSORS,
        "an Excel workbook",
        lambda name: name == "xl/workbook.xml",
        size_limits.WORKBOOK,
        remedy=FETCH_AGAIN,
    )
