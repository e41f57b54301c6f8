"""The self-contained HTML report."""

from perfcast.report.collect import collect
from perfcast.report.context import ReportContext
from perfcast.report.model_card import cards
from perfcast.report.render import render

__all__ = ["ReportContext", "cards", "collect", "render"]
