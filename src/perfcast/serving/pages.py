"""The files of the web page, read once: nothing a request says is ever a path."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Page:
    """A file and its media type."""

    content: bytes
    kind: str


def _page(name: str) -> Page:
    path = files("perfcast.serving") / "static" / name
    return Page(path.read_bytes(), _KINDS[name[name.rindex(".") :]])


PAGES = {"/": _page("page.html"), "/docs": _page("docs.html")}
"""Pages by their address."""
FILES = {
    f"/static/{entry.name}": _page(entry.name)
    for entry in (files("perfcast.serving") / "static").iterdir()
    if entry.name.endswith((".css", ".js", ".svg"))
}
"""What the pages load."""
