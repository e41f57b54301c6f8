"""Rankings, what-if grids and nearest machines as text for a terminal."""

from __future__ import annotations

from perfcast.decisions.criteria import Output
from perfcast.decisions.nearest_machines import NearestResults, SimilarResult
from perfcast.decisions.ranking import Ranked, Ranking
from perfcast.decisions.what_if import Grid
from perfcast.inference.prediction import Estimate
from perfcast.utils.terminal_tables import (
    drop_empty_columns,
    fits,
    format_interval,
    format_number,
    format_plain,
    render_table,
    wrap_text,
)

_MAX_IMPOSSIBLE = 12
"""Impossible combinations that are listed."""
_LIKE = "hypothetical, like"
_DIFFERENCES_WIDTH, _MIN_DIFFERENCES_WIDTH, _OTHER_COLUMNS_WIDTH = 76, 30, 45


def format_ranking(ranking: Ranking, width: int | None = None) -> str:
    """Return the candidates in a table, the best first, and notes under it."""
    header = ["rank", "name", "score", f"{100 * ranking.level:g} % interval", *ranking.targets]
    header += ["all targets"] if len(ranking.targets) > 1 else []
    header += [
        "first",
        "watts",
        "price",
        "cost",
        "per score-year",
        *([ranking.by, "its interval"] if _has_own_column(ranking) else []),
        "trust",
    ]
    rows = [_ranked_cells(candidate, ranking) for candidate in ranking.candidates]
    above = sum(candidate.sure is not False for candidate in ranking.candidates)
    if ranking.sure is not None and above < len(rows):
        line = f"does not reach the {'targets' if len(ranking.targets) > 1 else 'target'} (< {100 * ranking.sure:g} %)"
        rows.insert(above, ["", line, *[""] * (len(header) - 2)])
    tables = [render_table(*drop_empty_columns(header, rows), width)] if rows else []
    refused = [wrap_text(f"{candidate.name}: refused, {candidate.message}", width) for candidate in ranking.refused]
    return "\n".join([*tables, *refused, *_format_notes(_explain_order(ranking), width)])


def _explain_order(ranking: Ranking) -> tuple[str, ...]:
    """Return lines on the score, on an order from the lowest, and on the column `first` where it is shown."""
    order = [f"order: the lowest {ranking.by} first"] if ranking.ascending else []
    notes = (_explain_score(ranking), *order, *ranking.notes)
    if not ranking.candidates or ranking.candidates[0].first_share is None:
        return notes
    first = ranking.candidates[0]
    among = " of those that reach the target" if ranking.targets else ""
    share = f"{first.name} is first{among} in {format_percent(first.first_share)} of the draws of all scores"
    return (*notes, f"first: {share}, their errors correlated as in backtests")


def _format_notes(notes: tuple[str, ...], width: int | None) -> list[str]:
    return [wrap_text(f"note: {note}", width) for note in notes]


def _ranked_cells(candidate: Ranked, ranking: Ranking) -> list[str]:
    interval = format_interval(candidate.score_low, candidate.score_high)
    cells = [str(candidate.rank), candidate.name, format_number(candidate.score), interval]
    cells += [format_percent(share) for share in candidate.probabilities]
    if len(ranking.targets) > 1:
        ends = dict.fromkeys(
            (format_percent(candidate.joint_probability_min), format_percent(candidate.joint_probability_max))
        )
        cells.append(" to ".join(ends))
    cells.append(format_percent(candidate.first_share))
    mixed = not all(other.watts_assumed for other in ranking.candidates)
    mark = "~" if candidate.watts_assumed and mixed else ""
    cells.append("" if candidate.watts is None else f"{mark}{format_plain(candidate.watts)}")
    cells.append("" if candidate.price is None else format_plain(candidate.price))
    differs = any(other.cost != other.price for other in ranking.candidates)
    cells.append("" if candidate.cost is None or not differs else format_number(candidate.cost))
    cells.append("" if candidate.cost_per_score_year is None else format_number(candidate.cost_per_score_year))
    if _has_own_column(ranking):
        cells += [format_number(candidate.value), format_interval(candidate.value_low, candidate.value_high)]
    return [*cells, candidate.trust]


def _has_own_column(ranking: Ranking) -> bool:
    """Return whether no other column shows the criterion."""
    shown = ranking.by in ("score", "cost", "price", "watts", "watt")
    return not shown and not (ranking.by == "probability" and len(ranking.targets) == 1)


def _explain_score(ranking: Ranking) -> str:
    unit = f" ({ranking.unit})" if ranking.unit else ""
    if len(ranking.weights) == 1:
        return f"score: {next(iter(ranking.weights))}{unit}"
    equal = len({round(weight, 12) for weight in ranking.weights.values()}) == 1
    parts = [name if equal else f"{name} {weight:.2g}" for name, weight in ranking.weights.items()]
    return f"score: {'' if equal else 'weighted '}geometric mean of {', '.join(parts)}{unit}"


def format_percent(share: float | None) -> str:
    """Return a probability in whole percent; nearly certain ones as < 1 % or > 99 %."""
    if share is None:
        return ""
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def format_grid(grid: Grid, width: int | None = None) -> str:
    """Return the combinations in a table, the impossible ones with their reasons, and notes."""
    table = _format_wide(grid, width)
    parts = [table if fits(table, width) else _format_long(grid, width)]
    impossible = [combination for combination in grid.combinations if combination.violation]
    if impossible:
        parts.append(f"cannot be ({len(impossible)} of {len(grid.combinations)} combinations)")
        rows = [[*combination.values.values(), combination.violation] for combination in impossible[:_MAX_IMPOSSIBLE]]
        parts.append(render_table([*grid.names, "why"], rows, width))
    if len(impossible) > _MAX_IMPOSSIBLE:
        parts.append(f"  and {len(impossible) - _MAX_IMPOSSIBLE} more, see --csv")
    return "\n".join([*parts, *_format_notes(grid.notes, width)])


def _format_wide(grid: Grid, width: int | None) -> str:
    """Return one row per combination, with two columns per output."""
    titles = [title for output in grid.outputs.values() for title in (output, _interval_title(grid))]
    derived = list(dict.fromkeys(value.name for each in grid.possible for value in each.derived))
    rows = []
    for combination in grid.possible:
        estimates = {Output.of(estimate): estimate for estimate in combination.estimates}
        cells = list(combination.values.values())
        for output in grid.outputs:
            cells += _estimate_cells(estimates[output]) if output in estimates else ["", ""]
        values = {value.name: format_number(value.median) for value in combination.derived}
        cells += [values.get(name, "") for name in derived]
        lowest = min(combination.estimates, key=lambda estimate: estimate.in_domain_score or 0.0)
        rows.append([*cells, lowest.trust, combination.base_cpu])
    return render_table(*drop_empty_columns([*grid.names, *titles, *derived, "trust", _LIKE], rows), width)


def _format_long(grid: Grid, width: int | None) -> str:
    """Return one row per combination and output."""
    rows = []
    for combination in grid.possible:
        for estimate in combination.estimates:
            cells = [*combination.values.values(), grid.outputs[Output.of(estimate)]]
            rows.append(
                [
                    *cells,
                    *_estimate_cells(estimate),
                    estimate.trust,
                    combination.base_cpu,
                ]
            )
        for value in combination.derived:
            interval = format_interval(value.low, value.high)
            rows.append([*combination.values.values(), value.name, format_number(value.median), interval, "", ""])
    header = [*grid.names, "task", "estimate", _interval_title(grid), "trust", _LIKE]
    return render_table(*drop_empty_columns(header, rows), width)


def _interval_title(grid: Grid) -> str:
    return f"{100 * grid.level:g} % interval"


def _estimate_cells(estimate: Estimate) -> list[str]:
    return [format_number(estimate.median), format_interval(estimate.low, estimate.high)]


def format_nearest(machine: NearestResults, width: int | None = None) -> str:
    """Return the measured results like one machine, nearest first by task, and under each its differences."""
    header = ["task", "score", "distance", "measured machine", "published"]
    columns = _DIFFERENCES_WIDTH if width is None else max(_MIN_DIFFERENCES_WIDTH, width - _OTHER_COLUMNS_WIDTH)
    rows = []
    for position, each in enumerate(machine.similar):
        first = position == 0 or machine.similar[position - 1].task != each.task
        near = each.measured
        differences = wrap_text(f"  {near.result}: {_format_differences(each)}", columns)
        name = f"{near.machine}\n{differences}"
        cells = [
            each.task if first else "",
            "-" if near.score is None else format_number(near.score),
            f"{near.distance:.3f}",
            name,
        ]
        rows.append([*cells, near.published])
    meaning = "distance: the differences add that much to the error of a prediction, 0.05 about 5 %; 0: no difference"
    marks = "yours -> theirs: ~ is an assumed value of yours, ? an unknown one"
    notes = _format_notes((*machine.notes, meaning, marks), width)
    return "\n".join([machine.machine, render_table(header, rows, width), *notes])


def _format_differences(similar: SimilarResult) -> str:
    groups: dict[str, list[str]] = {}
    for each in similar.differences:
        described = f"{'~' if each.assumed else ''}{_format_cell(each.described)}"
        groups.setdefault(each.group, []).append(f"{each.column} {described} -> {_format_cell(each.measured)}")
    listed = "; ".join(f"{group}: {', '.join(columns)}" for group, columns in groups.items())
    more = similar.differing - len(similar.differences)
    return (listed or "nothing differs") + (f"; {more} more" if more else "")


def _format_cell(value: float | str | None) -> str:
    if value is None:
        return "?"
    return format_plain(value) if isinstance(value, float) else value
