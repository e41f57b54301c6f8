"""The report as one HTML page that loads nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from perfcast.evaluation import BASELINE
from perfcast.report import error_tables
from perfcast.report.data_sections import leakage_section, quality_section
from perfcast.report.error_tables import published_tables
from perfcast.report.explorer import explorer_view, point_budgets, shown_predictors
from perfcast.report.largest_errors import RULES, axis_limit, axis_position, largest_errors, release_errors
from perfcast.report.model_card import model_card
from perfcast.report.plots.drawing import inline_svg
from perfcast.report.report_context import DatasetPart, ReportContext
from perfcast.report.split_descriptions import describe_split, predictor_label, split_label
from perfcast.report.summaries import (
    TOLERANCE,
    ablation_tables,
    budget_sentence,
    calibration_tables,
    leading_predictor,
    retrieval_text,
    select_spec_sources,
    split_summaries,
    summary_sentence,
)


@dataclass(frozen=True)
class Section:
    """One section of a dataset: its title, and the data of its template `<name>.html`."""

    name: str
    title: str
    data: Any


def render(context: ReportContext) -> str:
    """Return the report; equal contexts give equal text. Style, script, points and plots are inside."""
    points = point_budgets([_count_points(part) for part in context.datasets])
    page = environment().get_template("page.html")
    return page.render(
        style=_read_templates("report.css", "explorer.css"),
        script=_read_templates("report.js", "explorer.js"),
        context=context,
        datasets=[_view(part, context, maximum) for part, maximum in zip(context.datasets, points, strict=True)],
        budget=budget_sentence(context),
        spec=select_spec_sources(context.sources),
        retrieval_text=retrieval_text,
        missing=[source for source in context.sources if source.get("status") != "present"],
        baseline=BASELINE,
        number=error_tables.number,
        score=error_tables.score,
        rules=RULES,
        describe_split=describe_split,
        split_label=split_label,
        predictor_label=predictor_label,
        tolerance=TOLERANCE,
        axis_limit=axis_limit,
        axis_position=axis_position,
    )


def environment() -> Environment:
    """Return the loader of the templates by name; text of others is escaped."""
    return Environment(
        loader=PackageLoader("perfcast.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _read_templates(*names: str) -> Markup:
    """Return files of the page's style or script, joined."""
    folder = files("perfcast.report") / "templates"
    return Markup("\n".join((folder / name).read_text(encoding="utf-8").strip() for name in names))


def _view(part: DatasetPart, context: ReportContext, maximum: int) -> dict[str, object]:
    """Return the view of one dataset for the template."""
    leader = leading_predictor(part)
    return {
        "part": part,
        "evaluation": part.evaluation,
        "summary": summary_sentence(part),
        "splits": split_summaries(part),
        "leader": leader,
        "several_targets": part.evaluation.points["target"].nunique() > 1,
        "worst": error_tables.worst_slices(part.evaluation, leader),
        "sections": [section for section in _sections(part, context, leader, maximum) if section.data],
    }


def _sections(part: DatasetPart, context: ReportContext, leader: str, maximum: int) -> list[Section]:
    """Return the sections of one dataset in their order; a section without data is not shown."""
    evaluation, rows = part.evaluation, part.rows
    return [
        Section("headline", "Errors of every predictor", _headline(part)),
        Section(
            "explorer",
            "Predictions of single results",
            explorer_view(evaluation, rows, leader, maximum=maximum) if rows else None,
        ),
        Section("largest_errors", "Largest errors", largest_errors(evaluation, rows, leader) if rows else None),
        Section("releases", "Errors by product release", release_errors(evaluation, rows, leader) if rows else None),
        Section("interval_calibration", "Calibration of prediction intervals", calibration_tables(evaluation, leader)),
        Section("published", "Comparison with published values", published_tables(evaluation, leader)),
        Section("ablation", "Ablation", ablation_tables(evaluation, rows) if rows else None),
        Section("plots", "Plots", _inline_plots(part)),
        Section("leakage", "Leakage checks", leakage_section(part.leakage)),
        Section("quality", "Data quality", quality_section(part.quality) if part.quality else None),
        Section("model_card", "Model card", model_card(part, context)),
    ]


def _count_points(part: DatasetPart) -> int:
    """Return the number of points of a dataset to draw."""
    shown = shown_predictors(part.evaluation, leading_predictor(part))
    return int(part.evaluation.points["predictor"].isin(shown).sum()) if part.rows else 0


def _headline(part: DatasetPart) -> dict[str, object]:
    return {
        "table": error_tables.headline_grid(part.evaluation),
        "tasks": error_tables.task_grids(part.evaluation),
        "others": error_tables.other_metrics_grid(part.evaluation),
        "paired": error_tables.paired_rows(part.evaluation),
    }


def _inline_plots(part: DatasetPart) -> list[tuple[object, Markup]]:
    return [
        (plot, Markup(inline_svg(plot.svg, prefix=f"{part.name}-{plot.name}", label=plot.caption)))
        for plot in part.plots
    ]
