"""MLPerf inference: one archive with the authors' files of eight rounds."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import IO, cast

from perfcast.sources.bounded_files import FETCH_AGAIN, GZIP, unpacked
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

SOURCE, ARCHIVE = "mlperf_inference", "mlperf_inference.tar.gz"
ENTRIES, SUMMARY, PIVOT = "cm-result.json", "summary_results.json", "mlperf-5.0.csv"
"""Names of the files with results: entries of rounds to v4.1, those of v5.1, and the pivot table of v5.0."""


def read_archive(path: Path) -> dict[str, bytes]:
    """Return the content of the files with results by their path in the archive, in the order of the paths.

    Links, devices and other files are skipped unread, and nothing is extracted.

    Raises: UserError when the archive is absent, damaged or too large, or has no results.
    """
    contents: dict[str, bytes] = {}
    try:
        with unpacked(path, GZIP, most=size_limits.ARCHIVE) as file:
            content = io.BytesIO(file.read())
        with tarfile.open(fileobj=content, mode="r:") as archive:
            for number, member in enumerate(archive):
                if number >= size_limits.MEMBERS:
                    requirement = f"{path.name} must have at most {size_limits.MEMBERS} members"
                    raise UserError(requirement, "it has more", FETCH_AGAIN)
                # a sparse file counts as regular, too, and may declare any size
                if member.name.endswith((ENTRIES, SUMMARY, PIVOT)) and member.isreg() and not member.issparse():
                    contents[member.name] = cast(IO[bytes], archive.extractfile(member)).read()
    except FileNotFoundError:
        raise UserError(f"{path.name} must exist", "there is no such file", "ingest the source again") from None
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path.name} must be a whole tar archive", f"it is damaged ({error})", FETCH_AGAIN) from None
    if not contents:
        raise UserError(f"{path.name} must have results", "it has no file of a known name", FETCH_AGAIN)
    return dict(sorted(contents.items()))
