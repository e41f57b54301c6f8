"""The self-contained HTML report: `report_context` reads results, `render_page` writes the page, `plots` draws."""

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

TEMPLATES = Environment(
    loader=PackageLoader("perfcast.report", "templates"),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
"""Templates of the report; text of others is escaped in those of HTML."""
