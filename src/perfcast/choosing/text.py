"""Rankings as a person reads them on a terminal."""

from __future__ import annotations

from perfcast.choosing.ranking import Ranked, Ranking
from perfcast.choosing.resembling import Resemblance, Similar
from perfcast.choosing.sweeping import Sweep
from perfcast.forecasting.text import number, table

_MOST = 12
"""Combinations that cannot be and are told one by one."""


def ranking_as_text(ranking: Ranking) -> str:
    """Return the candidates in a table, the best first, and notes under it."""
    rows = [_row(one, ranking) for one in ranking.candidates]
    header = ["rank", "name", "score", f"{100 * ranking.level:g} % interval", *ranking.targets]
    header += ["all targets"] if len(ranking.targets) > 1 else []
    header += ["watts", "price", *([ranking.by, "its interval"] if _is_new(ranking) else []), "support"]
    shown = _filled(header, rows)
    return "\n".join([shown, *[f"note: {note}" for note in (_score(ranking), *ranking.notes)]])


def _filled(header: list[str], rows: list[list[str]]) -> str:
    """Return a table without the columns that are empty in every row."""
    kept = [place for place in range(len(header)) if any(row[place] for row in rows)]
    return table([header[place] for place in kept], [[row[place] for place in kept] for row in rows])


def _row(one: Ranked, ranking: Ranking) -> list[str]:
    row = [str(one.rank), one.name, number(one.score), _interval(one.score_low, one.score_high)]
    row += [percent(share) for share in one.probabilities]
    if len(ranking.targets) > 1:
        ends = dict.fromkeys((percent(one.together_least), percent(one.together_most)))
        row.append(" to ".join(ends))
    mark = "~" if one.watts_assumed and not all(other.watts_assumed for other in ranking.candidates) else ""
    row += ["" if one.watts is None else f"{mark}{one.watts:g}", "" if one.price is None else f"{one.price:g}"]
    if _is_new(ranking):
        row += [number(one.value), _interval(one.value_low, one.value_high)]
    return [*row, "" if one.support is None else f"{one.support:.2f}"]


def _is_new(ranking: Ranking) -> bool:
    """Tell whether candidates are ordered by what stands in no column of its own."""
    return ranking.by not in ("score", "price", "watts", "watt") and not (
        ranking.by == "probability" and len(ranking.targets) == 1
    )


def _score(ranking: Ranking) -> str:
    unit = f" ({ranking.unit})" if ranking.unit else ""
    if len(ranking.weights) == 1:
        return f"score: {next(iter(ranking.weights))}{unit}"
    equal = len({round(weight, 12) for weight in ranking.weights.values()}) == 1
    parts = [name if equal else f"{name} {weight:.2g}" for name, weight in ranking.weights.items()]
    return f"score: {'' if equal else 'weighted '}geometric mean of {', '.join(parts)}{unit}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def percent(share: float | None) -> str:
    """Return a probability in whole percent; what is nearly sure either way is told so."""
    if share is None:
        return ""
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def sweep_as_text(sweep: Sweep) -> str:
    """Return the combinations in a table, those that cannot be under it by their reasons, and notes."""
    questions = sweep.questions
    interval = f"{100 * sweep.level:g} % interval"
    header = [*sweep.names, *[part for shown in questions.values() for part in (shown, interval)], "support"]
    rows = []
    for each in sweep.possible:
        own = {(one.task, one.target): one for one in each.estimates}
        row = list(each.values.values())
        for question in questions:
            one = own.get(question)
            row += ["", ""] if one is None else [number(one.median), _interval(one.low, one.high)]
        supports = [one.support for one in each.estimates if one.support is not None]
        rows.append([*row, f"{min(supports):.2f}" if supports else ""])
    parts = [_filled(header, rows)]
    refused = [each for each in sweep.combinations if each.refused]
    if refused:
        parts.append(f"cannot be ({len(refused)} of {len(sweep.combinations)} combinations)")
        parts.append(table([*sweep.names, "why"], [[*each.values.values(), each.refused] for each in refused[:_MOST]]))
    if len(refused) > _MOST:
        parts.append(f"  and {len(refused) - _MOST} more, see --csv")
    return "\n".join([*parts, *[f"note: {note}" for note in sweep.notes]])


def resemblance_as_text(one: Resemblance) -> str:
    """Return the measured machines like one, nearest first by task, and under each what differs by group."""
    header = ["task", "score", "distance", "measured machine", "published", "result"]
    rows = []
    for place, each in enumerate(one.similar):
        first = place == 0 or one.similar[place - 1].task != each.task
        near = each.measured
        row = [each.task if first else "", number(near.score), f"{near.distance:.3f}", near.machine, near.published]
        rows.append([*row, near.result])
    head, *lines = table(header, rows).split("\n")
    shown = [part for line, each in zip(lines, one.similar, strict=True) for part in (line, _differing(each))]
    meaning = "distance: what differs is worth that much more error of a forecast, 0.05 about 5 %; 0: all alike"
    notes = [*one.notes, meaning, "yours -> theirs; ~ was assumed of yours, since nothing was said; ? is unknown"]
    return "\n".join([one.machine, head, *shown, *[f"note: {note}" for note in notes]])


def _differing(one: Similar) -> str:
    groups: dict[str, list[str]] = {}
    for each in one.differences:
        own = f"{'~' if each.assumed else ''}{_cell(each.own)}"
        groups.setdefault(each.group, []).append(f"{each.column} {own} -> {_cell(each.theirs)}")
    said = "; ".join(f"{group}: {', '.join(columns)}" for group, columns in groups.items())
    more = one.differing - len(one.differences)
    return f"      {said or 'nothing differs'}" + (f"; {more} more" if more else "")


def _cell(value: float | str | None) -> str:
    if value is None:
        return "?"
    return f"{value:g}" if isinstance(value, float) else value
