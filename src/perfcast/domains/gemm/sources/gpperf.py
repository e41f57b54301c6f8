"""CUTLASS matrix products on one GPU: an archive with a file of results and a file of failed configurations."""

from __future__ import annotations

from pathlib import Path

from perfcast.sources.bounded_files import FETCH_AGAIN, read_tar_members
from perfcast.utils.errors import UserError

ARCHIVE = "cutlass_profiling_20241111_195357.tar.gz"
RESULTS, FAILED = "results.csv", "failed_configs.csv"
HEADER = "Energy_Joules,GFLOPS_per_Watt,TFLOPS"
"""Remainder of the header in the published file; the first record follows without a line break."""


def read_archive(path: Path) -> dict[str, str]:
    """Return the texts of both files by name, the results without their header.

    Raises: UserError when the archive is broken, a file of it is not UTF-8, or the results begin with another header.
    """
    texts = {}
    for name, content in read_tar_members(path, (RESULTS, FAILED)).items():
        try:
            texts[name] = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name} in {path.name} must be UTF-8 text", f"byte {error.start} is not", FETCH_AGAIN
            ) from None
    if not texts[RESULTS].startswith(HEADER):
        start = texts[RESULTS][: len(HEADER)]
        raise UserError(
            f"{RESULTS} in {path.name} must begin with {HEADER!r}", f"it begins with {start!r}", FETCH_AGAIN
        )
    texts[RESULTS] = texts[RESULTS].removeprefix(HEADER)
    if not texts[RESULTS].strip():
        raise UserError(f"{RESULTS} in {path.name} must have records", "it has a header only", FETCH_AGAIN)
    return texts
