"""Paste the outputs of the commands of pages: a block of text after a block of commands has what these print.

    python docs/_site/example_outputs.py docs/size.md

The blocks of a page run in their order, in one folder with the results of the project. A page of which a command fails
stays as it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

PROJECT = Path(__file__).resolve().parents[2]
COLUMNS = "120"
_PAIR = re.compile(r"^(```bash\n([^`]*)```\n\n```text\n).*?^```$", re.MULTILINE | re.DOTALL)


def paste(page: str, run: Callable[[str], str]) -> str:
    """Return a page with today's outputs; `run` returns what a block of commands prints."""
    return _PAIR.sub(lambda block: f"{block[1]}{run(block[2]).rstrip()}\n```", page)


def run_in(folder: Path) -> Callable[[str], str]:
    """Return a function that runs commands in a folder. Raises: CalledProcessError where one fails."""

    def run(commands: str) -> str:
        environment = {**os.environ, "COLUMNS": COLUMNS}
        words = ["bash", "-e", "-c", commands]
        done = subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    return run


def main(pages: list[str]) -> None:
    """Rewrite the named pages."""
    for page in map(Path, pages):
        with TemporaryDirectory() as folder:
            (Path(folder) / "results").symlink_to(PROJECT / "results")
            text = paste(page.read_text(encoding="utf-8"), run_in(Path(folder)))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
