"""read_tar_members reads archives without extracting them and reports a defect in one line."""

import gzip
import io
import tarfile

import pytest

from perfcast.domains.gemm.sources import gpperf
from perfcast.domains.gemm.testing import gpperf as fake
from perfcast.sources.bounded_files import read_tar_members
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError


def write_archive(path, members):
    """Write an archive of (name, content) pairs and of members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                file.addfile(member)
                continue
            name, content = member
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return path


def make_link(name, target):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    return member


def test_read_tar_members_reads_the_named_files_of_a_folder(tmp_path):
    path = write_archive(tmp_path / "a.tar.gz", [("run/temp/x.csv", b"deep"), ("run/x.csv", b"1"), ("run/y.csv", b"2")])
    assert read_tar_members(path, ["x.csv", "y.csv"]) == {"x.csv": b"1", "y.csv": b"2"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.tar.gz"]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("x.csv", b"1")], "it has 0"),
        ([("../x.csv", b"1")], "it has 0"),
        ([("/x.csv", b"1")], "it has 0"),
        ([("run/../x.csv", b"1")], "it has 0"),
        ([("run/temp/x.csv", b"1")], "it has 0"),
        ([make_link("run/x.csv", "/etc/passwd")], "it has 0"),
        ([("run/x.csv", b"1"), ("other/x.csv", b"2")], "it has 2"),
    ],
)
def test_read_tar_members_skips_a_member_elsewhere_or_that_is_no_regular_file(tmp_path, members, message):
    with pytest.raises(UserError, match=message):
        read_tar_members(write_archive(tmp_path / "a.tar.gz", members), ["x.csv"])


def test_read_tar_members_bounds_sizes(tmp_path, monkeypatch):
    path = write_archive(tmp_path / "a.tar.gz", [("run/x.csv", bytes(50_000)), ("run/y.csv", b"")])
    assert path.stat().st_size < 1000
    monkeypatch.setattr(size_limits, "ARCHIVE", 40_000)
    with pytest.raises(UserError, match="at most 40000 bytes"):
        read_tar_members(path, ["x.csv"])
    monkeypatch.undo()
    monkeypatch.setattr(size_limits, "MEMBERS", 1)
    with pytest.raises(UserError, match="at most 1 members"):
        read_tar_members(path, ["x.csv"])


@pytest.mark.parametrize("content", [b"", b"no archive", gzip.compress(b"no tar at all" * 100, mtime=0)])
def test_read_tar_members_reports_another_format_in_one_line(tmp_path, content):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(content)
    with pytest.raises(UserError) as raised:
        read_tar_members(path, ["x.csv"])
    assert "\n" not in str(raised.value)


def test_gpperf_check_rejects_a_truncated_archive(tmp_path):
    fake.write(tmp_path, rows=60, seed=0)
    path = tmp_path / gpperf.ARCHIVE
    gpperf.check(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match=r"truncated|damaged"):
        gpperf.check(tmp_path)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (b"", "must begin with"),
        (b"Energy,GFLOPS_per_Watt,TFLOPS1,2,3", "must begin with"),
        (gpperf.HEADER.encode(), "header only"),
        (gpperf.HEADER.encode() + b"\xff\xfe", "UTF-8"),
    ],
)
def test_gpperf_check_rejects_another_header(tmp_path, results, message):
    fake.write_archive(tmp_path / gpperf.ARCHIVE, {"run/results.csv": results, "run/failed_configs.csv": b""})
    with pytest.raises(UserError, match=message):
        gpperf.check(tmp_path)
