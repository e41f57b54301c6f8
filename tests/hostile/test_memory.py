"""Files of a gigabyte, plain, packed and sparse: every reader refuses in one line with little memory."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zipfile

import pandas as pd
import pytest
from bounded_memory import ROOM, read_bounded

from perfcast.data.strict_csv import read_rows
from perfcast.domains.servers.datasets.spec_cpu.dump_file import read_dump
from perfcast.schema.table_files import read_parquet
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

GIGABYTE = 1 << 30
PIECE = 1 << 26
MILLION = 1_000_000


def sparse(path, begin=b""):
    """Write a gigabyte without a line break, which takes no room on the disk."""
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(GIGABYTE)
    return path


def packed(path, pack, begin=b""):
    """Write a file of one megabyte or less that unpacks to a gigabyte."""
    piece = pack(bytes(PIECE))
    path.write_bytes(pack(begin) + piece * (GIGABYTE // PIECE))
    return path


def zipped(path, name, copies):
    """Write an archive whose members share the bytes of one, so that a small file declares a lot."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(1 << 24))
        for number in range(copies):
            member = zipfile.ZipInfo(f"copy/{number}")
            first = archive.infolist()[0]
            for field in ("compress_type", "compress_size", "file_size", "CRC", "header_offset", "flag_bits"):
                setattr(member, field, getattr(first, field))
            archive.filelist.append(member)
    return path


def tar_of(path):
    """Write an archive with a member of a gigabyte."""
    about = tarfile.TarInfo("run/x.csv")
    about.size = GIGABYTE
    path.write_bytes(gzip.compress(about.tobuf()) + gzip.compress(bytes(PIECE)) * (GIGABYTE // PIECE))
    return path


def test_large_files_and_bombs_are_refused_in_bounded_memory(tmp_path):
    wide = b"a,b," + b",".join(b"c%d" % number for number in range(MILLION)) + b"\n"
    (tmp_path / "wide.csv").write_bytes(wide + b"1," * MILLION + b"1\n")
    (tmp_path / "cells.csv").write_bytes(b"a,b\n" + b"1," * (20 * MILLION) + b"\n")
    one_line, after = sparse(tmp_path / "line.csv"), sparse(tmp_path / "after.csv", b"a,b\n1,2\n")
    bomb = packed(tmp_path / "bomb.csv.gz", gzip.compress, b"a,b\n1,2\n")
    xz_bomb = packed(tmp_path / "bomb.csv.xz", lzma.compress, b"a,b\n1,2\n")
    cases = [
        ("rows", one_line),
        ("rows", bomb),
        ("rows", tmp_path / "wide.csv"),
        ("rows", tmp_path / "cells.csv"),
        ("dump", xz_bomb),
        ("machines", after),
        ("archive", tar_of(tmp_path / "large.tar.gz")),
        ("workbook", zipped(tmp_path / "shared.xlsx", "xl/workbook.xml", 64)),
        ("torch", zipped(tmp_path / "shared.pt", "a/data.pkl", 64)),
        ("machines", sparse(tmp_path / "line.json")),
        ("machines", sparse(tmp_path / "line.yaml")),
        ("configuration", tmp_path / "line.yaml"),
        ("json", tmp_path / "line.json"),
        ("table", sparse(tmp_path / "table.parquet", b"PAR1")),
    ]
    answers = read_bounded(cases)
    assert len(answers) == len(cases)
    for (door, path), (words, peak) in zip(cases, answers, strict=True):
        assert words.isprintable(), (door, path.name)
        if door == "dump":  # read piece by piece: the long line is one bad row of two
            assert words == "it was read", (path.name, words)
        else:
            assert "must" in words, (door, path.name, words)
        assert peak < ROOM, (door, path.name, peak)


@pytest.mark.parametrize("read", [read_rows, read_dump])
def test_readers_bound_accepted_and_rejected_rows(tmp_path, monkeypatch, read):
    for name, rows in (("good.csv", "1,2\n" * 30), ("bad.csv", "1,2\n" + "1\n" * 30)):
        (tmp_path / name).write_text("a,b\n" + rows)
    for bound in ("DUMP_ROWS", "TABLE_ROWS", "REJECTED"):
        monkeypatch.setattr(size_limits, bound, 29)
    with pytest.raises(UserError, match="at most 29 rows"):
        read("source", tmp_path / "good.csv", ["a", "b"])
    with pytest.raises(UserError, match="more than 29 are rejected, the first as wrong_field_count"):
        read("source", tmp_path / "bad.csv", ["a", "b"])


def test_read_table_refuses_too_many_cells_unread(tmp_path, monkeypatch):
    pd.DataFrame({"a": [0] * 10_000}).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(size_limits, "CELLS", 9_999)
    monkeypatch.setattr(pd, "read_parquet", None)
    with pytest.raises(UserError, match="at most 9999 cells"):
        read_parquet(tmp_path / "t.parquet")
