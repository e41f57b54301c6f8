"""Commands and code of the documentation's pages."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

PROJECT = Path(__file__).parents[1]
ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PAGES = [*(PROJECT / name for name in ROOT_PAGES), *sorted((PROJECT / "docs").rglob("*.md"))]
TEXT = {str(path.relative_to(PROJECT)): path.read_text(encoding="utf-8") for path in PAGES}
FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SHELLS = {"", "bash", "sh", "console", "shell"}
HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?\n.*?^\1$", re.MULTILINE | re.DOTALL)
SUBSTITUTION = re.compile(r"^\w+=\$\((.*)\)$", re.MULTILINE)
"""A variable that holds the output of a command."""
OPERATORS = {"&&", "||", ";", "|", "|&", "&"}


def read_commands(text: str) -> list[tuple[str, ...]]:
    """Return the commands of a block of shell lines, split into words."""
    joined = HERE_DOCUMENT.sub("", text).replace("\\\n", " ")
    lines = SUBSTITUTION.sub(r"\1", joined).splitlines()
    commands: list[tuple[str, ...]] = []
    for line in lines:
        try:
            words = shlex.split(line.strip().removeprefix("$ "), comments=True)
        except ValueError:  # a drawing, not a command
            continue
        if len(words) == 1 and (assigned := re.match(r"\w+=(perfcast .*)", words[0])):
            words = shlex.split(assigned[1])
        start = 0
        for end in [*(place for place, word in enumerate(words) if word in OPERATORS), len(words)]:
            command = [word for word in words[start:end] if not re.match(r"[A-Z_]+=", word)]
            commands += [tuple(command)] if command else []
            start = end + 1
    return commands


def list_commands(program: str, *, inline: bool) -> list[tuple[str, tuple[str, ...]]]:
    """Return (page, words after the program) of every command, in blocks or between backticks."""
    commands = set()
    for page, text in TEXT.items():
        blocks = [block for language, block in FENCE.findall(text) if language in SHELLS]
        texts = re.findall(r"`([^`\n]+)`", FENCE.sub("", text)) if inline else blocks
        commands |= {(page, words[1:]) for block in texts for words in read_commands(block) if words[0] == program}
    return sorted(commands)
