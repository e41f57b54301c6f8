"""Pages made from files of the project's root: how to contribute, changes, security, conduct."""

from __future__ import annotations

import re
from pathlib import Path

NAMES = ("CONTRIBUTING", "CHANGELOG", "SECURITY", "CODE_OF_CONDUCT")
"""Files of the root that are pages of the site as well."""


def generate(project: Path) -> dict[str, str]:
    """Return the pages by address; links that lead into docs/ and to each other are those of the site."""
    pages = {}
    for name in NAMES:
        text = (project / f"{name}.md").read_text(encoding="utf-8").replace("](docs/", "](")
        pages[f"{name.lower()}.md"] = re.sub(rf"\]\(({'|'.join(NAMES)})\.md", _site_link, text)
    return pages


def _site_link(match: re.Match[str]) -> str:
    return f"]({match[1].lower()}.md"
