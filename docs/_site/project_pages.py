"""Pages made from files of the project's root: how to contribute, changes, security, conduct, how to cite."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markdown_text import fenced, page

from perfcast.config.conf_files import read_yaml

NAMES = ("CONTRIBUTING", "CHANGELOG", "SECURITY", "CODE_OF_CONDUCT")
"""Files of the root that are pages of the site as well."""


def generate(project: Path) -> dict[str, str]:
    """Return the pages by address; links that lead into docs/ and to each other are those of the site."""
    pages = {}
    for name in NAMES:
        text = (project / f"{name}.md").read_text(encoding="utf-8").replace("](docs/", "](")
        pages[f"{name.lower()}.md"] = re.sub(rf"\]\(({'|'.join(NAMES)})\.md", _site_link, text)
    return pages | {"citing.md": _citing(project / "CITATION.cff")}


def _citing(path: Path) -> str:
    """Return the page on how to cite, made from CITATION.cff."""
    content = read_yaml(path)
    entries = [_bibtex("perfcast", "software", content)]
    entries += [_bibtex(reference["identifiers"][0]["value"], "misc", reference) for reference in content["references"]]
    return page(
        "Cite perfcast",
        f"{content['message']} Name the version, because errors and predictions change with it. perfcast builds on the "
        "network NCPP and its dataset PerfCastDB, so cite their publication where you use them.",
        fenced("\n\n".join(entries), "bibtex"),
        "The file `CITATION.cff` of the project has the same for programs that manage references:",
        fenced(path.read_text(encoding="utf-8"), "yaml"),
    )


def _bibtex(key: str, kind: str, content: Mapping[str, Any]) -> str:
    """Return an entry of BibTeX; an author that is no person keeps its name in braces."""
    authors = [
        author["name"].join("{}") if "name" in author else f"{author['family-names']}, {author['given-names']}"
        for author in content["authors"]
    ]
    fields = {
        "author": " and ".join(authors),
        "title": content["title"].join("{}"),
        "year": content.get("year", str(content.get("date-released"))[:4]),
        "version": content.get("version"),
        "url": content.get("url"),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value is not None]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])


def _site_link(match: re.Match[str]) -> str:
    return f"]({match[1].lower()}.md"
