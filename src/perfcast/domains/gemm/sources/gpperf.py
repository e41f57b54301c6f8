"""CUTLASS matrix products on one GPU: an archive with a file of results and a file of failed configurations."""

from __future__ import annotations

import re
from pathlib import Path

from perfcast.sources.bounded_files import FETCH_AGAIN, read_tar_files
from perfcast.utils.errors import UserError

ARCHIVE = "cutlass_profiling_20241111_195357.tar.gz"
RESULTS = "results.csv"
FAILED = "failed_configs.csv"
HEADER = "Energy_Joules,GFLOPS_per_Watt,TFLOPS"
"""Remainder of the header in the published file; the first record follows without a line break."""


def read_archive(path: Path) -> dict[str, str]:
    """Return the texts of both files by name, the results without their header.

    Raises: UserError when the archive is broken, a file of it is not UTF-8, or the results begin with another header.
    """
    texts = {}
    # in one named folder: not the root, not nested, not a parent
    members = read_tar_files(path, re.compile(rf"(?!\.\.?/)[^/\\]+/(?:{RESULTS}|{FAILED})").fullmatch)
    for name in (RESULTS, FAILED):
        contents = [content for member, content in members if member.endswith(f"/{name}")]
        if len(contents) != 1:
            raise UserError(
                f"{path.name} must have one file {name}",
                f"it has {len(contents)}",
                FETCH_AGAIN,
            )
        try:
            texts[name] = contents[0].decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name} in {path.name} must be UTF-8 text",
                f"byte {error.start} is not",
                FETCH_AGAIN,
            ) from None
    if not texts[RESULTS].startswith(HEADER):
        start = texts[RESULTS][: len(HEADER)]
        raise UserError(
            f"{RESULTS} in {path.name} must begin with {HEADER!r}",
            f"it begins with {start!r}",
            FETCH_AGAIN,
        )
    texts[RESULTS] = texts[RESULTS].removeprefix(HEADER)
    if not texts[RESULTS].strip():
        raise UserError(
            f"{RESULTS} in {path.name} must have records",
            "it has a header only",
            FETCH_AGAIN,
        )
    return texts
