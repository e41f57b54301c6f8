"""Answers as people read them: tables and notes for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perfcast.decisions.criteria import Output
from perfcast.decisions.machine_comparison import Comparison
from perfcast.decisions.nearest_machines import NearestMachines, NearestResults, SimilarResult
from perfcast.decisions.ranking import Ranked, Ranking
from perfcast.decisions.what_if import Combination, Grid
from perfcast.inference.prediction import DerivedValue, Estimate
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
_DISTINCT = "\0"
"""Character after which the name of a column is not shown: titles of several columns may be equal."""


def _format_table(rows: Iterable[Mapping[str, str]], width: int | None) -> str:
    """Return rows, cells by the name of their column, as a table without empty columns."""
    listed = list(rows)
    names = list(dict.fromkeys(name for row in listed for name in row))
    titles = [name.partition(_DISTINCT)[0] for name in names]
    cells = [[row.get(name, "") for name in names] for row in listed]
    return render_table(*drop_empty_columns(titles, cells), width)


def _format_notes(notes: Iterable[str], width: int | None) -> list[str]:
    return [wrap_text(f"note: {note}", width) for note in notes]


def _name_interval(level: float) -> str:
    return f"{100 * level:g} % interval"


def format_percent(share: float | None) -> str:
    """Return a probability in whole percent; nearly certain ones as < 1 % or > 99 %."""
    if share is None:
        return ""
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def format_ranking(ranking: Ranking, width: int | None = None) -> str:
    """Return the candidates in a table, the best first, and notes under it."""
    rows = [_ranked_cells(candidate, ranking) for candidate in ranking.candidates]
    above = sum(candidate.sure is not False for candidate in ranking.candidates)
    if ranking.sure is not None and above < len(rows):
        targets = "targets" if len(ranking.targets) > 1 else "target"
        rows.insert(above, {"name": f"does not reach the {targets} (< {100 * ranking.sure:g} %)"})
    tables = [_format_table(rows, width)] if rows else []
    refused = [wrap_text(f"{candidate.name}: refused, {candidate.message}", width) for candidate in ranking.refused]
    notes = [_explain_score(ranking), *([f"order: the lowest {ranking.by} first"] if ranking.ascending else [])]
    notes += ranking.notes
    return "\n".join([*tables, *refused, *_format_notes(notes, width)])


def _ranked_cells(candidate: Ranked, ranking: Ranking) -> dict[str, str]:
    cells = {
        "rank": str(candidate.rank),
        "name": candidate.name,
        "score": format_number(candidate.score),
        _name_interval(ranking.level): format_interval(candidate.score_low, candidate.score_high),
        **dict(zip(ranking.targets, map(format_percent, candidate.probabilities), strict=True)),
    }
    if len(ranking.targets) > 1:
        ends = map(format_percent, (candidate.joint_probability_min, candidate.joint_probability_max))
        cells["all targets"] = " to ".join(dict.fromkeys(ends))
    mixed = not all(other.watts_assumed for other in ranking.candidates)
    differs = any(other.cost != other.price for other in ranking.candidates)
    watts, price, cost, per_year = candidate.watts, candidate.price, candidate.cost, candidate.cost_per_score_year
    cells |= {
        "watts": "" if watts is None else f"{'~' * (candidate.watts_assumed and mixed)}{format_plain(watts)}",
        "price": "" if price is None else format_plain(price),
        "cost": "" if cost is None or not differs else format_number(cost),
        "per score-year": "" if per_year is None else format_number(per_year),
    }
    shown = ranking.by in ("score", "cost", "price", "watts", "watt")
    if not shown and not (ranking.by == "probability" and len(ranking.targets) == 1):  # no other column shows it
        cells |= {ranking.by: format_number(candidate.value)}
        cells |= {"its interval": format_interval(candidate.value_low, candidate.value_high)}
    return {**cells, "trust": candidate.trust}


def _explain_score(ranking: Ranking) -> str:
    unit = f" ({ranking.unit})" if ranking.unit else ""
    if len(ranking.weights) == 1:
        return f"score: {next(iter(ranking.weights))}{unit}"
    equal = len({round(weight, 12) for weight in ranking.weights.values()}) == 1
    parts = [name if equal else f"{name} {weight:.2g}" for name, weight in ranking.weights.items()]
    return f"score: {'' if equal else 'weighted '}geometric mean of {', '.join(parts)}{unit}"


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
    derived = dict.fromkeys((value.name for each in grid.possible for value in each.derived), "")
    rows = []
    for combination in grid.possible:
        estimates = {Output.of(estimate): estimate for estimate in combination.estimates}
        cells = dict(combination.values)
        for output, title in grid.outputs.items():
            shown = _estimate_cells(estimates[output]) if output in estimates else ("", "")
            cells |= zip((title, f"{_name_interval(grid.level)}{_DISTINCT}{title}"), shown, strict=True)
        cells |= derived | {value.name: format_number(value.median) for value in combination.derived}
        lowest = min(combination.estimates, key=lambda estimate: estimate.in_domain_score or 0.0)
        rows.append({**cells, "trust": lowest.trust, _LIKE: combination.base_entity})
    return _format_table(rows, width)


def _format_long(grid: Grid, width: int | None) -> str:
    """Return one row per combination and output."""

    def name_cells(combination: Combination, task: str, value: Estimate | DerivedValue) -> dict[str, str]:
        estimate, interval = _estimate_cells(value)
        return {**combination.values, "task": task, "estimate": estimate, _name_interval(grid.level): interval}

    rows = []
    for combination in grid.possible:
        for each in combination.estimates:
            cells = name_cells(combination, grid.outputs[Output.of(each)], each)
            rows.append({**cells, "trust": each.trust, _LIKE: combination.base_entity})
        rows += [name_cells(combination, value.name, value) for value in combination.derived]
    return _format_table(rows, width)


def _estimate_cells(value: Estimate | DerivedValue) -> tuple[str, str]:
    return format_number(value.median), format_interval(value.low, value.high)


def format_nearest(nearest: NearestMachines, width: int | None = None) -> str:
    """Return the measured results like every machine, nearest first by task, and under each its differences."""
    return "\n\n".join(_format_results(machine, width) for machine in nearest.machines)


def _format_results(machine: NearestResults, width: int | None) -> str:
    columns = _DIFFERENCES_WIDTH if width is None else max(_MIN_DIFFERENCES_WIDTH, width - _OTHER_COLUMNS_WIDTH)
    rows = []
    task = ""
    for each in machine.similar:
        near = each.measured
        differences = wrap_text(f"  {near.result}: {_format_differences(each)}", columns)
        score = "-" if near.score is None else format_number(near.score)
        name = f"{near.machine}\n{differences}"
        rows.append([each.task if each.task != task else "", score, f"{near.distance:.3f}", name, near.published])
        task = each.task
    table = render_table(["task", "score", "distance", "measured machine", "published"], rows, width)
    meaning = "distance: the differences add that much to the error of a prediction, 0.05 about 5 %; 0: no difference"
    marks = "yours -> theirs: ~ is an assumed value of yours, ? an unknown one"
    return "\n".join([machine.machine, table, *_format_notes((*machine.notes, meaning, marks), width)])


def _format_differences(similar: SimilarResult) -> str:
    groups: dict[str, list[str]] = {}
    for each in similar.differences:
        described = f"{'~' * each.assumed}{_format_cell(each.described)}"
        groups.setdefault(each.group, []).append(f"{each.column} {described} -> {_format_cell(each.measured)}")
    listed = "; ".join(f"{group}: {', '.join(columns)}" for group, columns in groups.items())
    more = similar.differing - len(similar.differences)
    return (listed or "nothing differs") + (f"; {more} more" if more else "")


def _format_cell(value: float | str | None) -> str:
    return "?" if value is None else format_plain(value) if isinstance(value, float) else value


def format_comparison(comparison: Comparison, width: int | None = None) -> str:
    """Return the machines by letter, their scores, the pairs with probabilities, and the drivers of the differences."""
    letters, interval = comparison.letters, _name_interval(comparison.level)
    parts = [wrap_text(f"{letter}: {machine.machine}", width) for letter, machine in letters.items()]
    parts += [wrap_text(f"{each.name}: refused, {each.message}", width) for each in comparison.refused]
    parts += _format_notes(comparison.notes, width)
    rows = []
    shown = ""
    for output in dict.fromkeys(Output.of(each) for machine in letters.values() for each in machine.estimates):
        for letter, each in ((letter, each) for letter, machine in letters.items() for each in machine.estimates):
            if Output.of(each) == output:
                published, (estimate, ends) = each.published, _estimate_cells(each)
                rows.append(
                    {
                        **{"task": each.task if each.task != shown else "", "machine": letter},
                        "published": f"{format_number(published.median)} ({published.count})" if published else "",
                        **{"estimate": estimate, interval: ends, "unit": each.unit, "trust": each.trust},
                    }
                )
                shown = each.task
    parts += [
        _format_table(rows, width),
        "pairs: ratio of scores, and the probability that the first one scores higher",
    ]
    named = [({"task": pair.task, "pair": f"{pair.first} / {pair.second}"}, pair) for pair in comparison.pairs]
    pairs = [
        {
            **names,
            **{"ratio": f"{pair.ratio:.3f}", interval: format_interval(pair.low, pair.high)},
            "first is higher": format_percent(pair.probability),
            "correlation of errors": "" if pair.correlation is None else f"{pair.correlation:.2f}",
        }
        for names, pair in named
    ]
    parts.append(_format_table(pairs, width))
    groups = sorted({driver.group for pair in comparison.pairs for driver in pair.drivers})
    if groups:
        parts.append("drivers of the difference: factors from the second machine to the first")
        ones = dict.fromkeys(groups, "1.00")
        factors = [names | ones | {each.group: f"{each.factor:.2f}" for each in pair.drivers} for names, pair in named]
        parts.append(_format_table(factors, width))
    return "\n".join(parts)
