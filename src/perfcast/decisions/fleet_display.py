"""Sizing of a fleet as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from perfcast.decisions.display import format_percent
from perfcast.decisions.fleet import CountChance, SizedTarget, Sizing
from perfcast.utils.terminal_tables import drop_empty_columns, format_interval, format_number, render_table, wrap_text

_MAX_REFUSED = 12


def format_sizing(sizing: Sizing, width: int | None = None) -> str:
    """Return the numbers of all targets in a table, with what drives and what would narrow them."""
    mix = ", ".join(f"{task} {100 * share:g} %" for task, share in sizing.mix.items())
    count = f"{sizing.machines} machines" if sizing.machines > 1 else "1 machine"
    has = [f"{format_number(value)} {name}" for name, value in sizing.totals.items()]
    interval = f"{100 * sizing.level:g} % interval"
    sure = f"needed ({100 * sizing.options['sure']:g} %)"
    totals = list(dict.fromkeys(name for target in sizing.targets for name in target.totals))
    header = ["onto", sure, interval, "for each new one", interval, *totals, "watts", "watts from", "load"]
    header += ["MWh a year", interval, "t CO2 a year", interval, "cost a year", "limited by", "scores", "trust"]
    energy, between = _energy(sizing)
    used = f"; {energy} MWh a year, {interval} {between}" if energy else ""
    parts = [
        wrap_text(f"fleet: {', '.join([count, *has])}{used}; mix of its time: {mix}", width),
        render_table(*drop_empty_columns(header, [_cells(target, totals) for target in sizing.targets]), width),
    ]
    for target in sizing.targets:
        over = {**target.speedups, **{name: target.totals[name] / value for name, value in sizing.totals.items()}}
        ratios = ", ".join(f"{name} {value:.2f}" for name, value in over.items())
        parts.append(wrap_text(f"{target.name}: {_describe_chances(target)}; over the fleet's: {ratios}", width))
        if len(target.needs) > 1:
            needs = ", ".join(f"{name} {format_number(need)}" for name, need in target.needs.items())
            parts.append(wrap_text(f"  {target.limiting} runs out first; machines needed for {needs}", width))
        for each in target.narrowed_by:
            left = f"{each.low} to {each.high}, {100 * each.width:.0f} % of the width"
            parts.append(wrap_text(f"  its number if the scores of {each.machine} were known: {left}", width))
        parts += [wrap_text(f"  {note}", width) for note in target.notes]
    shares = (f"{100 * each.share:.0f} % {each.count} x ({each.machine}), {each.measured}" for each in sizing.drivers)
    parts.append(wrap_text(f"the need: {'; '.join(shares)}", width))
    parts += [wrap_text(f"{each.name}: refused, {each.message}", width) for each in sizing.refused[:_MAX_REFUSED]]
    if len(sizing.refused) > _MAX_REFUSED:
        parts.append(f"  and {len(sizing.refused) - _MAX_REFUSED} more, see --csv")
    return "\n".join([*parts, *(wrap_text(f"note: {note}", width) for note in sizing.notes)])


def _cells(target: SizedTarget, totals: Sequence[str]) -> list[str]:
    return [
        target.name,
        str(target.needed),
        format_interval(target.low, target.high),
        f"{target.ratio:.3g}",
        format_interval(target.ratio_low, target.ratio_high),
        *(format_number(target.totals[name]) if name in target.totals else "" for name in totals),
        _format(target.watts),
        target.watts_basis or "",
        "" if target.watts is None else format_percent(target.load),
        *_energy(target),
        *(_energy(target, target.carbon / target.energy) if target.carbon and target.energy else ("", "")),
        _format(target.cost),
        target.limiting if len(target.needs) > 1 else "",
        target.measured,
        target.trust,
    ]


def _energy(of: SizedTarget | Sizing, factor: float = 1.0) -> tuple[str, str]:
    """Return MWh, or what a factor makes of them, with their interval."""
    middle, low, high = (
        None if each is None else each * factor / 1000 for each in (of.energy, of.energy_low, of.energy_high)
    )
    return _format(middle), format_interval(low, high)


def _format(value: float | None) -> str:
    return "" if value is None else format_number(value)


def _describe_chances(target: SizedTarget) -> str:
    """Return the needed number with its neighbors: `19; 18 suffice with 53 %, 20 with 99 %`."""
    near: list[CountChance] = [each for each in target.counts if abs(each.count - target.needed) <= 1]
    shown = [f"{each.count} with {format_percent(each.suffices)}" for each in near] or [f"{target.needed}"]
    return f"{', '.join(shown)} {'suffices' if target.needed == 1 else 'suffice'}"
