"""The public sample of PerfCastDB: two CSV files of runs, a workbook of processors, a description of columns."""

from __future__ import annotations

import zipfile
from pathlib import Path

from perfcast.errors import UserError
from perfcast.sources._headers import LARGEST_CONTENT, check_csv, check_text

RUNS = ("train_data.csv", "test_data.csv")
PROCESSORS = "SPR_QDF_INFO.xlsx"
DESCRIPTION = "characteristic_description.md"

COLUMNS = (
    "kubernetes.pod_id",
    "RESULT.WorkloadName",
    "RESULT.WorkloadPreset",
    "RESULT.IterationIndex",
    "RESULT.TestName",
    "RESULT.Value",
    "META.metadata.cscope.qdf0",
    "SVR.CPU.CPU Model",
    "SVR.CPU.Socket(s)",
    "SVR.CPU.L3 Cache",
    "SVR.Memory.Installed",
    "Measure.DIMM.PartNo",
)


def check(folder: Path) -> None:
    """Check the structure of the ingested files. Raises: UserError."""
    for name in RUNS:
        check_csv(folder / name, COLUMNS)
    check_text(folder / DESCRIPTION)
    _check_workbook(folder / PROCESSORS)


def _check_workbook(path: Path) -> None:
    remedy = "the file is not the published one, fetch it again"
    if not zipfile.is_zipfile(path):
        raise UserError(f"{path.name} must be an Excel workbook", "it is absent, truncated or another format", remedy)
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    if "xl/workbook.xml" not in {member.filename for member in members}:
        raise UserError(f"{path.name} must be an Excel workbook", "it is another kind of zip archive", remedy)
    if sum(member.file_size for member in members) > LARGEST_CONTENT:
        raise UserError(f"{path.name} must unpack to at most {LARGEST_CONTENT} bytes", "it declares more", remedy)
