"""What a disk refuses is told in one line; a bug stays one."""

import errno
import os
import re
import sqlite3

import pytest

from perfcast.cli import main as cli
from perfcast.utils.os_errors import explain_os_error


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
def test_what_a_disk_refuses_is_told_in_one_line(error, words):
    assert re.search(words, str(explain_os_error(error)))
    wrapped = RuntimeError("the store failed")
    wrapped.__cause__ = ValueError("in between")
    wrapped.__cause__.__context__ = error
    assert str(explain_os_error(wrapped)) == str(explain_os_error(error))


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("another"), OSError()])
def test_what_is_no_disk_stays_what_it_is(error):
    assert explain_os_error(error) is None
    error.__context__ = error  # a loop
    assert explain_os_error(error) is None


def test_a_file_that_is_not_there_is_told_unless_it_is_only_behind_another_error():
    absent = FileNotFoundError(errno.ENOENT, "No such file", "a")
    assert re.search("readable and writable.*a: no such file", str(explain_os_error(absent)))
    wrapped = RuntimeError("a bug")
    wrapped.__cause__ = absent
    assert explain_os_error(wrapped) is None


def test_the_command_ends_with_code_2_and_one_line(monkeypatch, tmp_path, capsys):
    def refuse(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("perfcast.config.conf_files.read_yaml", refuse)
    assert cli.main(["doctor", "--project", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("perfcast doctor: the disk must have room")
    assert told.count("\n") == 1
