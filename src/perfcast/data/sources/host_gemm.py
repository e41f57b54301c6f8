"""Matrix products measured by this project: one gzip CSV and a description of the machine."""

from __future__ import annotations

from pathlib import Path

from perfcast.data.sources.file_checks import check_csv, check_machine_description

MEASUREMENTS = "host_gemm.csv.gz"
MACHINE = "host_gemm.json"

COLUMNS = ("m", "n", "k", "dtype", "transpose_a", "transpose_b", "threads", "seconds_median")


def check(folder: Path) -> None:
    """Check the structure of the ingested files. Raises: UserError."""
    check_csv(folder / MEASUREMENTS, COLUMNS)
    check_machine_description(folder / MACHINE, "run `perfcast measure gemm`")
