"""The report: an index, and one page per dataset; no page loads anything."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from perfcast.evaluation import AVERAGE, BASELINE, Evaluation
from perfcast.evaluation.evaluation_tables import MIN_ENTITIES
from perfcast.report import TEMPLATES, error_tables
from perfcast.report.plots.drawing import inline_svg
from perfcast.report.report_context import DatasetPart, ReportContext, name_machines
from perfcast.report.text_tables import (
    Cell,
    Section,
    TextTable,
    count,
    folds,
    largest_errors,
    leakage_section,
    number,
    quality_tables,
    text_section,
)
from perfcast.schema.display_names import metric_label
from perfcast.splits import describe_split, scenario_label, split_label
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_folder, write_text
from perfcast.utils.result_digests import record_digests


def render_pages(context: ReportContext, name: str = "report") -> dict[str, str]:
    """Return the pages of the report by their path; equal contexts give equal texts.

    The index `<name>.html` links `<name>/<dataset>.html` with its SHA-256. Style, script, points and plots are inside.
    A dataset that is too small to rank predictors has a paragraph in the index and no page.
    """
    ranked = [part for part in context.datasets if part.evaluation.can_rank]
    pages = {f"{name}/{part.name}.html": _dataset_page(part, context, f"../{name}.html") for part in ranked}
    entries = [
        {
            "part": part,
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
        small=[small_dataset_sentence(part) for part in context.datasets if not part.evaluation.can_rank],
        missing=[source for source in context.sources if source.get("status") != "present"],
        spec=[source for source in context.sources if "SPEC" in str(source.get("license", ""))],
        files=[_source_files(source.get("files") or []) for source in context.sources],
        experiment=_experiment_tables(context),
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
    """Return a template with data, and the functions that templates call."""
    functions = {function.__name__: function for function in (count, folds, number, share, split_answers, split_label)}
    return TEMPLATES.get_template(template).render(
        **functions,
        context=context,
        baseline=BASELINE,
        predictor_label=context.datasets[0].evaluation.label,
        tolerance=error_tables.TOLERANCE,
        **data,
    )


def _dataset_page(part: DatasetPart, context: ReportContext, index: str) -> str:
    return _render(
        "dataset.html",
        context,
        **vars(part),
        index=index,
        part=part,
        leader=part.leader,
        hero=split_answers(part),
        sections=[section for section in report_sections(part, context) if section.data],
    )


@dataclass(frozen=True)
class SplitAnswer:
    """Answer of one split: the metrics of the leader and of simple predictors, and the largest error of all splits.

    `texts` are the leader's median error, coverage, width and interval score, "" where there is none.
    """

    part: DatasetPart
    split: str
    title: str
    results: Sequence[tuple[str, pd.Series]]
    texts: Mapping[str, str]
    longest: float


def split_answers(part: DatasetPart) -> list[SplitAnswer]:
    """Return the answers of all ranked splits, in the order of the evaluation: the hardest is first."""
    evaluation = part.evaluation
    leader = part.leader
    names = [leader, *(name for name in ("power_law", BASELINE) if name != leader and name in evaluation.predictors)]
    rows = {
        split: [(name, row) for name in names if (row := evaluation.value(split, name)) is not None]
        for split in evaluation.ranked_splits
        if evaluation.value(split, leader) is not None
    }
    longest = max((np.fmax(row["value"], row["high"]) for results in rows.values() for _, row in results), default=1.0)
    answers = []
    for split, results in rows.items():
        metrics = (evaluation.error_metrics[1], "coverage", "width", "interval_score")
        values = [evaluation.value(split, leader, metric=name) for name in metrics]
        texts = ["" if row is None else number(row["value"]).replace("–", "") for row in values]
        title = scenario_label(split) or split_label(split)
        by_name = dict(zip(("median", *metrics[1:]), texts, strict=True))
        answers.append(SplitAnswer(part, split, title[0].upper() + title[1:], results, by_name, longest))
    return answers


def share(value: float, longest: float) -> float:
    """Return the length of a bar in % of the longest, 0 of no number."""
    return round(min(100.0, 100 * value / longest), 2) if np.isfinite(value) else 0.0


def small_dataset_sentence(part: DatasetPart) -> str:
    """Return the paragraph on a dataset that is too small to rank predictors."""
    evaluation = part.evaluation
    texts = []
    for split in evaluation.ranked_splits:
        rows = [row for name in evaluation.predictors if (row := evaluation.value(split, name)) is not None]
        if not rows:
            continue
        low, high = (choose(float(row["value"]) for row in rows) for choose in (min, max))
        tested, entities, seeds = (int(rows[0][name]) for name in ("rows", "entities", "seeds"))
        texts.append(
            f"On the {split_label(split)} ({split}, {count(seeds, 'seed')}) it has {count(tested, 'test result')} of "
            f"{count(entities, 'machine')}; the mean errors of its {len(rows)} predictors lie between {number(low)} "
            f"and {number(high)} {evaluation.error_unit}, without a confidence interval."
        )
    return (
        f"{part.title}: too small to rank predictors, which needs {MIN_ENTITIES} tested machines. {' '.join(texts)} "
        f"The tables are in evaluation/{part.name}, the model card is model_cards/{part.name}.md."
    )


def report_sections(part: DatasetPart, context: ReportContext) -> list[Section]:
    """Return the sections of one dataset in their order."""
    evaluation = part.evaluation
    leader = part.leader
    errors = largest_errors(evaluation, name_machines(part.table), leader) if part.table else []
    return [
        Section("headline", "Errors of every predictor", _headline(evaluation)),
        Section("largest_errors", "Largest errors", errors),
        Section(
            "interval_calibration",
            "Calibration of prediction intervals",
            error_tables.calibration_tables(evaluation, leader),
        ),
        error_tables.described_section(evaluation),
        Section("plots", "Plots", _inline_plots(part)),
        leakage_section(part.leakage),
        text_section("quality", "Data quality", "", quality_tables(part.quality) if part.quality else []),
        Section("model_card", "Model card", model_card(part, context)),
    ]


def _headline(evaluation: Evaluation) -> dict[str, list[TextTable]]:
    errors, *folded = error_tables.metric_tables(evaluation)
    return {"errors": [errors], "folded": [*folded, *error_tables.paired_tables(evaluation)]}


def _inline_plots(part: DatasetPart) -> list[tuple[object, Markup]]:
    return [
        (plot, Markup(inline_svg(svg, prefix=f"{part.name}-{plot.name}", label=plot.caption)))
        for plot, svg in part.plots
    ]


def _source_files(listed: Sequence[dict[str, Any]]) -> list[TextTable]:
    lines = [[file["name"], f"{file['bytes']:,}", file["sha256"]] for file in listed]
    fold = f"{count(len(lines), 'file')} with checksums"
    return [TextTable("Files", "", ["file", "bytes", "SHA-256"], lines, words=[2], fold=fold)] if lines else []


def _experiment_tables(context: ReportContext) -> list[TextTable]:
    """Return the parameters, and the versions and checksums."""
    values = [
        (key, ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
        for key, value in context.params.items()
    ]
    versions = [*context.environment.items(), *context.digests.items()]
    fold = "Parameters of the experiment"
    apart = "Environment and checksums"
    return [
        TextTable("Parameters", "", ["parameter", "value"], values, words=[1], fold=fold, open=True),
        TextTable("Environment", "", ["name", "version or SHA-256"], versions, words=[1], fold=apart),
    ]


@dataclass(frozen=True)
class CardSection:
    """One part of a card: a heading, sentences, and a table."""

    title: str
    lines: tuple[str, ...]
    table: TextTable | None = None


def model_card(part: DatasetPart, context: ReportContext) -> list[CardSection]:
    """Return the card of the champion of a dataset, section by section; empty without a champion."""
    about = part.champion
    if not about or about.get("predictor") not in part.evaluation.predictors:
        return []
    evaluation = part.evaluation
    name = str(about["predictor"])
    rows = evaluation.metrics[evaluation.metrics["split"].isin(evaluation.ranked_splits)]
    rows = rows[(rows["predictor"] == name) & (rows["task"] == AVERAGE) & (rows["metric"] == "coverage")]
    given = {"part": part, "about": about, "context": context, "coverage": rows["value"].dropna(), "number": number}
    sections = TEMPLATES.get_template("model_card.md").render(**given).split("## ")[1:]
    return [
        CardSection(title, tuple(lines), _metric_table(evaluation, name) if title == "Evaluation" else None)
        for title, *lines in (section.strip().split("\n- ") for section in sections)
    ]


def cards(context: ReportContext) -> dict[str, str]:
    """Return the model card of every champion as Markdown, by dataset."""
    return {part.name: markdown(part, model_card(part, context)) for part in context.datasets}


def markdown(part: DatasetPart, sections: Sequence[CardSection]) -> str:
    """Return a card as Markdown; without sections, the reason why there is none."""
    if not sections:
        return f"# Model card: {part.title}\n\nNo champion of {part.name} was evaluated.\n"
    text = [f"# Model card: {part.title}", ""]
    for section in sections:
        text += [f"## {section.title}", ""]
        text += [f"- {line}" for line in section.lines]
        if section.lines:
            text.append("")
        if section.table:
            head = section.table.headings
            text += [_cells(head), _cells(["---"] * len(head)), *map(_cells, section.table.lines), ""]
    return "\n".join(text).rstrip() + "\n"


def _cells(cells: Sequence[str | Cell]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _metric_table(evaluation: Evaluation, name: str) -> TextTable:
    mean, median = evaluation.error_metrics
    head = (
        "split",
        "test rows",
        metric_label(mean),
        "95 % interval",
        metric_label(median),
        BASELINE,
        f"{100 * evaluation.level:g} % coverage",
        "median width",
        "interval score",
    )
    lines = []
    for split in evaluation.ranked_splits:
        if (error := evaluation.value(split, name)) is None:
            continue
        interval = f"{number(error['low'])} to {number(error['high'])}" if np.isfinite(error["low"]) else "none"
        cells = [(name, median), (BASELINE, mean), *((name, each) for each in ("coverage", "width", "interval_score"))]
        rows = [evaluation.value(split, predictor, metric=metric) for predictor, metric in cells]
        texts = ["–" if row is None else number(row["value"]) for row in rows]
        lines.append((split, describe_split(split), number(error["value"]), interval, *texts))
    return TextTable("Evaluation", "Evaluation: errors and widths in %", head, lines, words=[1])
