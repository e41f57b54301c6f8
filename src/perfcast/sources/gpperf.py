"""CUTLASS matrix products on one GPU: an archive with one file of results and one of what did not run."""

from __future__ import annotations

from pathlib import Path

from perfcast.errors import UserError
from perfcast.sources._archive import read_members

ARCHIVE = "cutlass_profiling_20241111_195357.tar.gz"
RESULTS, FAILED = "results.csv", "failed_configs.csv"
HEADER = "Energy_Joules,GFLOPS_per_Watt,TFLOPS"
"""All that the authors' script left of its header, glued to the first record without a line break."""


def check(folder: Path) -> None:
    """Check the structure of the ingested archive. Raises: UserError."""
    read(folder / ARCHIVE)


def read(path: Path) -> dict[str, str]:
    """Return the text of both files by name, the results without their header.

    Raises: UserError when the archive is broken, a file of it is not UTF-8, or the results begin otherwise.
    """
    remedy = "the file is not the published one, fetch it again"
    texts = {}
    for name, content in read_members(path, (RESULTS, FAILED)).items():
        try:
            texts[name] = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{name} in {path.name} must be UTF-8 text", f"byte {error.start} is not", remedy) from None
    if not texts[RESULTS].startswith(HEADER):
        found = texts[RESULTS][: len(HEADER)]
        raise UserError(f"{RESULTS} in {path.name} must begin with {HEADER!r}", f"found {found!r}", remedy)
    texts[RESULTS] = texts[RESULTS].removeprefix(HEADER)
    if not texts[RESULTS].strip():
        raise UserError(f"{RESULTS} in {path.name} must have records", "it has a header only", remedy)
    return texts
