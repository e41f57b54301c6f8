"""Answers as people read them: tables and notes for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perfcast.decisions.criteria import Output
from perfcast.decisions.machine_comparison import Comparison
from perfcast.decisions.nearest_machines import NearestMachines, NearestResults, SimilarResult
from perfcast.decisions.ranking import Ranked, Ranking
from perfcast.decisions.what_if import Grid
from perfcast.inference.cells import ORIGINS
from perfcast.inference.measured_index import PublishedGroup, PublishedScores
from perfcast.inference.prediction import (
    DERIVED,
    MEASURED_FACTOR,
    OK,
    Basis,
    DerivedValue,
    Estimate,
    Prediction,
    Predictions,
    Ratio,
    Value,
    list_outside,
    lowest_trust,
)
from perfcast.inference.rules.description_rules import find_rules
from perfcast.schema.display_names import column_label
from perfcast.utils.terminal_tables import (
    NO_BREAK,
    drop_empty_columns,
    format_interval,
    format_number,
    format_plain,
    render_table,
    wrap_text,
)

_MAX_GROUPS = 4
"""Groups of published results that the text shows of a task, the newest first; JSON has all."""
_HEADER = ["task", "estimate", "interval", "unit", "trust", "ratio to older suite"]
_MAX_ASSUMPTIONS = 3
"""Assumptions that are shown without an explanation, and values of each."""
_HINT = "--explain shows the nearest measured machines, drivers, all values and the basis"
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


def format_predictions(predictions: Predictions, width: int | None = None, *, explain: bool = False) -> str:
    """Return published results and estimates of a machine, the assumptions of most weight, and how to narrow intervals.

    With `explain`, machine after machine, the nearest measured results, drivers, values by origin and basis follow.
    Several machines are one table otherwise. `width` is that of the terminal, None for no limit.
    """
    refused = [wrap_text(f"{each.machine}: refused, {each.message}", width) for each in predictions.refused]
    answered = [prediction for prediction in predictions if prediction.status == OK]
    explained = any(prediction.values for prediction in answered)
    if explained and (explain or len(answered) == 1):
        rules = find_rules(predictions.dataset.partition(",")[0])
        origins = {**ORIGINS, **rules.presentation.origin_meanings} if explain else {}
        texts = (_format_prediction(prediction, origins, width, explain=explain) for prediction in answered)
        return "\n".join(["\n\n".join([*texts, *refused]), *_list_bases(predictions, width)])
    rows = []
    for each in answered:
        values: tuple[Estimate | DerivedValue, ...] = (*each.estimates, *each.derived)
        for value in values:
            name, *cells = _estimate_cells(value, each.ratios)
            rows.append([each.machine, name, _count_published(value) if explained else "", *cells])
    notes: dict[str, list[str]] = {}
    for each in answered:
        for note in (*each.notes, *(_list_differences(each) if explained else ())):
            notes.setdefault(note, []).append(each.machine)
    named = {note: first + (f" and {len(others)} more" if others else "") for note, (first, *others) in notes.items()}
    lines = [wrap_text(f"{machines}: {note}", width) for note, machines in named.items()]
    header = ["machine", "task", "published", *_HEADER[1:]]
    table = [render_table(*drop_empty_columns(header, rows), width)] if rows else []
    alternatives = answered if len({each.line for each in answered}) == 1 else ()
    weights = [wrap_text(f"{each.machine}: {line}", width) for each in alternatives for line in _list_weights(each)]
    bases = _list_bases(predictions, width)
    return "\n".join([*lines, *table, *weights, *[_HINT][:explained], *refused, *bases])


def _list_bases(predictions: Predictions, width: int | None) -> list[str]:
    """Return lines on the results behind the answers, on the origin of published ones, and notices of the datasets."""
    bases = predictions.bases
    # the line of the command has the results of a single dataset
    lines = [f"basis: {'; '.join(map(str, bases))}"] if len(bases) > 1 else []
    estimates = [each for machine in predictions for each in machine.estimates if each.published]
    origins = [each.origin for each in bases if each.origin and any(made.task in each.tasks for made in estimates)]
    if origins and any(machine.values for machine in predictions):
        lines.append(f"published results are of {'; '.join(origins)}")
    lines += [f"note: {each.notice}" for each in bases if each.notice]
    return [wrap_text(line, width) for line in lines]


def _list_differences(prediction: Prediction) -> list[str]:
    """Return one line on what the published results have instead of the values of the machine, none where nothing."""
    published = (each.published for each in prediction.estimates if each.published)
    differs = dict.fromkeys(text for each in published for text in each.differs)
    return [f"the newest published results have {'; '.join(differs)}"] if differs else []


def _count_published(value: Estimate | DerivedValue) -> str:
    published = value.published if isinstance(value, Estimate) else None
    return f"{_format_score(published.median)} ({published.count})" if published else ""


def _list_weights(prediction: Prediction) -> list[str]:
    """Return one line on the assumptions of most weight and on how to narrow the intervals, none without a basis."""
    basis, values = prediction.basis, {value.column: value for value in prediction.values if value.value}
    if basis is None:
        return []
    parts, most = [], basis.assumptions[:_MAX_ASSUMPTIONS]
    for each in most:
        assumed = [values[name] for name in each.columns if name in values][:_MAX_ASSUMPTIONS]
        shown = [_format_value(value, column_label(value.column)) for value in assumed]
        parts.append(f"{each.field} ({', '.join(shown) or 'differs by task'}; {100 * each.spread:.1f}{NO_BREAK}%)")
    ways = [f"state {', '.join(each.field for each in most)}"] if most else []
    if basis.moves:
        widths = [f"{100 * width(each.width for each in basis.moves):.0f}" for width in (min, max)]
        left = f"leaves {' to '.join(dict.fromkeys(widths))}{NO_BREAK}% of the other widths"
        ways.append(f"measure {basis.measured_task} (--measured), which {left}")
    weights = [f"assumed, what changes the estimates most: {', '.join(parts)}"] if parts else []
    return [*weights, *([f"to narrow the intervals: {', or '.join(ways)}"] if ways else [])]


def _format_prediction(prediction: Prediction, origins: Mapping[str, str], width: int | None, *, explain: bool) -> str:
    estimates, first = prediction.estimates, list_outside(prediction.estimates)
    interval = f"{100 * estimates[0].level:g} % interval"
    parts = [wrap_text(": ".join([prediction.machine, *first]), width)]
    parts += [wrap_text(f"note: {note}", width) for note in prediction.notes if note not in first]

    def add(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        parts.extend([*([title] if title else []), render_table(header, rows, width)] if rows else [])

    published = [row for estimate in estimates for row in _published_rows(estimate, explain=explain)]
    header = ["task", "results", "median", "range", "compiler, year", "newest"]
    differs = _list_differences(prediction)
    which = f"{'nearest to' if differs else 'of'} this machine"
    add(f"published results {which}", *drop_empty_columns(header, published))
    parts += [wrap_text(line, width) for line in differs]
    header = [interval if name == "interval" else name for name in _HEADER]
    rows = [_estimate_cells(each, prediction.ratios) for each in estimates]
    add("prediction" if published else "", *drop_empty_columns(header, rows))
    title = "derived from the estimates, as if their errors were fully correlated"
    rows = [[*_estimate_cells(each)[:4], each.formula] for each in prediction.derived]
    add(title, [DERIVED, "estimate", interval, "unit", "formula"], rows)
    changes = [
        f"{each.task} from {format_number(each.median / each.user_factor)} to {format_number(each.median)}"
        for each in estimates
        if each.user_factor is not None and each.user_factor != 1
    ]
    if any(each.user_factor is not None for each in estimates):
        parts.append(wrap_text(f"changed by your own measurements: {', '.join(changes) or 'no estimate'}", width))
    parts += [wrap_text(line, width) for line in _list_weights(prediction)]
    if not explain:
        return "\n".join([*parts, _HINT])
    rows = [
        [
            "" if place else each.task,
            _format_score(near.score),
            near.machine,
            near.published,
            f"{near.distance:.3f}",
        ]
        for each in estimates
        for place, near in enumerate(each.neighbors)
    ]
    add("nearest measured machines", ["task", "score", "machine", "published", "distance"], rows)
    groups = sorted({driver.group for each in estimates for driver in each.drivers})
    rows = [_driver_cells(each, groups) for each in estimates if any(other.typical_machine for other in estimates)]
    title = "drivers: factors on the score of a typical machine of the last year"
    add(title, ["task", *groups, "typical machine"], rows)
    for origin, meaning in origins.items():
        values = [_format_value(value) for value in prediction.values if value.origin == origin]
        if values:
            parts.append(wrap_text(f"{origin} ({meaning}): {', '.join(values)}", width))
    return "\n".join([*parts, *(wrap_text(line, width) for line in format_basis(prediction.basis))])


def _estimate_cells(each: Estimate | DerivedValue, ratios: Sequence[Ratio] = ()) -> list[str]:
    name, trust = (each.name, DERIVED) if isinstance(each, DerivedValue) else (each.task, each.trust)
    by_task = {ratio.task: f"{ratio.median:.3g}, {format_interval(ratio.low, ratio.high)}" for ratio in ratios}
    return [name, *_format_spread(each), each.unit, trust, by_task.get(name, "")]


def _published_rows(estimate: Estimate, *, explain: bool) -> list[list[str]]:
    """Return the row of all published results, with the id of the newest, and to explain that of every group."""
    published = estimate.published
    if published is None:
        return []
    newest = str(published.results[0]) if published.results else ""
    label = "all" if explain else ""
    named: list[tuple[str, PublishedScores | PublishedGroup, str, str]] = [(estimate.task, published, label, newest)]
    for group in published.groups[:_MAX_GROUPS] if explain and len(published.groups) > 1 else ():
        named.append(("", group, ", ".join(map(str, filter(None, (group.setup, group.year)))), ""))
    return [
        [task, str(each.count), _format_score(each.median), format_interval(each.low, each.high), label, result]
        for task, each, label, result in named
    ]


def _driver_cells(estimate: Estimate, groups: Sequence[str]) -> list[str]:
    factors = {driver.group: driver.factor for driver in estimate.drivers}
    machine = estimate.typical_machine
    usual = "" if machine is None else f"{machine.machine} (measured {_format_score(machine.score)})"
    return [estimate.task, *(f"{factors.get(group, 1.0):.2f}" for group in groups), usual]


def _format_score(score: float | None) -> str:
    return "-" if score is None else format_number(score)


def _format_value(value: Value, label: str = "") -> str:
    """Return a value with its unit, under the name that may be typed back, or under a label."""
    text = f"{value.value:g}" if isinstance(value.value, float) else value.value
    unit = f" {value.unit}" if value.unit and value.unit not in ("month", "quarter") else ""
    return f"{label or value.column} {text}{unit}".replace(" ", NO_BREAK)


def format_basis(basis: Basis | None) -> list[str]:
    """Return lines on data, errors, facts, and on how to check the answer."""
    if basis is None:
        return []
    until = f" up to {basis.trained_until}" if basis.trained_until else ""
    lines = [f"basis: {basis.measured_results} measured results{until}"]
    if basis.later_results:
        lines.append(basis.later_results.replace(" %", f"{NO_BREAK}%"))
    if basis.errors:
        shown = [f"{each.task} {100 * each.median:.1f} % ({100 * each.p90:.0f} %)" for each in basis.errors]
        errors = "errors in backtests at this distance, half (nine tenths) are smaller"
        lines.append(f"{errors}: {', '.join(shown)}".replace(" %", f"{NO_BREAK}%"))
    for source in basis.facts:
        facts = ", ".join(fact.replace(" ", NO_BREAK) for fact in source.facts)
        public = f"public from {source.known_from}" if source.known_from else "undated"
        lines.append(f"facts of {source.subject}, {public} ({source.source}): {facts}")
    lines += [f"to check {each.task}: {each.command}" for each in basis.checks]
    if basis.moves:
        moves = [
            f"{each.task} by {100 * (each.factor - 1):+.1f} % ({100 * each.width:.0f} % of its width remain)"
            for each in basis.moves
        ]
        above = f"{100 * (MEASURED_FACTOR - 1):.0f} % above its estimate (--measured)"
        text = f"one result of {basis.measured_task} {above} would move {', '.join(moves)}"
        lines.append(text.replace(" %", f"{NO_BREAK}%"))
    return lines


def format_ranking(ranking: Ranking, width: int | None = None) -> str:
    """Return the candidates in a table, the best first, and notes under it."""
    rows = [_ranked_cells(candidate, ranking) for candidate in ranking.candidates]
    above = sum(candidate.sure is not False for candidate in ranking.candidates)
    if ranking.sure is not None and above < len(rows):
        targets = "targets" if len(ranking.targets) > 1 else "target"
        rows.insert(above, {"name": f"does not reach the {targets} (< {100 * ranking.sure:g} %)"})
    tables = [_format_table(rows, width)] if rows else []
    refused = [wrap_text(f"{candidate.name}: refused, {candidate.message}", width) for candidate in ranking.refused]
    unit, mean = f" ({ranking.unit})" if ranking.unit else "", "geometric mean of " if len(ranking.weights) > 1 else ""
    notes = [f"score: {mean}{', '.join(ranking.weights)}{unit}"]
    notes += [f"order: the lowest {ranking.by} first"] if ranking.ascending else []
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
    if candidate.probability_first is not None:
        cells["comes first"] = format_percent(candidate.probability_first)
    mixed = not all(other.watts_assumed for other in ranking.candidates)
    differs = any(other.cost != other.price for other in ranking.candidates)
    watts, price, cost, per_year = candidate.watts, candidate.price, candidate.cost, candidate.cost_per_score_year
    cells |= {
        "watts": "" if watts is None else f"{'~' * (candidate.watts_assumed and mixed)}{format_plain(watts)}",
        ranking.price_head: "" if price is None else format_plain(price),
        "cost": "" if cost is None or not differs else format_number(cost),
        "per score-year": "" if per_year is None else format_number(per_year),
    }
    shown = ranking.by in ("score", "cost", "price", "watts", "watt")
    if not shown and not (ranking.by == "probability" and len(ranking.targets) == 1):  # no other column shows it
        cells |= {ranking.by: format_number(candidate.value)}
        cells |= {"its interval": format_interval(candidate.value_low, candidate.value_high)}
    return {**cells, "trust": candidate.trust}


def format_grid(grid: Grid, width: int | None = None) -> str:
    """Return the combinations in a table, the impossible ones with their reasons, and notes."""
    parts = [_format_combinations(grid, width)]
    impossible = [combination for combination in grid.combinations if combination.violation]
    if impossible:
        parts.append(f"cannot be ({len(impossible)} of {len(grid.combinations)} combinations)")
        rows = [[*combination.values.values(), combination.violation] for combination in impossible[:_MAX_IMPOSSIBLE]]
        parts.append(render_table([*grid.names, "why"], rows, width))
    if len(impossible) > _MAX_IMPOSSIBLE:
        parts.append(f"  and {len(impossible) - _MAX_IMPOSSIBLE} more, see --csv")
    return "\n".join([*parts, *_format_notes(grid.notes, width)])


def _format_combinations(grid: Grid, width: int | None) -> str:
    """Return one row per combination, with two columns per output."""
    derived = dict.fromkeys((value.name for each in grid.possible for value in each.derived), "")
    rows = []
    for combination in grid.possible:
        estimates = {Output.of(estimate): estimate for estimate in combination.estimates}
        cells = dict(combination.values)
        for output, title in grid.outputs.items():
            shown = _format_spread(estimates[output]) if output in estimates else ("", "")
            cells |= zip((title, f"{_name_interval(grid.level)}{_DISTINCT}{title}"), shown, strict=True)
        cells |= derived | {value.name: format_number(value.median) for value in combination.derived}
        rows.append({**cells, "trust": lowest_trust(combination.estimates), _LIKE: combination.base_entity})
    return _format_table(rows, width)


def _format_spread(value: Estimate | DerivedValue) -> tuple[str, str]:
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
        groups.setdefault(each.group, []).append(
            f"{each.label or each.column} {described} -> {_format_cell(each.measured)}"
        )
    listed = "; ".join(f"{group}: {', '.join(columns)}" for group, columns in groups.items())
    more = similar.differing - len(similar.differences)
    return (listed or "nothing differs") + (f"; {more} more" if more else "")


def _format_cell(value: float | str | None) -> str:
    return "?" if value is None else format_plain(value) if isinstance(value, float) else value


def format_comparison(comparison: Comparison, width: int | None = None, *, explain: bool = False) -> str:
    """Return the machines by letter, their scores, and the pairs with probabilities; to explain, their drivers."""
    letters, interval = comparison.letters, _name_interval(comparison.level)
    parts = [wrap_text(f"{letter}: {machine.machine}", width) for letter, machine in letters.items()]
    parts += [wrap_text(f"{each.name}: refused, {each.message}", width) for each in comparison.refused]
    parts += _format_notes(comparison.notes, width)
    rows = []
    shown = ""
    for output in dict.fromkeys(Output.of(each) for machine in letters.values() for each in machine.estimates):
        for letter, each in ((letter, each) for letter, machine in letters.items() for each in machine.estimates):
            if Output.of(each) == output:
                estimate, ends = _format_spread(each)
                rows.append(
                    {
                        "task": each.task if each.task != shown else "",
                        "machine": letter,
                        "published": _count_published(each),
                        "estimate": estimate,
                        interval: ends,
                        "unit": each.unit,
                        "trust": each.trust,
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
            "ratio": f"{pair.ratio:.3f}",
            interval: format_interval(pair.low, pair.high),
            "first is higher": format_percent(pair.probability),
            "correlation of errors": "" if pair.correlation is None else f"{pair.correlation:.2f}",
        }
        for names, pair in named
    ]
    parts.append(_format_table(pairs, width))
    groups = sorted({driver.group for pair in comparison.pairs for driver in pair.drivers})
    if groups and explain:
        parts.append("drivers of the difference: factors from the second machine to the first")
        ones = dict.fromkeys(groups, "1.00")
        factors = [names | ones | {each.group: f"{each.factor:.2f}" for each in pair.drivers} for names, pair in named]
        parts.append(_format_table(factors, width))
    return "\n".join(parts)
