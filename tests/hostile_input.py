"""What holds of every bad input at every door: status 2, one line that says what to do, and nothing half-written."""

from __future__ import annotations

from pathlib import Path

from perfcast.cli.main import main
from perfcast.utils.io import file_digests

REPOSITORY = Path(__file__).parents[1]
LONGEST = 3000


def one_line(told: str) -> str:
    """Return the line that was told, which must be the only one, printable and of a length that is read."""
    lines = told.splitlines()
    assert len(lines) == 1, told
    assert lines[0].startswith(("perfcast ", "perfcast: ")), told
    assert "Traceback" not in told
    assert lines[0].isprintable()
    assert len(lines[0]) <= LONGEST, len(lines[0])
    return lines[0]


def call(arguments, capsys):
    """Run a command in this process; return its status, and what it told on standard error."""
    capsys.readouterr()
    try:
        status = main([str(one) for one in arguments])
    except SystemExit as stopped:
        status = stopped.code
    return status, capsys.readouterr().err


def everything_in(folder: Path):
    """Return what a folder holds: hidden files, folders and digests; nothing where there is none."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")), file_digests(folder)


def refused(arguments, capsys, *words, out: Path | None = None) -> str:
    """Run a command that must be refused, and leave the folder `out` as it was; return the line that was told."""
    before = everything_in(out) if out else None
    status, told = call(arguments, capsys)
    assert status == 2, (status, told)
    line = one_line(told)
    for word in words:
        assert word in line, line
    if out:
        assert everything_in(out) == before
    return line
