"""The public sample of PerfCastDB: two CSV files of runs, a workbook of processors, a description of columns."""

from __future__ import annotations

from pathlib import Path

from perfcast.data.bounded_files import FETCH_AGAIN, check_zip
from perfcast.data.sources.file_checks import check_csv, check_text
from perfcast.utils import size_limits

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
    check_zip(
        folder / PROCESSORS,
        "an Excel workbook",
        lambda name: name == "xl/workbook.xml",
        size_limits.WORKBOOK,
        remedy=FETCH_AGAIN,
    )
