"""Reference of the command line, made from the help texts of the commands."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stdout, suppress
from unittest.mock import patch

from markdown_text import fenced, page

from perfcast.cli.main import COMMANDS, STAGES, main


def generate() -> dict[str, str]:
    """Return the page by its address."""
    blocks = [
        "Every command prints this text with `--help`. A mistake gives one line and exit status 2.",
        "The stages of the pipeline are at the end: Snakemake calls them, and you rarely will.",
        *(_describe(name) for name in COMMANDS),
        "## perfcast pipeline",
        *(_describe("pipeline", name, level=3) for name in STAGES),
    ]
    return {"reference/commands.md": page("Command line", *blocks)}


def _describe(*words: str, level: int = 2) -> str:
    typed = [word.replace("_", "-") for word in words]
    heading = f"{'#' * level} perfcast {' '.join(typed)}"
    return f"{heading}\n\n{fenced(help_text(typed))}"


def help_text(words: list[str]) -> str:
    """Return the help of a command, at most 88 letters wide."""
    output = io.StringIO()
    with patch.dict(os.environ, {"COLUMNS": "88"}), redirect_stdout(output), suppress(SystemExit):
        main([*words, "--help"])
    return output.getvalue()
