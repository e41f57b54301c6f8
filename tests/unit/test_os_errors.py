"""Errors of the disk are one line; bugs keep their traceback."""

import errno
import os
import re
import sqlite3

import pytest

from perfcast.cli import main as cli
from perfcast.utils.errors import explain_os_error


@pytest.mark.reliability("a full disk")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "results/a"), "must have room.*results/a.*make room"),
        (OSError("[Errno 28] Error writing bytes to file. Detail: No space left on device"), "must have room"),
        (OSError("Not enough free space to write 800 bytes"), "must have room"),
        (sqlite3.OperationalError("database or disk is full"), "must have room"),
        (OSError(errno.EROFS, "Read-only file system", "results/a"), "must be writable.*read-only"),
        (PermissionError(errno.EACCES, "Permission denied", "results/a"), "must have access.*results/a"),
        (OSError(errno.EIO, "Input/output error"), "must work"),
    ],
)  # fmt: skip
def test_an_error_of_the_disk_is_one_line(error, words):
    assert re.search(words, str(explain_os_error(error)))
    wrapped = RuntimeError("the store failed")
    wrapped.__cause__ = ValueError("in between")
    wrapped.__cause__.__context__ = error
    assert str(explain_os_error(wrapped)) == str(explain_os_error(error))


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("another"), OSError()])
def test_other_errors_are_not_explained(error):
    assert explain_os_error(error) is None
    error.__context__ = error  # a loop
    assert explain_os_error(error) is None


def test_an_absent_file_is_explained_unless_it_is_the_cause_of_another_error():
    absent = FileNotFoundError(errno.ENOENT, "No such file", "a")
    assert re.search("readable and writable.*a: no such file", str(explain_os_error(absent)))
    wrapped = RuntimeError("a bug")
    wrapped.__cause__ = absent
    assert explain_os_error(wrapped) is None


@pytest.mark.reliability("a full disk")
def test_the_command_ends_with_code_2_and_one_line(monkeypatch, tmp_path, capsys):
    def refuse(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("perfcast.ops.doctor.read_yaml", refuse)
    assert cli.main(["doctor", "--project", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert message.startswith("perfcast doctor: the disk must have room")
    assert message.count("\n") == 1
