"""Plans of training runs as text for a terminal."""

from __future__ import annotations

from math import sqrt

from perfcast.domains.scaling.run_plan import PlannedInterval, PlannedRun, RunPlan
from perfcast.domains.scaling.training_rules import shorten_quantity
from perfcast.utils.terminal_tables import format_interval, format_number, render_table, wrap_text

_MAX_SHOWN = 3
"""Tasks up to which a table has the intervals of each; more have their mean width."""


def format_plan(plan: RunPlan, width: int | None = None) -> str:
    """Return the estimates of today, the runs in a table, and notes under it."""
    lines = [
        f"{estimate.task} of {plan.machine}: {format_number(estimate.median)}, "
        f"{100 * plan.level:g} % interval {format_interval(estimate.low, estimate.high)}"
        for estimate in plan.estimates
    ]
    tasks = [estimate.task for estimate in plan.estimates]
    many = len(tasks) > _MAX_SHOWN
    header = ["run", "params", "tokens", "FLOP", "budget"]
    header += ["mean width"] if many else [f"interval of {task}" for task in tasks]
    rows = [_run_cells(number, run, many) for number, run in enumerate(plan.runs, start=1)]
    used = sum(run.share_of_budget for run in plan.runs)
    left = 100 * _mean_width(plan.runs[-1].after) / _mean_width(plan.runs[0].before) if plan.runs else 100.0
    total = (
        f"{len(plan.runs)} runs take {100 * used:.0f} % of {plan.budget:.3g} FLOP and leave {left:.0f} % of the width"
    )
    text = [*lines, "", render_table(header, rows, width), wrap_text(total, width)]
    return "\n".join([*text, *(wrap_text(f"note: {note}", width) for note in plan.notes)])


def _run_cells(number: int, run: PlannedRun, many: bool) -> list[str]:
    cells = [str(number), shorten_quantity(run.params), shorten_quantity(run.tokens)]
    cells += [f"{run.compute:.2g}", f"{100 * run.share_of_budget:.0f} %"]
    if many:
        widths = (_mean_width(intervals) for intervals in (run.before, run.after))
        return [*cells, " -> ".join(f"{100 * width:.1f} %" for width in widths)]
    return [*cells, *(_change(*pair) for pair in zip(run.before, run.after, strict=True))]


def _change(before: PlannedInterval, after: PlannedInterval) -> str:
    return " -> ".join(f"{format_interval(each.low, each.high)}" for each in (before, after))


def _mean_width(intervals: tuple[PlannedInterval, ...]) -> float:
    """Return the mean of width over the geometric middle."""
    return sum((each.high - each.low) / sqrt(each.high * each.low) for each in intervals) / len(intervals)
