"""MLPerf inference: one archive with the authors' files of eight rounds."""

from __future__ import annotations

from pathlib import Path

from perfcast.sources.bounded_files import FETCH_AGAIN, read_tar_files
from perfcast.utils.errors import UserError

SOURCE = "mlperf_inference"
ARCHIVE = "mlperf_inference.tar.gz"
ENTRIES = "cm-result.json"
SUMMARY = "summary_results.json"
PIVOT = "mlperf-5.0.csv"
"""Names of the files with results: entries of rounds to v4.1, those of v5.1, and the pivot table of v5.0."""


def read_archive(path: Path) -> dict[str, bytes]:
    """Return the content of the files with results by their path in the archive, in the order of the paths.

    Raises: UserError when the archive is absent, damaged or too large, or has no results.
    """
    contents = dict(read_tar_files(path, lambda name: name.endswith((ENTRIES, SUMMARY, PIVOT))))
    if not contents:
        raise UserError(f"{path.name} must have results", "it has no file of a known name", FETCH_AGAIN)
    return dict(sorted(contents.items()))
