"""Plan of small training runs that narrow the interval of a large run most, within a budget of compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt

import numpy as np
import pandas as pd

from perfcast.domains.scaling.datasets.scaling_columns import ACCURACY, FLOP_PER_PARAM_TOKEN
from perfcast.domains.scaling.predictors import law_design
from perfcast.domains.scaling.predictors.curve_fit import SharesOfRuns
from perfcast.domains.scaling.predictors.scaling_laws import join_losses
from perfcast.domains.scaling.predictors.trained_runs import TrainedRuns, quantity_columns, read_runs
from perfcast.domains.scaling.training_rules import shorten_quantity
from perfcast.inference.champion import Champion
from perfcast.inference.draws import DrawPredictions, impute_draws
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import parse_machines
from perfcast.inference.predict import PredictOptions, predict_machines
from perfcast.inference.prediction import ChampionAnswer, Estimate
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
    intervals: tuple[PlannedInterval, ...]


@dataclass(frozen=True, repr=False)
class RunPlan(ChampionAnswer):
    """Runs in the order of choice. `estimates` are those of today."""

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
            {"run": number, **asdict(run), **asdict(interval)}
            for number, run in enumerate(self.runs, start=1)
            for interval in run.intervals
        ]
        columns = ["run", "params", "tokens", "compute", "share_of_budget", "task", "low", "high"]
        return pd.DataFrame(rows, columns=columns)


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
        *champion.identity,
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
    rounded = np.log([float(f"{size:.1e}") for size in np.exp(sizes)])
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
    """Return the chosen runs with the intervals after each."""
    current, described = list(designs), []
    compute = FLOP_PER_PARAM_TOKEN * np.exp(candidates.sum(axis=1))
    for run in law_design.choose_runs(designs, compute, budget, count):
        current = [design.add(run) for design in current]
        (params, tokens), cost = np.exp(candidates[run]).tolist(), float(compute[run])
        described.append(PlannedRun(params, tokens, cost, cost / budget, _intervals(designs, current, estimates)))
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


def format_plan(plan: RunPlan, width: int | None = None) -> str:
    """Return the estimates of today, the runs in a table, and notes under it."""
    lines = [
        f"{estimate.task} of {plan.machine}: {format_number(estimate.median)}, "
        f"{100 * plan.level:g} % interval {format_interval(estimate.low, estimate.high)}"
        for estimate in plan.estimates
    ]
    many = len(plan.estimates) > _MAX_SHOWN
    header = ["run", "params", "tokens", "FLOP", "budget"]
    header += ["mean width"] if many else [f"interval of {estimate.task}" for estimate in plan.estimates]
    rows = []
    for number, run in enumerate(plan.runs, start=1):
        widths = [f"{100 * _mean_width(run.intervals):.1f} %"]
        shown = widths if many else [format_interval(each.low, each.high) for each in run.intervals]
        quantities = [shorten_quantity(run.params), shorten_quantity(run.tokens), f"{run.compute:.2g}"]
        rows.append([str(number), *quantities, f"{100 * run.share_of_budget:.0f} %", *shown])
    total = f"{100 * sum(run.share_of_budget for run in plan.runs):.0f} % of {plan.budget:.3g} FLOP"
    text = [*lines, "", render_table(header, rows, width), wrap_text(f"{len(plan.runs)} runs take {total}", width)]
    return "\n".join([*text, *(wrap_text(f"note: {note}", width) for note in plan.notes)])


def _mean_width(intervals: tuple[PlannedInterval, ...]) -> float:
    """Return the mean of width over the geometric middle."""
    return sum((each.high - each.low) / sqrt(each.high * each.low) for each in intervals) / len(intervals)
