"""Checks of every refused input: status 2, one line with the remedy, no partial file."""

from __future__ import annotations

from pathlib import Path

from perfcast.cli.main import main
from perfcast.utils.io import file_digests

REPOSITORY = Path(__file__).parents[2]
LONGEST = 3000


def one_line(output: str) -> str:
    """Return the only line of an output, checked to be printable and short."""
    lines = output.splitlines()
    assert len(lines) == 1, output
    assert lines[0].startswith(("perfcast ", "perfcast: ")), output
    assert "Traceback" not in output
    assert lines[0].isprintable()
    assert len(lines[0]) <= LONGEST, len(lines[0])
    return lines[0]


def call(arguments, capsys):
    """Run a command in this process; return its status and its standard error."""
    capsys.readouterr()
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as stopped:
        status = stopped.code
    return status, capsys.readouterr().err


def everything_in(folder: Path):
    """Return what a folder holds: hidden files, folders and digests; nothing where there is none."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")), file_digests(folder)


def refused(arguments, capsys, *words, out: Path | None = None) -> str:
    """Run a command that must be refused without a change of the folder `out`; return its message."""
    before = everything_in(out) if out else None
    status, output = call(arguments, capsys)
    assert status == 2, (status, output)
    line = one_line(output)
    for word in words:
        assert word in line, line
    if out:
        assert everything_in(out) == before
    return line
