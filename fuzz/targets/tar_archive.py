"""Archives of records: tar inside gzip, and a gzip or xz stream of any bytes."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile

from _refusing import refusing, written

from perfcast.sources.bounded_files import kind_by_name, read_tar_files, unpacked


def _tar(members: dict[str, bytes], form: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size, about.type, about.linkname = len(content), kind, "/etc/passwd"
            archive.addfile(about, io.BytesIO(content))
    return buffer.getvalue()[:3072]


SEEDS = [
    *(b"\x00" + _tar({"run/results.csv": b"1,2\n"}, form) for form in (tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT)),
    b"\x00" + _tar({"run/" + "x" * 200: b"", "run/é.csv": b""}, tarfile.PAX_FORMAT),
    b"\x00" + _tar({"run/" + "x" * 200: b""}, tarfile.GNU_FORMAT),
    b"\x00" + _tar({"run/results.csv": b""}, tarfile.USTAR_FORMAT, tarfile.SYMTYPE),
    b"\x00" + _tar({"run/results.csv": b""}, tarfile.USTAR_FORMAT, tarfile.GNUTYPE_SPARSE),
    b"\x01" + gzip.compress(b"a,b\n" * 20, mtime=0),
    b"\x02" + lzma.compress(b"a,b\n" * 20),
]


def check(data: bytes) -> None:
    """Read the members that are wanted, or the packed text."""
    if not data:
        return
    which = data[0] % 3
    with refusing():
        if which:
            path = written(("packed.gz", "packed.xz")[which - 1], data[1:])
            with unpacked(path, kind_by_name(path)) as file:
                file.read()
        else:
            path = written("archive.tar.gz", gzip.compress(data[1:], 1, mtime=0))
            read_tar_files(path, {"results.csv", "failed_configs.csv"}.__contains__)
