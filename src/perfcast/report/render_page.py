"""The report as one HTML page that loads nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from perfcast.evaluation import BASELINE
from perfcast.report import error_tables
from perfcast.report.error_tables import number, published_tables
from perfcast.report.explorer import explorer_view, point_budgets
from perfcast.report.largest_errors import RULES, axis_limit, axis_position, largest_errors, release_errors
from perfcast.report.model_card import cards, model_card
from perfcast.report.plots.drawing import inline_svg
from perfcast.report.report_context import DatasetPart, ReportContext
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
from perfcast.schema.display_names import column_label, replace_underscores
from perfcast.splits import describe_split, split_label
from perfcast.utils.io import atomic_folder, write_text


@dataclass(frozen=True)
class Section:
    """One section of a dataset: its title, and the data of its template `<name>.html`."""

    name: str
    title: str
    data: Any


def render(context: ReportContext) -> str:
    """Return the report; equal contexts give equal text. Style, script, points and plots are inside."""
    points = point_budgets([len(part.evaluation.points) if part.rows else 0 for part in context.datasets])
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
        predictor_label=context.predictor_label,
        column_label=column_label,
        tolerance=TOLERANCE,
        axis_limit=axis_limit,
        axis_position=axis_position,
    )


def write_report(context: ReportContext, page: Path, card_folder: Path | None) -> None:
    """Write the page, and the model card of every dataset where a folder for them is given."""
    write_text(page, render(context))
    if card_folder is not None:
        with atomic_folder(card_folder) as folder:
            for name, text in cards(context).items():
                write_text(folder / f"{name}.md", text)


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
        Section(
            "published", "Comparison with published values", published_tables(evaluation, leader, part.predictor_label)
        ),
        Section("ablation", "Ablation", ablation_tables(evaluation, rows) if rows else None),
        Section("plots", "Plots", _inline_plots(part)),
        Section("leakage", "Leakage checks", leakage_section(part.leakage)),
        Section("quality", "Data quality", quality_section(part.quality) if part.quality else None),
        Section("model_card", "Model card", model_card(part, context)),
    ]


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


_SHOWN_BY_COLUMNS = frozenset({"missing", "ranges"})
"""Details that the table of columns shows."""
_SHARES = ("coverage", "share", "missing")


def quality_section(quality: Mapping[str, Any]) -> dict[str, object]:
    """Return the counts of rows, the columns, and the details of a dataset."""
    return {"rows": row_counts(quality), "columns": column_lines(quality), "details": detail_tables(quality)}


def row_counts(quality: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Return (state, reason, rows) of all input rows: kept, merged by rule, rejected by reason."""
    lines = [("read", "", int(quality["rows_in"])), ("kept", "", int(quality["rows_kept"]))]
    if excluded := int(quality.get("rows_excluded", 0)):
        lines.append(("of these", "excluded from the evaluation: the score cannot be that of the machine", excluded))
    lines += [
        ("merged", replace_underscores(rule), int(count)) for rule, count in sorted(quality.get("merged", {}).items())
    ]
    return lines + [
        ("rejected", replace_underscores(why), int(count)) for why, count in sorted(quality.get("rejected", {}).items())
    ]


def column_lines(quality: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return one line per column: name, unit, share missing, distinct values, smallest and largest."""
    lines = []
    for name, entry in quality.get("columns", {}).items():
        low, high = entry.get("min"), entry.get("max")
        lines.append(
            {
                "name": name,
                "unit": str(entry.get("unit", "")),
                "missing": f"{100 * entry['missing']:.1f} %",
                "unique": f"{entry['unique']:,}",
                "range": "" if low is None else f"{_plain(low)} … {_plain(high)}",
            }
        )
    return lines


def detail_tables(quality: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return quality facts of the dataset as titled two-column tables, nested names joined."""
    tables = []
    facts = []
    for name, value in quality.get("details", {}).items():
        if name in _SHOWN_BY_COLUMNS:
            continue
        lines = [(replace_underscores(path), _value(path, leaf)) for path, leaf in _leaf_values(value, name)]
        if isinstance(value, Mapping):
            if lines:
                tables.append(
                    (
                        replace_underscores(name),
                        [(label.removeprefix(replace_underscores(name)).strip(" ·"), text) for label, text in lines],
                    )
                )
        else:
            facts += lines
    return [("facts", facts), *tables] if facts else tables


def _leaf_values(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaf_values(inner, f"{path} · {key}")
    else:
        yield path, value


def _value(path: str, value: Any) -> str:
    if isinstance(value, float) and 0 <= value <= 1 and any(word in path for word in _SHARES):
        return f"{100 * value:.1f} %"
    if isinstance(value, list | tuple):
        return ", ".join(_plain(item) for item in value)
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return "" if value is None else str(value)


_CONTROL = ("control_mape", "chance_mape", "difference_low", "difference_high")


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
        control, chance, low, high = (float(numbers[name]) for name in _CONTROL)
        return (
            f"Trained on shuffled scores: MAPE {number(control)} %; chance: {number(chance)} % "
            f"(difference {low:+.2f} to {high:+.2f})."
        )
    share = numbers.get("least_share_of_error_left")
    if share is not None:
        return f"Closest feature to the score: {numbers['by']} leaves {100 * share:.0f} % of the error of a constant."
    return ""
