"""Hooks of MkDocs: they add the generated pages to the site and fill the generated parts of written pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT / "src"), str(Path(__file__).parent)]

import command_pages  # noqa: E402 - found beside this file
import data_pages  # noqa: E402
import part_texts  # noqa: E402
import predictor_pages  # noqa: E402
import project_pages  # noqa: E402
import result_pages  # noqa: E402


def generate(project: Path = PROJECT) -> dict[str, dict[str, str]]:
    """Return the generated pages by entry of the navigation: address -> Markdown."""
    results = project / "results" / "leaderboard"
    return {
        "predictors/": predictor_pages.generate(project / "conf", results),
        "results/": result_pages.generate(results, project / "conf"),
        "data/": data_pages.generate(project / "conf"),
        "": command_pages.generate() | project_pages.generate(project),
    }


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Generate the pages, and replace the entries of the navigation that end in a slash by them."""
    config.extra["generated"] = pages = generate()
    config.nav = _fill(config.nav, pages)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for pages in config.extra["generated"].values():
        for address, text in pages.items():
            files.append(File.generated(config, address, content=text))
    return files


def on_page_markdown(markdown: str, config: MkDocsConfig, **_: Any) -> str:
    """Replace the comments `<!-- generated: NAME -->` of a written page."""
    return part_texts.fill(markdown, PROJECT / "conf")


def _fill(entry: Any, pages: dict[str, dict[str, str]]) -> Any:
    if isinstance(entry, list):
        return [_fill(item, pages) for item in entry]
    if isinstance(entry, dict):
        return {title: _fill(item, pages) for title, item in entry.items()}
    return nest(pages[entry]) if entry in pages and entry else entry


def nest(pages: dict[str, str]) -> list[Any]:
    """Return the navigation of generated pages: the index, then sections of pages by their `section: ` line."""
    entries: list[Any] = []
    sections: dict[str, list[Any]] = {}
    for address, text in pages.items():
        lines = dict(line.split(": ", 1) for line in text.split("---")[1].strip().splitlines())
        entry = address if address.endswith("index.md") else {lines["title"]: address}
        if section := lines.get("section"):
            if section not in sections:
                sections[section] = []
                entries.append({section: sections[section]})
            sections[section].append(entry)
        else:
            entries.append(entry)
    return entries
