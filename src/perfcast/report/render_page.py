"""The report: an index, and one page per dataset; no page loads anything."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from perfcast.domain import domains
from perfcast.evaluation import BASELINE, Evaluation
from perfcast.report import error_tables
from perfcast.report.answers import (
    budget_sentence,
    can_rank,
    dataset_answer,
    leading_predictor,
    retrieval_text,
    small_dataset_sentence,
    split_answers,
)
from perfcast.report.error_tables import published_tables
from perfcast.report.explorer import MAX_POINTS, explorer_data
from perfcast.report.interval_tables import TOLERANCE, calibration_data
from perfcast.report.model_card import cards, model_card
from perfcast.report.plots.drawing import inline_svg
from perfcast.report.report_context import DatasetPart, ReportContext
from perfcast.report.row_tables import ablation_tables, largest_errors, release_tables
from perfcast.report.text_tables import (
    Section,
    TextTable,
    count,
    folds,
    leakage_section,
    number,
    quality_tables,
    text_section,
)
from perfcast.schema.display_names import column_label
from perfcast.splits import split_label
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, write_text
from perfcast.utils.result_digests import record_digests


def render_pages(context: ReportContext, name: str = "report") -> dict[str, str]:
    """Return the pages of the report by their path; equal contexts give equal texts.

    The index `<name>.html` links `<name>/<dataset>.html` with its SHA-256. Style, script, points and plots are inside.
    A dataset that is too small to rank predictors has a paragraph in the index and no page.
    """
    ranked = [part for part in context.datasets if can_rank(part)]
    every = max(1, -(-sum(len(part.evaluation.tables["points"]) for part in ranked) // MAX_POINTS))
    pages = {f"{name}/{part.name}.html": _dataset_page(part, context, f"../{name}.html", every) for part in ranked}
    entries = [
        {
            "part": part,
            "answer": dataset_answer(part),
            "address": (address := f"{name}/{part.name}.html"),
            "checksum": hashlib.sha256(pages[address].encode()).hexdigest(),
        }
        for part in ranked
    ]
    index = _render(
        "index.html",
        context,
        datasets=entries,
        hero=split_answers(ranked[0]) if ranked else [],
        evaluation=ranked[0].evaluation if ranked else None,
        worst=[table for part in ranked for table in _worst_slices(part)],
        small=[small_dataset_sentence(part) for part in context.datasets if not can_rank(part)],
        missing=[source for source in context.sources if source.get("status") != "present"],
        spec=[source for source in context.sources if "SPEC" in str(source.get("license", ""))],
        files=[_source_files(source.get("files") or []) for source in context.sources],
        experiment=_experiment_tables(context),
        retrieval_text=retrieval_text,
    )
    return {f"{name}.html": index, **pages}


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


def _render(template: str, context: ReportContext, **data: Any) -> str:
    """Return a template with data; text of others is escaped."""
    environment = Environment(
        loader=PackageLoader("perfcast.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folder = files("perfcast.report") / "templates"
    style, script = (Markup((folder / name).read_text("utf-8").strip()) for name in ("report.css", "report.js"))
    return environment.get_template(template).render(
        style=style,
        script=script,
        context=context,
        budget=budget_sentence(context),
        baseline=BASELINE,
        predictor_label=context.predictor_label,
        number=number,
        split_label=split_label,
        folds=folds,
        tolerance=TOLERANCE,
        **data,
    )


def _dataset_page(part: DatasetPart, context: ReportContext, index: str, every: int) -> str:
    return _render(
        "dataset.html",
        context,
        index=index,
        name=part.name,
        title=part.title,
        evaluation=part.evaluation,
        leader=leading_predictor(part),
        champion=part.champion,
        hero=split_answers(part),
        answer=dataset_answer(part),
        sections=[section for section in report_sections(part, context, every) if section.data],
    )


def report_sections(part: DatasetPart, context: ReportContext, every: int = 1) -> list[Section]:
    """Return the sections of one dataset in their order, with every k-th row in its chart."""
    evaluation, rows, label = part.evaluation, part.rows, part.predictor_label
    leader = leading_predictor(part)
    noise = error_tables.noise_tables(evaluation)
    return [
        Section("headline", "Errors of every predictor", _headline(part)),
        Section("explorer", "Predictions of single results", explorer_data(part, leader, every)),
        Section("largest_errors", "Largest errors", largest_errors(evaluation, rows, leader, label) if rows else []),
        Section("releases", "Errors by product release", release_tables(evaluation, rows, leader) if rows else []),
        Section("interval_calibration", "Calibration of prediction intervals", calibration_data(evaluation, leader)),
        *domain_sections(evaluation, leader),
        error_tables.described_section(evaluation),
        Section("published", "Comparison with published values", published_tables(evaluation, leader, label)),
        text_section("ablation", "Ablation", "", ablation_tables(evaluation, rows, label) if rows else []),
        Section("plots", "Plots", _inline_plots(part)),
        leakage_section(part.leakage),
        text_section("quality", "Data quality", "", quality_tables(part.quality, noise) if part.quality else []),
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


def _headline(part: DatasetPart) -> dict[str, list[TextTable]]:
    evaluation = part.evaluation
    folded = [
        *error_tables.task_tables(evaluation),
        error_tables.other_metrics_table(evaluation),
        *error_tables.interval_tables(evaluation),
        *error_tables.paired_tables(evaluation, part.predictor_label),
    ]
    errors, all_rows = [error_tables.error_table(evaluation)], error_tables.all_rows_tables(evaluation)
    return {"errors": errors, "all_rows": all_rows, "folded": folded}


def _inline_plots(part: DatasetPart) -> list[tuple[object, Markup]]:
    return [
        (plot, Markup(inline_svg(plot.svg, prefix=f"{part.name}-{plot.name}", label=plot.caption)))
        for plot in part.plots
    ]


def _worst_slices(part: DatasetPart) -> list[TextTable]:
    evaluation, leader, label = part.evaluation, leading_predictor(part), part.predictor_label
    worst = error_tables.worst_slices(evaluation, leader)
    seeds = count(split_answers(part)[0].seeds, "seed")
    caption = (
        f"{part.title}: largest errors of {label(leader)} by slice of at least 20 rows, {seeds}; mean error of all "
        f"tasks together, in {evaluation.error_unit}"
    )
    lines = [
        [split_label(row["split"]), column_label(row["slice"]), row["value"], number(row["error"]), f"{row['rows']:,}"]
        for row in worst
    ]
    headings = ["split", "slice", "value", "mean error", "rows"]
    return [TextTable("Largest errors", caption, headings, lines, words=[1, 2])] if worst else []


def _source_files(listed: Sequence[dict[str, Any]]) -> list[TextTable]:
    lines = [[file["name"], f"{file['bytes']:,}", file["sha256"]] for file in listed]
    fold = f"{count(len(lines), 'file')} with checksums"
    return [TextTable("Files", "", ["file", "bytes", "SHA-256"], lines, words=[2], fold=fold)] if lines else []


def _experiment_tables(context: ReportContext) -> list[TextTable]:
    """Return the parameters, and the versions and checksums."""
    values = {
        key: ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for key, value in context.params.items()
    }
    return [
        TextTable(
            "Parameters",
            "",
            ["parameter", "value"],
            list(values.items()),
            words=[1],
            fold="Parameters of the experiment",
            open=True,
        ),
        TextTable(
            "Environment",
            "",
            ["name", "version or SHA-256"],
            [*context.environment.items(), *context.digests.items()],
            words=[1],
            fold="Environment and checksums",
        ),
    ]
