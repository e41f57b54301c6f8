"""The report as one HTML text that needs nothing else."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from perfcast.evaluation import BASELINE
from perfcast.report import answer, quality, tables
from perfcast.report.context import DatasetPart, ReportContext
from perfcast.report.inline_svg import inline_svg


def render(context: ReportContext) -> str:
    """Return the report; equal contexts give equal text. Style, script and figures are inside; nothing is loaded."""
    folder = files("perfcast.report")
    templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = templates.from_string((folder / "report.html").read_text(encoding="utf-8"))
    return page.render(
        style=Markup((folder / "report.css").read_text(encoding="utf-8")),
        script=Markup((folder / "report.js").read_text(encoding="utf-8")),
        context=context,
        datasets=[_view(part) for part in context.datasets],
        schedule=answer.schedule_words(context),
        spec=answer.is_spec(context.sources),
        retrieved=answer.retrieved,
        missing=[source for source in context.sources if source.get("status") != "present"],
        baseline=BASELINE,
    )


def _view(part: DatasetPart) -> dict[str, object]:
    """Return one data set as the template reads it."""
    evaluation, leader = part.evaluation, answer.leading_predictor(part)
    return {
        "part": part,
        "evaluation": evaluation,
        "answer": answer.answer(part),
        "leader": leader,
        "headline": tables.headline_grid(evaluation),
        "tasks": tables.task_grids(evaluation),
        "others": tables.other_metrics_grid(evaluation),
        "paired": tables.paired_rows(evaluation),
        "worst": tables.worst_slices(evaluation, leader),
        "figures": [
            (figure, Markup(inline_svg(figure.svg, prefix=f"{part.name}-{figure.name}", label=figure.caption)))
            for figure in part.figures
        ],
        "accounting": quality.accounting(part.quality) if part.quality else [],
        "columns": quality.columns(part.quality) if part.quality else [],
        "details": quality.details(part.quality) if part.quality else [],
        "number": tables.number,
    }
