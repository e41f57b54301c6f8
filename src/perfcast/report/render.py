"""The report as one HTML text that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from perfcast.evaluation import BASELINE
from perfcast.report import answer, audit, misses, quality, sureness, tables, templates
from perfcast.report.ablation import ablations
from perfcast.report.context import DatasetPart, ReportContext
from perfcast.report.explorer import budgets, explorer, shown_predictors
from perfcast.report.inline_svg import inline_svg
from perfcast.report.launches import launches, place, reach
from perfcast.report.model_card import model_card
from perfcast.report.published import comparisons
from perfcast.report.questions import asks_about


@dataclass(frozen=True)
class Section:
    """One section of a data set: its title, and what its template `<name>.html` shows."""

    name: str
    title: str
    data: Any


def render(context: ReportContext) -> str:
    """Return the report; equal contexts give equal text. Style, script, points and figures are inside."""
    points = budgets([_drawn(part) for part in context.datasets])
    page = templates.environment().get_template("page.html")
    return page.render(
        style=templates.style(),
        script=templates.script(),
        context=context,
        datasets=[_view(part, context, most) for part, most in zip(context.datasets, points, strict=True)],
        schedule=answer.schedule_words(context),
        spec=answer.is_spec(context.sources),
        retrieved=answer.retrieved,
        missing=[source for source in context.sources if source.get("status") != "present"],
        baseline=BASELINE,
        number=tables.number,
        score=tables.score,
        rules=misses.RULES,
        asks_about=asks_about,
        tolerance=sureness.TOLERANCE,
        reach=reach,
        place=place,
    )


def _view(part: DatasetPart, context: ReportContext, most: int) -> dict[str, object]:
    """Return one data set as the template reads it."""
    leader = answer.leading_predictor(part)
    return {
        "part": part,
        "evaluation": part.evaluation,
        "answer": answer.answer(part),
        "questions": answer.questions(part),
        "leader": leader,
        "several_targets": part.evaluation.points["target"].nunique() > 1,
        "worst": tables.worst_slices(part.evaluation, leader),
        "sections": [section for section in _sections(part, context, leader, most) if section.data],
    }


def _sections(part: DatasetPart, context: ReportContext, leader: str, most: int) -> list[Section]:
    """Return the sections of one data set in their order; one without data is not shown."""
    evaluation, rows = part.evaluation, part.rows
    return [
        Section("headline", "Every predictor on every question", _headline(part)),
        Section("explorer", "Look into the forecasts", explorer(evaluation, rows, leader, most=most) if rows else None),
        Section("misses", "Worst misses", misses.worst_misses(evaluation, rows, leader) if rows else None),
        Section("launches", "New families, launch by launch", launches(evaluation, rows, leader) if rows else None),
        Section("sureness", "How often intervals held, and how wide", sureness.sureness(evaluation, leader)),
        Section("published", "Beside what others published", comparisons(evaluation, leader)),
        Section("ablation", "What each idea is worth", ablations(evaluation, rows) if rows else None),
        Section("figures", "Figures", _figures(part)),
        Section("audit", "Audit", audit.section(part.audit)),
        Section("quality", "Data quality", _quality(part.quality) if part.quality else None),
        Section("model_card", "Model card", model_card(part, context)),
    ]


def _drawn(part: DatasetPart) -> int:
    """Return how many points of a data set there are to draw."""
    shown = shown_predictors(part.evaluation, answer.leading_predictor(part))
    return int(part.evaluation.points["predictor"].isin(shown).sum()) if part.rows else 0


def _headline(part: DatasetPart) -> dict[str, object]:
    return {
        "table": tables.headline_grid(part.evaluation),
        "tasks": tables.task_grids(part.evaluation),
        "others": tables.other_metrics_grid(part.evaluation),
        "paired": tables.paired_rows(part.evaluation),
    }


def _figures(part: DatasetPart) -> list[tuple[object, Markup]]:
    return [
        (figure, Markup(inline_svg(figure.svg, prefix=f"{part.name}-{figure.name}", label=figure.caption)))
        for figure in part.figures
    ]


def _quality(told: Mapping[str, Any]) -> dict[str, object]:
    return {
        "accounting": quality.accounting(told),
        "columns": quality.columns(told),
        "details": quality.details(told),
    }
