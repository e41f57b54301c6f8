"""Plan of small training runs that narrow the interval of a large run most, within a budget of compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pandas as pd

from perfcast.domains.scaling.datasets.scaling_columns import ACCURACY, FLOP_PER_PARAM_TOKEN
from perfcast.domains.scaling.predictors import law_design
from perfcast.domains.scaling.predictors.curve_fit import SharesOfRuns
from perfcast.domains.scaling.predictors.scaling_laws import join_losses
from perfcast.domains.scaling.predictors.trained_runs import (
    TrainedRuns,
    quantity_columns,
    read_runs,
)
from perfcast.domains.scaling.training_rules import shorten_quantity
from perfcast.inference.champion import Champion
from perfcast.inference.draws import DrawPredictions, impute_draws
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import parse_machines
from perfcast.inference.predict import PredictOptions, predict_machines
from perfcast.inference.prediction import Answer, Estimate
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.schema.table import Role, Tag
from perfcast.utils.errors import UserError
from perfcast.utils.terminal_tables import format_interval, format_number, render_table, wrap_text

_MULTIPLIERS = 20.0 * 2.0 ** np.arange(-3, 7)
"""Tokens per parameter of the runs that may be trained: 2.5 to 1280."""
_SIZES_PER_DOUBLING = 2
_MIN_RUNS = 5
"""Different sizes and lengths without which no law of a task is fitted."""
_MAX_SHOWN = 3
"""Tasks up to which a table has the intervals of each; more have their mean width."""


@dataclass(frozen=True)
class PlannedInterval:
    """Expected interval of a task of the large run, after the run and all before it are trained. Units: of the task."""

    task: str
    low: float
    high: float


@dataclass(frozen=True)
class PlannedRun:
    """Run to train, with its share of the budget and the intervals expected after it. Units: compute in FLOP."""

    params: float
    tokens: float
    compute: float
    share_of_budget: float
    before: tuple[PlannedInterval, ...]
    after: tuple[PlannedInterval, ...]


@dataclass(frozen=True, repr=False)
class RunPlan(Answer):
    """Runs in the order of choice. `estimates` are those of today; `remaining` is the part of their width, by task."""

    dataset: str
    champion: str
    preset: str
    machine: str
    level: float
    budget: float
    estimates: tuple[Estimate, ...]
    runs: tuple[PlannedRun, ...]
    notes: tuple[str, ...] = ()
    kind: str = "estimates, not official results"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per run and task."""
        rows = [
            {
                **{"run": number, "params": run.params, "tokens": run.tokens, "compute": run.compute},
                **{"share_of_budget": run.share_of_budget, "task": before.task},
                **{"low_before": before.low, "high_before": before.high},
                **{"low_after": after.low, "high_after": after.high},
            }
            for number, run in enumerate(self.runs, start=1)
            for before, after in zip(run.before, run.after, strict=True)
        ]
        columns = ["run", "params", "tokens", "compute", "share_of_budget", "task"]
        ends = ["low_before", "high_before", "low_after", "high_after"]
        return pd.DataFrame(rows, columns=[*columns, *ends])


def plan_runs(
    entry: MachineEntry,
    champion: Champion,
    options: PredictOptions,
    *,
    budget: float,
    count: int,
    measurements: UserMeasurements | None = None,
) -> RunPlan:
    """Choose at most `count` runs, of at most `budget` FLOP together, for the tasks of the options, else all of them.

    Today's interval is that of `predict_machines`. A run narrows it by the factor by which it narrows that of a law:
    the over-training law of a loss, and the two-step law of an accuracy, fitted to the measured runs.
    Raises: UserError when the dataset has no training runs, or the budget pays for none.
    """
    measured = champion.reference_data.measured
    quantities = quantity_columns(measured.columns)
    if not quantities:
        fact = f"{champion.dataset} has no parameters and tokens"
        raise UserError("--dataset must be one of training runs", fact, "name llm_ladder or llm_overtraining")
    parsed = parse_machines([entry], champion)
    prediction = next(iter(predict_machines(parsed, champion, options, measurements)))
    estimates = tuple(each for each in prediction.estimates if each.low is not None)
    if not estimates:
        raise UserError("a plan needs a champion with intervals", f"{champion.name} has none", "train it on more rows")
    described = DrawPredictions(impute_draws(parsed, champion), champion).completed.frame.iloc[0]
    target = np.log(described[[column.name for column in quantities]].to_numpy(dtype=float))
    runs = read_runs(measured.frame, measured.columns, [1.0, 1.0])
    identity = {name: described[name] for name in measured.select(tag=Tag.IDENTITY) if not pd.isna(described[name])}
    usable = np.ones(len(measured.frame), dtype=bool)
    for name, value in identity.items():
        usable &= (measured.frame[name] == value).to_numpy()
    candidates = list_candidates(runs.logs[usable], target, budget)
    values = measured.frame[measured.select(role=Role.TARGET)[0]].to_numpy(dtype=float)
    tasks = measured.frame[measured.column_of(Tag.TASK)].astype(str).to_numpy()
    designs = [
        design_task(runs, values, usable & (tasks == each.task), each.task, target=target, candidates=candidates)
        for each in estimates
    ]
    return RunPlan(
        dataset=champion.dataset,
        champion=champion.name,
        preset=champion.preset,
        machine=prediction.machine,
        level=options.level,
        budget=budget,
        estimates=estimates,
        runs=tuple(_describe_runs(designs, candidates, budget, count, estimates)),
        notes=prediction.notes,
    )


def list_candidates(logs: np.ndarray, target: np.ndarray, budget: float) -> np.ndarray:
    """Return the logarithms of parameters and tokens of runs that the budget pays for and that a law can read.

    Sizes go from the smallest measured one up to that of the large run, lengths from the shortest measured tokens per
    parameter up to the longest, or those of the large run.
    Shapes: logs (n, 2), target (2,) -> (candidates, 2).
    Raises: UserError when the budget pays for none.
    """
    smallest, largest = logs[:, 0].min(), target[0]
    sizes = np.arange(0, max(largest - smallest, 0) + 1e-9, np.log(2) / _SIZES_PER_DOUBLING) + smallest
    lengths = logs[:, 1] - logs[:, 0]
    longest = max(lengths.max(), target[1] - target[0])
    allowed = np.log(_MULTIPLIERS)
    allowed = allowed[(allowed >= lengths.min() - 0.2) & (allowed <= longest + 0.2)]
    rounded = np.log([_round(size) for size in np.exp(sizes)])
    pairs = np.array([(size, size + length) for size in rounded for length in allowed]).reshape(-1, 2)
    compute = FLOP_PER_PARAM_TOKEN * np.exp(pairs.sum(axis=1))
    if not (compute <= budget).any():
        fact = f"the cheapest of {len(pairs)} takes {compute.min():.2g} FLOP" if len(pairs) else "no run is smaller"
        raise UserError(f"--budget must pay for a run, but {budget:.2g} FLOP pay for none", fact, "raise the budget")
    return np.asarray(pairs[compute <= budget])


def design_task(
    runs: TrainedRuns, values: np.ndarray, members: np.ndarray, task: str, *, target: np.ndarray, candidates: np.ndarray
) -> law_design.LawDesign:
    """Return the design of one task from its measured rows, `members` (n,) bool.

    Raises: UserError when the task has too few of them.
    """
    rows = np.flatnonzero(members & np.isfinite(values))
    distinct = len(np.unique(runs.logs[rows].round(6), axis=0))
    if distinct < _MIN_RUNS:
        requirement = f"a plan needs {_MIN_RUNS} different runs of every task"
        raise UserError(requirement, f"{task} has {distinct}", "leave the task out of --task")
    logs, results = runs.logs[rows], values[rows]
    if not (runs.kinds[rows] == ACCURACY).all():
        return law_design.design_loss(logs, results, target, candidates)
    losses = join_losses(runs, values)[rows]
    known = np.isfinite(losses)
    if not known.any():
        return law_design.design_error_rate(logs, results, target, candidates)
    chance = float(np.median(runs.chance[rows]))
    measured = SharesOfRuns(losses[known], results[known], chance)
    return law_design.design_accuracy(logs[known], measured, target, candidates)


def _describe_runs(
    designs: Sequence[law_design.LawDesign],
    candidates: np.ndarray,
    budget: float,
    count: int,
    estimates: Sequence[Estimate],
) -> list[PlannedRun]:
    """Return the chosen runs with the intervals before and after each."""
    current, described = list(designs), []
    compute = FLOP_PER_PARAM_TOKEN * np.exp(candidates.sum(axis=1))
    before = _intervals(designs, current, estimates)
    for run in law_design.choose_runs(designs, compute, budget, count):
        current = [design.add(run) for design in current]
        after = _intervals(designs, current, estimates)
        params, tokens = np.exp(candidates[run])
        cost = float(compute[run])
        described.append(PlannedRun(float(params), float(tokens), cost, cost / budget, before, after))
        before = after
    return described


def _intervals(
    first: Sequence[law_design.LawDesign], current: Sequence[law_design.LawDesign], estimates: Sequence[Estimate]
) -> tuple[PlannedInterval, ...]:
    """Return today's intervals, narrowed about their medians by the factors of the laws."""
    intervals = []
    for before, after, estimate in zip(first, current, estimates, strict=True):
        factor = after.spread / before.spread
        assert estimate.low is not None and estimate.high is not None
        low, high = (estimate.median * (end / estimate.median) ** factor for end in (estimate.low, estimate.high))
        intervals.append(PlannedInterval(estimate.task, float(low), float(high)))
    return tuple(intervals)


def _round(value: float) -> float:
    """Return a number with two significant digits."""
    return float(f"{value:.1e}")


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
