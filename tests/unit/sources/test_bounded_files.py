"""read_tar_files reads archives without extracting them and reports a defect in one line."""

import gzip
import io
import tarfile

import pytest

from perfcast.domains.gemm.sources import gpperf
from perfcast.domains.gemm.testing import gpperf as fake
from perfcast.sources.bounded_files import read_tar_files
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError


def write_archive(path, members):
    """Write an archive of (name, content) pairs."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return path


def test_read_tar_files_bounds_sizes(tmp_path, monkeypatch):
    path = write_archive(tmp_path / "a.tar.gz", [("run/x.csv", bytes(50_000)), ("run/y.csv", b"")])
    assert path.stat().st_size < 1000
    monkeypatch.setattr(size_limits, "ARCHIVE", 40_000)
    with pytest.raises(UserError, match="at most 40000 bytes"):
        read_tar_files(path, bool)
    monkeypatch.undo()
    monkeypatch.setattr(size_limits, "MEMBERS", 1)
    with pytest.raises(UserError, match="at most 1 members"):
        read_tar_files(path, bool)


def test_gpperf_archive_rejects_a_truncated_archive(tmp_path):
    fake.write(tmp_path, rows=60, seed=0)
    path = tmp_path / gpperf.ARCHIVE
    gpperf.read_archive(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match=r"truncated|damaged"):
        gpperf.read_archive(path)
