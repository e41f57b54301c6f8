"""Matrix products measured by the project itself: one gzip CSV and a description of the machine."""

from __future__ import annotations

import json
from pathlib import Path

from perfcast.errors import UserError
from perfcast.sources._headers import check_csv

MEASUREMENTS = "host_gemm.csv.gz"
MACHINE = "host_gemm.json"

COLUMNS = ("m", "n", "k", "dtype", "transpose_a", "transpose_b", "threads", "seconds_median")


def check(folder: Path) -> None:
    """Check the structure of the ingested files. Raises: UserError."""
    check_csv(folder / MEASUREMENTS, COLUMNS)
    try:
        machine = json.loads((folder / MACHINE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        machine = None
    if not isinstance(machine, dict):
        raise UserError(
            f"{MACHINE} must be a JSON object that describes the machine",
            "it is absent or is not one",
            "measure anew with `perfcast measure gemm`",
        )
