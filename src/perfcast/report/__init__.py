"""The self-contained HTML report."""

from perfcast.report.collect import collect
from perfcast.report.context import ReportContext
from perfcast.report.render import render

__all__ = ["ReportContext", "collect", "render"]
