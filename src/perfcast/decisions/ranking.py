"""Ranking of candidates by a criterion, with the probability that each meets its targets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from perfcast.decisions.criteria import (
    COST,
    Candidate,
    Output,
    RankingRequest,
    RefusedCandidate,
    evaluate_criterion,
    read_candidate,
    weighted_score,
)
from perfcast.decisions.first_place import find_first_places
from perfcast.inference.champion import Champion
from perfcast.inference.imputation import hold_equal
from perfcast.inference.machine_files import EXTRAS, PRICE, WATTS, MachineEntry
from perfcast.inference.machine_predictions import complete_machines
from perfcast.inference.options import PredictOptions
from perfcast.inference.parse import ParsedMachines
from perfcast.inference.predict import answer_machines
from perfcast.inference.prediction import (
    ESTIMATE,
    OK,
    REFUSED,
    ChampionAnswer,
    Prediction,
    find_shared_notes,
    lowest_trust,
    name_carried,
)
from perfcast.inference.rules.presentation import DerivedOutput
from perfcast.inference.suites import Measured, Suites, parse_shared
from perfcast.uncertainty.conformal import joint_bounds
from perfcast.utils.errors import UserError


@dataclass(frozen=True)
class Ranked:
    """One candidate with its rank.

    `probabilities` are those of the targets, in their order; the probability of all targets together is between
    `joint_probability_min` and `joint_probability_max`, whatever the correlation of their errors. `value` is that of
    the criterion, `trust` the lowest one of its predictions. Units: `watts` W, `price` as given, `score` that
    of its tasks.
    `cost` is that of all years of use, `cost_per_score_year` it over the score and the years. `sure` is whether all
    targets are met with the asked probability, None without targets. `probability_first` is that of the best value of
    the criterion, see `find_first_places`, None where it is not known. `carried` has the columns of its file that
    nothing reads.
    """

    rank: int
    line: int
    name: str
    machine: str
    score: float
    score_low: float | None
    score_high: float | None
    probabilities: tuple[float, ...]
    joint_probability_min: float | None
    joint_probability_max: float | None
    sure: bool | None
    watts: float | None
    watts_assumed: bool
    price: float | None
    value: float
    value_low: float | None
    value_high: float | None
    trust: str
    cost: float | None = None
    cost_per_score_year: float | None = None
    probability_first: float | None = None
    carried: Mapping[str, str | float | None] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, float]:
        """The known expenses."""
        facts = {WATTS: self.watts, PRICE: self.price, COST: self.cost}
        return {word: fact for word, fact in facts.items() if fact is not None}


@dataclass(frozen=True, repr=False)
class Ranking(ChampionAnswer):
    """Candidates, the best first, with the criterion; `refused` ones have no rank."""

    by: str
    ascending: bool
    level: float
    weights: Mapping[str, float]
    unit: str
    targets: tuple[str, ...]
    sure: float | None
    price_head: str
    candidates: tuple[Ranked, ...]
    notes: tuple[str, ...]
    kind: str = ESTIMATE
    refused: tuple[RefusedCandidate, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return one row per candidate, the best first, the refused ones last."""
        rows: list[dict[str, Any]] = []
        for candidate in self.candidates:
            row = asdict(candidate)
            shares = zip(self.targets, row.pop("probabilities"), strict=True)
            by_target = {f"probability of {target}": share for target, share in shares}
            rows.append({**row, **by_target, "status": OK, "message": ""})
        rows += [{**asdict(candidate), "status": REFUSED} for candidate in self.refused]
        columns = (*Ranked.__dataclass_fields__, "status", "message")
        for row in rows:
            row.update(name_carried(row.pop("carried"), columns))
        return pd.DataFrame(rows)


def rank_machines(
    entries: Sequence[MachineEntry],
    suites: Suites,
    request: RankingRequest,
    options: PredictOptions | None = None,
    *,
    measured: Measured = (),
    strict: bool = False,
    progress: bool = False,
) -> Ranking:
    """Rank candidates by the criterion; of equal ones the better score, then the cheaper, then the earlier line.

    Candidates that meet the targets with less than `sure` come after the others. One that cannot be used, or that
    lacks the price or the watts of the criterion, is refused with the reason.

    User measurements correct every prediction, see `predict_machines`.
    Raises: UserError for the first candidate that is refused, with `strict` or when it is the only one.
    """
    strict = strict or len(entries) == 1
    options = replace(options or PredictOptions(), neighbors=0, explain=False)
    (machines, *others), candidates, refusals = _read_candidates(entries, suites, strict=strict)
    first, rules = suites.first, suites.rules
    machines, held = hold_equal(machines, first) if options.assume and not others else (machines, ())
    candidates |= complete_facts(machines, candidates, first, assume=options.assume)
    batches = answer_machines([machines, *others], suites, options, measured, progress=progress)
    predictions = [prediction for answers in batches for prediction in answers.predictions.values()]
    ranked = []
    for prediction in predictions:
        try:
            ranked.append(_evaluate(prediction, candidates[prediction.line], request, suites))
        except UserError as error:
            if strict:
                raise
            refusals[machines.line_of(prediction.line)] = error
    ranked = sort_candidates(ranked, request, lower_is_better=rules.presentation.lower_is_better)
    # a candidate is refused for a task without an estimate that the request reads
    unread = {each.message for prediction in predictions for each in prediction.unpredicted}
    common = [note for each in measured if each for note in each.notes]
    common = list(dict.fromkeys([*find_shared_notes([each.notes for each in predictions]), *common]))
    notes_of, left_out = {each.line: each.notes for each in predictions}, unread.union(common)
    notes = [f"{each.name}: {note}" for each in ranked for note in notes_of[each.line] if note not in left_out]
    carried = {
        entry.line: {name: cell for name, cell in entry.plain_carried.items() if name not in EXTRAS}
        for entry in entries
    }
    estimates = [each for prediction in predictions for each in prediction.estimates]
    units = {each.unit for each in estimates if Output.of(each) in request.weights}
    names, tasks = Counter(each.name for each in ranked), Counter(output.task for output in request.weights)
    titles = {output: rules.names.task_titles.get(output.task, output.task) for output in request.weights}
    lines = {each.line: machines.line_of(each.line) for each in ranked}
    by_line = {entry.line: entry for entry in entries}
    first_places: Sequence[float | None] = [None] * len(ranked)
    # a line that stands for several machines has no joint score, and neither have two suites
    if len(suites) == 1 and len(set(lines.values())) == len(lines):
        placed = [(by_line[lines[each.line]], each.value, each.score) for each in ranked]
        first_places = find_first_places(placed, first, request, options, measured)
    listed = []
    for rank, (each, share) in enumerate(zip(ranked, first_places, strict=True), start=1):
        line = lines[each.line]
        name = f"{each.name} (line {line})" if names[each.name] > 1 else each.name
        listed.append(replace(each, rank=rank, line=line, name=name, probability_first=share, carried=carried[line]))
    return Ranking(
        *suites.identity,
        month=suites.name_month(options.when),
        by=request.criterion.text,
        ascending=request.criterion.ascending,
        level=options.level,
        weights={
            titles[output] if tasks[output.task] == 1 else f"{titles[output]}.{output.target}": weight
            for output, weight in request.weights.items()
        },
        unit=units.pop() if len(units) == 1 else "",
        targets=tuple(each.describe(suites) for each in request.constraints),
        sure=request.sure if request.constraints else None,
        price_head=rules.presentation.price_head,
        candidates=tuple(listed),
        notes=(*held, *notes, *_list_notes(ranked, request, suites), *common),
        refused=tuple(
            RefusedCandidate(entry.line, entry.label, str(refusals[entry.line]), carried[entry.line])
            for entry in entries
            if entry.line in refusals
        ),
    )


def _read_candidates(
    entries: Sequence[MachineEntry], suites: Suites, *, strict: bool
) -> tuple[list[ParsedMachines], dict[int, Candidate], dict[int, UserError]]:
    """Return the machines that can be used, by champion, the candidates by key, and the errors of others by line."""
    candidates: dict[int, Candidate] = {}
    refusals: dict[int, UserError] = {}
    for entry in entries:
        try:
            candidates[entry.line] = read_candidate(entry)
        except UserError as error:
            if strict:
                raise
            refusals[entry.line] = error
    usable = [entry for entry in entries if entry.line in candidates]
    sides = parse_shared(usable, suites, strict=strict)
    batch = sides[0]
    refusals |= batch.refusals
    lines = Counter(map(batch.line_of, batch.keys))
    column = suites.rules.typical_values.enumerated
    for entry in usable:
        if lines[entry.line] > 1 and candidates[entry.line].price is not None:
            requirement, fact = f"a candidate with a price must give {column}", f"{entry.label} has none"
            refusals[entry.line] = UserError(requirement, fact, f"add {column}")
            if strict:
                raise refusals[entry.line]
    by_key = {key: candidates[batch.line_of(key)] for key in batch.keys}
    for place, (key, candidate) in enumerate(by_key.items()):
        if candidate.name and lines[candidate.line] > 1:
            value = batch.cells[str(column)][place]
            by_key[key] = replace(candidate, name=f"{candidate.name}, {column} {value:g}")
    is_kept = np.array([each.line not in refusals for each in by_key.values()], dtype=bool)
    return [side.take(is_kept) for side in sides], by_key, refusals


def sort_candidates(ranked: Sequence[Ranked], request: RankingRequest, *, lower_is_better: bool) -> list[Ranked]:
    """Return the candidates, the best first: those that meet the targets; by the criterion, then the rest."""
    sign, better = 1 if request.criterion.ascending else -1, 1 if lower_is_better else -1

    def order(each: Ranked) -> tuple[float, ...]:
        unpaid = (math.inf if known is None else known for known in (each.price, each.cost, each.watts))
        probability = each.joint_probability_min or 0.0
        return (each.sure is False, sign * each.value, better * each.score, -probability, *unpaid, each.line)

    return sorted(ranked, key=order)


def complete_facts(
    machines: ParsedMachines, candidates: Mapping[int, Candidate], champion: Champion, *, assume: bool
) -> dict[int, Candidate]:
    """Return candidates by key: watts that they do not give are assumed, and what prices need is completed."""
    shown = champion.rules.presentation
    groups = (shown.price_columns, shown.score_columns, shown.memory_columns, *(each.columns for each in shown.derived))
    read = list(dict.fromkeys(name for columns in groups for name in columns))
    if not machines.keys or not (shown.power_columns or read):
        return {}
    one_task = machines.for_tasks([next(iter(champion.typical_rows))], champion)
    steps = complete_machines(one_task, champion, assume=assume)
    completed, sizes = steps.frame, shown.find_sizes(one_task.cells, steps.cells)
    power = completed[list(shown.power_columns)].prod(axis=1, skipna=False) if shown.power_columns else pd.Series()
    facts = {}
    for place, line in enumerate(map(int, completed.index)):
        known, watts = candidates[line], power.get(line)
        if known.watts is None and pd.notna(watts):
            known = replace(known, watts=float(watts), watts_assumed=True)
        of_machine = {name: float(values[place]) for name, values in sizes.items()}
        facts[line] = replace(known, cells={name: float(completed[name][line]) for name in read}, sizes=of_machine)
    return facts


def _evaluate(prediction: Prediction, candidate: Candidate, request: RankingRequest, suites: Suites) -> Ranked:
    name, shown, criterion = candidate.name or prediction.machine, suites.rules.presentation, request.criterion
    for limit in request.limits:
        limit.check(candidate, name)
    read = {*request.weights, *(each.output for each in request.constraints), criterion.quantity}
    tasks = {task for each in read for task in getattr(each, "tasks", (getattr(each, "task", ""),))}
    for refused in prediction.unpredicted:
        if refused.task in tasks:
            raise UserError(f"{name} cannot be ranked", refused.message)
    estimates = {Output.of(estimate): estimate for estimate in prediction.estimates}
    if not (size := shown.size_of(candidate.cells)) > 0:
        raise UserError(f"a machine must give {' and '.join(shown.score_columns)}", f"{name} has none")
    estimates = {output: each.times(size) for output, each in estimates.items()} if size != 1 else estimates
    shares = tuple(each.probability(estimates[each.output], suites) for each in request.constraints)
    least, most = joint_bounds(shares) if shares else (None, None)
    price = candidate.price
    if price is not None:
        price *= math.prod(candidate.cells[name] for name in shown.price_columns)
    # a price of an hour is no cost of years
    cost = None if shown.price_columns else request.cost(price, candidate.watts)
    score = weighted_score(estimates, request.weights)
    ranked = Ranked(
        rank=0,
        line=prediction.line,
        name=name,
        machine=prediction.machine,
        score=score.median,
        score_low=score.low,
        score_high=score.high,
        probabilities=shares,
        joint_probability_min=least,
        joint_probability_max=most,
        sure=None if least is None else least >= request.sure,
        watts=candidate.watts,
        watts_assumed=candidate.watts_assumed,
        price=price,
        value=math.nan,
        value_low=None,
        value_high=None,
        trust=lowest_trust(each for output, each in estimates.items() if output in read),
        cost=cost,
        cost_per_score_year=None if cost is None else cost / (score.median * request.years),
    )
    for word in criterion.expenses:
        if word not in ranked.facts:
            label = f"candidate {candidate.line}" + (f" ({candidate.name})" if candidate.name else "")
            remedies = {COST: "add the column price; electricity needs watts", WATTS: shown.power_remedy}
            remedy = remedies.get(word, "add it in the column price")
            raise UserError(f"--by {criterion.text} needs the {word} of every candidate", f"{label} has none", remedy)
    derived = {each.name: each for each in prediction.derived}
    quantity = criterion.quantity
    if isinstance(quantity, DerivedOutput) and quantity.name not in derived:
        reason = next((note for note in prediction.notes if note.startswith(f"{quantity.name} is left out")), "")
        needs = f"it needs {' and '.join(quantity.columns)}"
        raise UserError(f"--by {criterion.text} needs {quantity.name}", reason or f"{name} has none: {needs}")
    value = evaluate_criterion(criterion, ranked.facts, score, estimates, derived)
    return replace(ranked, value=value.median, value_low=value.low, value_high=value.high)


def _list_notes(ranked: Sequence[Ranked], request: RankingRequest, suites: Suites) -> list[str]:
    shown = suites.rules.presentation
    notes = list(filter(None, [shown.size_note]))
    notes += [f"{limit.describe()}: candidates beyond it are refused" for limit in request.limits]
    assumed = sum(candidate.watts_assumed for candidate in ranked)
    if assumed:
        which = "" if assumed == len(ranked) else " where marked ~"
        notes.append(f"watts assumed{which}: {shown.power_meaning}")
    if len(request.constraints) > 1:
        notes.append(
            "all targets together: the errors of one machine are correlated by an unknown amount; the two numbers "
            "bound the probability for any correlation, and the ranking uses the lower one"
        )
    if shown.price_columns and any(candidate.price is not None for candidate in ranked):
        notes.append(f"price: the given one of an hour x {' x '.join(shown.price_columns)}")
    if any(candidate.cost is not None for candidate in ranked):
        notes.append(request.describe_cost())
    return [*notes, *suites.notices]
