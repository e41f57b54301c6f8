"""SVG that lives inside an HTML page: no declarations, unique ids, colours that follow the page."""

from __future__ import annotations

import re
from html import escape

from perfcast.figures._style import INK

_PAPER = "#ffffff"


def inline_svg(svg: str, *, prefix: str, label: str) -> str:
    """Return one matplotlib SVG as an element for an HTML page.

    The XML declaration, document type and metadata go; every id and reference gets `prefix`, so that several figures
    can share a page; ink becomes the page's text colour and white areas become transparent, so that a figure follows
    a dark page; `label` is the text that screen readers speak.
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
