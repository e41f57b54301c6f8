"""Completion in a shell: the line to read, and answers to the shell's requests."""

import subprocess
import sys

import pytest

from perfcast.cli.main import main

pytest.importorskip("argcomplete")


def complete(line, tmp_path):
    """Return the completions of the last word of a typed line."""
    answer = tmp_path / "answer"
    request = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9", "IFS": "\n", "_ARGCOMPLETE": "1"}
    code = f"import os; os.environ.update({request!r}); from perfcast.cli.main import main; main()"
    setting = f"import os, sys; os.environ['_ARGCOMPLETE_STDOUT_FILENAME'] = {str(answer)!r}; {code}"
    subprocess.run([sys.executable, "-c", setting], check=False, capture_output=True)
    return set(answer.read_text().replace("\x0b", "\n").split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_lines_of_a_shell(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "perfcast" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("perfcast pre", {"predict"}),
        ("perfcast pipeline s", {"split", "standardize"}),
        ("perfcast predict --pro", {"--processor"}),
        ("perfcast tune a b c --preset q", {"quick"}),
    ],
)
def test_commands_options_and_choices_are_completed(line, words, tmp_path):
    assert complete(line, tmp_path) == words
