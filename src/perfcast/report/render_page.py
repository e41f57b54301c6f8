"""The report: an index, and one page per dataset; no page loads anything."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from perfcast.domain import domains
from perfcast.evaluation import BASELINE, Evaluation
from perfcast.report import error_tables
from perfcast.report.answers import can_rank, dataset_answer, small_dataset_sentence, split_answers
from perfcast.report.error_tables import published_tables
from perfcast.report.explorer import explorer_view, point_budgets
from perfcast.report.largest_errors import RULES, largest_errors
from perfcast.report.model_card import cards, model_card
from perfcast.report.plots.drawing import inline_svg
from perfcast.report.quality_tables import quality_section
from perfcast.report.release_errors import axis_limit, axis_position, release_errors
from perfcast.report.report_context import DatasetPart, ReportContext
from perfcast.report.summaries import (
    TOLERANCE,
    ablation_tables,
    budget_sentence,
    calibration_remarks,
    calibration_tables,
    leading_predictor,
    retrieval_text,
    select_spec_sources,
)
from perfcast.report.text_tables import Section, described_section
from perfcast.schema.display_names import column_label
from perfcast.splits import describe_split, scenario_label, split_label
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, write_text
from perfcast.utils.result_digests import record_digests


def render_pages(context: ReportContext, name: str = "report") -> dict[str, str]:
    """Return the pages of the report by their path; equal contexts give equal texts.

    The index `<name>.html` links `<name>/<dataset>.html` with its SHA-256. Style, script, points and plots are inside.
    A dataset that is too small to rank predictors has a paragraph in the index and no page.
    """
    ranked = [part for part in context.datasets if can_rank(part)]
    budgets = point_budgets([len(part.evaluation.tables["points"]) if part.rows else 0 for part in ranked])
    pages = {
        f"{name}/{part.name}.html": _render(
            "dataset.html", context, index=f"../{name}.html", **_view(part, context, maximum)
        )
        for part, maximum in zip(ranked, budgets, strict=True)
    }
    entries = [
        {
            "part": part,
            "answer": dataset_answer(part),
            "address": (address := f"{name}/{part.name}.html"),
            "checksum": hashlib.sha256(pages[address].encode()).hexdigest(),
            "worst": error_tables.worst_slices(part.evaluation, leading_predictor(part)),
            "leader": leading_predictor(part),
            "seeds": split_answers(part)[0].seeds,
        }
        for part in ranked
    ]
    index = _render(
        "index.html",
        context,
        datasets=entries,
        hero=split_answers(ranked[0]) if ranked else [],
        set={"evaluation": ranked[0].evaluation, "part": ranked[0]} if ranked else None,
        small=[small_dataset_sentence(part) for part in context.datasets if not can_rank(part)],
        missing=[source for source in context.sources if source.get("status") != "present"],
        spec=select_spec_sources(context.sources),
        retrieval_text=retrieval_text,
    )
    return {f"{name}.html": index, **pages}


def _render(template: str, context: ReportContext, **data: Any) -> str:
    return (
        environment()
        .get_template(template)
        .render(
            style=_read_templates("report.css", "explorer.css", "hero.css"),
            script=_read_templates("report.js", "explorer.js"),
            context=context,
            budget=budget_sentence(context),
            baseline=BASELINE,
            number=error_tables.number,
            score=error_tables.score,
            rules=RULES,
            describe_split=describe_split,
            split_label=split_label,
            scenario_label=scenario_label,
            predictor_label=context.predictor_label,
            column_label=column_label,
            calibration_remarks=calibration_remarks,
            tolerance=TOLERANCE,
            axis_limit=axis_limit,
            axis_position=axis_position,
            **data,
        )
    )


def write_report(context: ReportContext, page: Path, card_folder: Path | None) -> None:
    """Write the index, the pages of datasets beside it, and the model cards where a folder for them is given.

    Raises: UserError when the index is no HTML file.
    """
    if page.suffix != ".html":
        raise UserError("--out must be a file of HTML", f"it is {page}", f"write {page}.html")
    index, *others = render_pages(context, page.stem).items()
    with atomic_folder(page.with_suffix("")) as folder:
        for path, text in others:
            write_text(folder / Path(path).name, text)
        record_digests(folder)
    write_text(page, index[1])
    if card_folder is not None:
        with atomic_folder(card_folder) as folder:
            for name, text in cards(context).items():
                write_text(folder / f"{name}.md", text)
            record_digests(folder)


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


def _view(part: DatasetPart, context: ReportContext, maximum: int) -> dict[str, Any]:
    """Return the data of the page of one dataset."""
    leader = leading_predictor(part)
    view = {
        "part": part,
        "evaluation": part.evaluation,
        "leader": leader,
        "several_targets": part.evaluation.tables["points"]["target"].nunique() > 1,
    }
    sections = [section for section in _sections(part, context, leader, maximum) if section.data]
    return {
        "name": part.name,
        "set": view,
        "hero": split_answers(part),
        "answer": dataset_answer(part),
        "sections": sections,
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
        *domain_sections(evaluation, leader),
        described_section(evaluation),
        Section(
            "published", "Comparison with published values", published_tables(evaluation, leader, part.predictor_label)
        ),
        Section("ablation", "Ablation", ablation_tables(evaluation, rows) if rows else None),
        Section("plots", "Plots", _inline_plots(part)),
        Section("leakage", "Leakage checks", leakage_section(part.leakage)),
        Section("quality", "Data quality", quality_section(part.quality) if part.quality else None),
        Section("model_card", "Model card", model_card(part, context)),
    ]


def domain_sections(evaluation: Evaluation, leader: str) -> list[Section]:
    """Return the sections of the tables that a domain has added to an evaluation."""
    return [
        domain.load(path)(evaluation, leader)
        for domain in domains()
        for name, path in domain.sections.items()
        if name in evaluation.tables
    ]


def _headline(part: DatasetPart) -> dict[str, object]:
    return {
        "table": error_tables.headline_grid(part.evaluation),
        "tasks": error_tables.task_grids(part.evaluation),
        "all_rows": error_tables.all_rows_grid(part.evaluation),
        "others": error_tables.other_metrics_grid(part.evaluation),
        "intervals": error_tables.interval_grid(part.evaluation),
        "paired": error_tables.paired_rows(part.evaluation),
    }


def _inline_plots(part: DatasetPart) -> list[tuple[object, Markup]]:
    return [
        (plot, Markup(inline_svg(plot.svg, prefix=f"{part.name}-{plot.name}", label=plot.caption)))
        for plot in part.plots
    ]


_CONTROL = ("control_error", "chance_error", "better", "shuffles")


def leakage_section(report: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return every leakage check with its numbers as a sentence; None without a report."""
    if report is None:
        return None
    checks = [{**check, "sentence": numbers_sentence(check)} for check in report["checks"]]
    return {"checks": checks, "findings": sum(len(check["findings"]) for check in checks)}


def numbers_sentence(check: Mapping[str, Any]) -> str:
    """Return the numbers of a check as a sentence; empty where it has none to show."""
    numbers = check["numbers"]
    if all(numbers.get(name) is not None for name in _CONTROL):
        control, chance, better, shuffles = (numbers[name] for name in _CONTROL)
        return (
            f"Trained on shuffled scores: mean absolute log error {control:.3f}; chance: {chance:.3f}; "
            f"better than chance in {better} of {shuffles} shuffles."
        )
    share = numbers.get("least_share_of_error_left")
    if share is not None:
        return f"Closest feature to the score: {numbers['by']} leaves {100 * share:.0f} % of the error of a constant."
    return ""
