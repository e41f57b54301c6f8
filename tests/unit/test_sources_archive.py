"""An archive from outside is read and never unpacked; whatever is wrong with it is one line."""

import gzip
import io
import tarfile

import pytest

from perfcast import bounds
from perfcast.errors import UserError
from perfcast.fake import gpperf as fake
from perfcast.sources import gpperf
from perfcast.sources._archive import read_members


def archive(path, members):
    """Write an archive of (name, content) and of ready-made members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                file.addfile(member)
                continue
            name, content = member
            about = tarfile.TarInfo(name)
            about.size = len(content)
            file.addfile(about, io.BytesIO(content))
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return path


def link(name, target):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    return member


def test_named_files_are_read_from_the_archives_folder(tmp_path):
    path = archive(tmp_path / "a.tar.gz", [("run/temp/x.csv", b"deep"), ("run/x.csv", b"1"), ("run/y.csv", b"2")])
    assert read_members(path, ["x.csv", "y.csv"]) == {"x.csv": b"1", "y.csv": b"2"}
    assert [found.name for found in tmp_path.iterdir()] == ["a.tar.gz"]


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ([("x.csv", b"1")], "holds 0"),
        ([("../x.csv", b"1")], "holds 0"),
        ([("/x.csv", b"1")], "holds 0"),
        ([("run/../x.csv", b"1")], "holds 0"),
        ([("run/temp/x.csv", b"1")], "holds 0"),
        ([link("run/x.csv", "/etc/passwd")], "holds 0"),
        ([("run/x.csv", b"1"), ("other/x.csv", b"2")], "holds 2"),
    ],
)
def test_a_member_elsewhere_twice_or_no_plain_file_is_none(tmp_path, members, found):
    with pytest.raises(UserError, match=found):
        read_members(archive(tmp_path / "a.tar.gz", members), ["x.csv"])


def test_sizes_are_bounded(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.tar.gz", [("run/x.csv", bytes(50_000)), ("run/y.csv", b"")])
    assert path.stat().st_size < 1000
    monkeypatch.setattr(bounds, "ARCHIVE", 40_000)
    with pytest.raises(UserError, match="at most 40000 bytes"):
        read_members(path, ["x.csv"])
    monkeypatch.undo()
    monkeypatch.setattr(bounds, "MEMBERS", 1)
    with pytest.raises(UserError, match="at most 1 members"):
        read_members(path, ["x.csv"])


@pytest.mark.parametrize("content", [b"", b"no archive", gzip.compress(b"no tar at all" * 100, mtime=0)])
def test_what_is_no_archive_is_told_in_one_line(tmp_path, content):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(content)
    with pytest.raises(UserError) as raised:
        read_members(path, ["x.csv"])
    assert "\n" not in str(raised.value)


def test_a_truncated_archive_is_refused(tmp_path):
    fake.write(tmp_path, rows=60, seed=0)
    path = tmp_path / gpperf.ARCHIVE
    gpperf.check(tmp_path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match=r"truncated|damaged"):
        gpperf.check(tmp_path)


@pytest.mark.parametrize(
    ("results", "told"),
    [
        (b"", "must begin with"),
        (b"Energy,GFLOPS_per_Watt,TFLOPS1,2,3", "must begin with"),
        (gpperf.HEADER.encode(), "header only"),
        (gpperf.HEADER.encode() + b"\xff\xfe", "UTF-8"),
    ],
)
def test_results_with_another_beginning_are_refused(tmp_path, results, told):
    fake.write_archive(tmp_path / gpperf.ARCHIVE, {"run/results.csv": results, "run/failed_configs.csv": b""})
    with pytest.raises(UserError, match=told):
        gpperf.check(tmp_path)
