"""The templates of the report: one per section, with the style and the scripts that go into the page."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_STYLES = ("report.css", "explorer.css")
_SCRIPTS = ("report.js", "explorer.js")


def environment() -> Environment:
    """Return what loads a template of this folder by its name; text of others is escaped."""
    return Environment(
        loader=PackageLoader("perfcast.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def style() -> Markup:
    """Return the style of the page."""
    return _joined(_STYLES)


def script() -> Markup:
    """Return the script of the page."""
    return _joined(_SCRIPTS)


def _joined(names: tuple[str, ...]) -> Markup:
    folder = files("perfcast.report.templates")
    return Markup("\n".join((folder / name).read_text(encoding="utf-8").strip() for name in names))
