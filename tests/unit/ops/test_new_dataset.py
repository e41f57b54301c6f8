"""`perfcast new dataset`: what it prints can be pasted into a shell, and columns of a wrong kind are refused."""

from __future__ import annotations

import itertools
import shlex

import pytest
from own_table import own_table

from perfcast.cli.main import main


def write(folder, **columns):
    (folder / "conf" / "dataset").mkdir(parents=True)
    (folder / "conf" / "source").mkdir()
    path = folder / "mine.csv"
    own_table().assign(**columns).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("cell", ["it'; touch PWN; '", "o'clock", "$(touch PWN)", "\x1b[2J red"])
def test_cells_in_the_printed_command_are_quoted(cell, tmp_path, capsys):
    assert main(["new", "dataset", str(write(tmp_path, Vendor=cell)), "--project", str(tmp_path)]) == 0
    command = capsys.readouterr().out.splitlines()[-1]
    assert command.isprintable()
    words = shlex.split(command)
    fields = [word for flag, word in itertools.pairwise(words) if flag == "--set"]
    assert f"vendor={cell}".replace("\x1b", "\\x1b") in fields
    assert words[: words.index("--set")] == ["perfcast", "predict", "--dataset", "mine", "--results", "results/mine"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "Machine"], "--target must be a column of positive numbers, but 'Machine' has texts"),
        (["--target", "Tested"], "--target must be a column of positive numbers, but 'Tested' has dates"),
        (["--date", "Cores"], "--date must be a column of dates, YYYY-MM-DD, but 'Cores' has numbers"),
    ],
)
def test_a_column_of_the_wrong_kind_is_refused(words, message, tmp_path, capsys):
    path = write(tmp_path)
    assert main(["new", "dataset", str(path), *words, "--project", str(tmp_path)]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert message in error


def test_a_remedy_is_about_the_file(tmp_path, capsys):
    path = write(tmp_path)
    path.write_text("Machine,Score\n")
    assert main(["new", "dataset", str(path), "--project", str(tmp_path)]) == 2
    assert capsys.readouterr().err.strip().endswith("correct the file")
