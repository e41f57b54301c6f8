"""Draw figures by name, and write them as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from perfcast import plugins
from perfcast.evaluation import Evaluation
from perfcast.figures._style import STYLE
from perfcast.io import atomic_folder, write_text


def draw_svg(evaluation: Evaluation, name: str) -> str | None:
    """Return one figure as SVG, or None when it does not apply to this evaluation; equal input gives equal text.

    Raises: UserError when there is no figure of this name.
    """
    module = plugins.load("figures", name)
    with matplotlib.rc_context(STYLE):
        figure = module.draw(evaluation)
        return None if figure is None else to_svg(figure, module.TITLE)


def to_svg(figure: Figure, title: str) -> str:
    """Return a figure drawn under STYLE as SVG, without dates; equal figures give equal text."""
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
    """Write <folder>/<name>.svg for every named figure that applies, and return the names of those.

    The folder is replaced as a whole, so no figure of an earlier run stays.
    """
    drawn = []
    with atomic_folder(folder) as temporary:
        for name in names:
            text = draw_svg(evaluation, name)
            if text is not None:
                write_text(temporary / f"{name}.svg", text)
                drawn.append(name)
    return drawn
