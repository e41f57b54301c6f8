"""Draw plots by name, write them as SVG, and put them into an HTML page."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable
from html import escape
from io import StringIO
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from perfcast.evaluation import Evaluation
from perfcast.report.plots.catalog import plot_entry
from perfcast.report.plots.plot_style import INK, STYLE
from perfcast.utils.io import atomic_folder, write_text

_PAPER = "#ffffff"


def load_plot(name: str) -> Callable[[Evaluation], Figure | None]:
    """Return the function that draws a plot. Raises: UserError when there is no plot of this name."""
    module = importlib.import_module(f"perfcast.report.plots.{plot_entry(name).module}")
    function: Callable[[Evaluation], Figure | None] = getattr(module, name)
    return function


def draw_svg(evaluation: Evaluation, name: str) -> str | None:
    """Return one plot as SVG, or None when it does not apply to this evaluation; equal input gives equal text.

    Raises: UserError when there is no plot of this name.
    """
    draw = load_plot(name)
    with matplotlib.rc_context(STYLE):
        figure = draw(evaluation)
        return None if figure is None else to_svg(figure, plot_entry(name).title)


def to_svg(figure: Figure, title: str) -> str:
    """Return a plot drawn with STYLE as SVG, without dates; equal plots give equal text."""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    return _compact(buffer.getvalue())


def _compact(svg: str) -> str:
    """Return SVG with coordinates to a hundredth of a point and no trailing spaces: smaller, and looks the same."""

    def rounded(attribute: re.Match[str]) -> str:
        return re.sub(r"(\.\d\d)\d+", r"\1", attribute.group())

    text = re.sub(r' (?:d|x|y)="[^"]*"', rounded, svg)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def draw_all(evaluation: Evaluation, folder: Path, names: Iterable[str]) -> list[str]:
    """Write <folder>/<name>.svg for every named plot that applies, and return the names of those.

    The folder is replaced as a whole, so no plot of an earlier run stays.
    """
    drawn = []
    with atomic_folder(folder) as temporary:
        for name in names:
            text = draw_svg(evaluation, name)
            if text is not None:
                write_text(temporary / f"{name}.svg", text)
                drawn.append(name)
    return drawn


def inline_svg(svg: str, *, prefix: str, label: str) -> str:
    """Return one matplotlib SVG as an element for an HTML page.

    The XML declaration, document type and metadata go; every id and reference gets `prefix`, so that several plots
    can share a page; ink becomes the page's text color and white areas become transparent, so that a plot follows
    a dark page; `label` is the text for screen readers.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<title>.*?</title>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<style[^>]*>.*?</style>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r"url\(#", f"url(#{prefix}-", body)
    body = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}-', body)
    body = body.replace(INK, "currentColor").replace(f"fill: {_PAPER}", "fill: none")
    body = re.sub(r"\s*\n\s*", "\n", body).strip()
    opening = re.match(r"<svg[^>]*>", body)
    if opening is None:
        raise ValueError("the text is not SVG")
    box = re.search(r'viewBox="[^"]*"', opening.group())
    view = box.group() if box else ""
    return f'<svg class="figure" role="img" aria-label="{escape(label)}" {view}>{body[opening.end() :]}'
