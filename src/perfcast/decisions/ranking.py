"""Ranking of candidates by a criterion, with the probability that each meets its targets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from perfcast.decisions.candidates import Candidate, read_candidate
from perfcast.decisions.cost_rates import PRICE_ALONE, CostRates
from perfcast.decisions.criteria import (
    COST,
    PROBABILITY,
    Output,
    evaluate_criterion,
    read_constraints,
    read_criterion,
    read_weights,
    weighted_score,
)
from perfcast.decisions.joint_errors import JointErrors
from perfcast.decisions.order_draws import criterion_facts, find_first_shares
from perfcast.decisions.ranking_answer import SURE, Ranked, Ranking, RankingRequest, RefusedCandidate
from perfcast.inference.champion import Champion
from perfcast.inference.draws import DrawPredictions, complete_machines, hold_equal, impute_draws
from perfcast.inference.machine_files import EXTRAS, PRICE, WATTS, MachineEntry
from perfcast.inference.parse import ParsedMachines, parse_batch
from perfcast.inference.predict import PredictOptions, predict_machines
from perfcast.inference.prediction import Prediction
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.uncertainty.conformal import joint_bounds
from perfcast.utils.errors import UserError

MAX_DRAWN = 100
"""Most candidates whose order is drawn: the correlations grow with their square."""
_MEMORY = "memory.total"
__all__ = ["PLAIN", "Ranked", "Ranking", "RankingRequest", "RefusedCandidate", "rank_machines", "read_request"]
PLAIN: PredictOptions = PredictOptions(neighbors=0, explain=False)


def read_request(
    targets: Sequence[str],
    champion: Champion,
    *,
    by: str = "score",
    weights: str | None = None,
    sure: float | None = None,
    rates: CostRates = PRICE_ALONE,
) -> RankingRequest:
    """Return the request of typed targets, criterion and weights.

    Raises: UserError for a word that has no meaning, and for `sure` or a probability without targets.
    """
    constraints = read_constraints(targets, champion)
    weights_of_outputs = read_weights(weights, constraints, champion)
    criterion = read_criterion(by, champion)
    if COST in criterion.exponents and champion.rules.price_columns:
        raise UserError("--by must not name the cost where prices are per hour", f"it is {by!r}", "name the price")
    if not constraints and (sure is not None or PROBABILITY in criterion.exponents):
        word = "--sure" if sure is not None else f"--by {criterion.text}"
        raise UserError(f"{word} needs a target", "there is no --target", "such as 'CINT2017rate >= 1500'")
    return RankingRequest(criterion, weights_of_outputs, constraints, SURE if sure is None else sure, rates)


def rank_machines(
    entries: Sequence[MachineEntry],
    champion: Champion,
    request: RankingRequest,
    options: PredictOptions = PLAIN,
    *,
    measurements: UserMeasurements | None = None,
    strict: bool = False,
    progress: bool = False,
) -> Ranking:
    """Rank candidates by the criterion; of equal ones the better score, then the cheaper, then the earlier line.

    Candidates that meet the targets with less than `sure` come after the others, and are first in no draw. One that
    cannot be used, or that lacks the price or the watts of the criterion, is refused with the reason.

    User measurements correct every prediction, see `predict_machines`. The word `probability` of a criterion is the
    lower bound of the probability that all targets are met together.
    Raises: UserError for the first candidate that is refused, with `strict` or when it is the only one.
    """
    strict = strict or len(entries) == 1
    machines, candidates, refusals = _read_candidates(entries, champion, strict=strict)
    machines, held = hold_equal(machines, champion) if options.assume else (machines, ())
    facts = _find_facts(machines, candidates, champion, options)
    plain = replace(options, neighbors=0, explain=False)
    predictions = predict_machines(machines, champion, plain, measurements, progress=progress)
    common = measurements.notes if measurements else ()
    own_notes = {each.line: tuple(note for note in each.notes if note not in common) for each in predictions}
    ranked = []
    for prediction in predictions:
        try:
            ranked.append(_evaluate(prediction, candidates[prediction.line], facts, request, champion))
        except UserError as error:
            if strict:
                raise
            refusals[machines.line_of(prediction.line)] = error
    ranked = sort_candidates(ranked, request, lower_is_better=champion.rules.lower_is_better)
    shares: Mapping[int, float] = {}
    above = [candidate for candidate in ranked if candidate.sure is not False]
    if champion.calibrated is not None and 2 <= len(above) <= MAX_DRAWN:
        drawn_machines = machines.take(np.isin(machines.cells.index, [candidate.line for candidate in above]))
        drawn = DrawPredictions(impute_draws(drawn_machines, champion, assume=options.assume), champion)
        errors = JointErrors(drawn, champion, options, measurements)
        shares = find_first_shares(predictions, above, request, errors, {line: facts[line].cells for line in facts})
    lined = [replace(each, first_share=shares.get(each.line), line=machines.line_of(each.line)) for each in ranked]
    carried = {
        entry.line: {name: cell for name, cell in entry.plain_carried.items() if name not in EXTRAS}
        for entry in entries
    }
    units = {
        estimate.unit
        for prediction in predictions
        for estimate in prediction.estimates
        if Output.of(estimate) in request.weights
    }
    return Ranking(
        dataset=champion.dataset,
        champion=champion.name,
        preset=champion.preset,
        by=request.criterion.text,
        ascending=request.criterion.ascending,
        level=options.level,
        weights={_name_output(output, request.weights, champion): weight for output, weight in request.weights.items()},
        unit=units.pop() if len(units) == 1 else "",
        targets=tuple(each.describe(champion) for each in request.constraints),
        sure=request.sure if request.constraints else None,
        candidates=tuple(
            replace(each, rank=rank, carried=carried[each.line])
            for rank, each in enumerate(_make_names_unique(lined), start=1)
        ),
        notes=(*held, *_list_notes(ranked, own_notes, request, champion), *common),
        refused=tuple(
            RefusedCandidate(entry.line, entry.label, str(refusals[entry.line]), carried[entry.line])
            for entry in entries
            if entry.line in refusals
        ),
    )


def _read_candidates(
    entries: Sequence[MachineEntry], champion: Champion, *, strict: bool
) -> tuple[ParsedMachines, dict[int, Candidate], dict[int, UserError]]:
    """Return the machines that can be used, the candidates by key, and the errors of the others by line."""
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
    batch = parse_batch(usable, champion, strict=strict, has_task=False)
    refusals |= batch.refusals
    keys = batch.keys
    lines = Counter(map(batch.line_of, keys))
    column = champion.rules.enumerated
    for entry in usable:
        if lines[entry.line] > 1 and candidates[entry.line].price is not None:
            requirement, fact = f"a candidate with a price must give {column}", f"{entry.label} has none"
            refusals[entry.line] = UserError(requirement, fact, f"add {column}")
            if strict:
                raise refusals[entry.line]
    by_key = {key: candidates[batch.line_of(key)] for key in keys}
    for place, (key, candidate) in enumerate(by_key.items()):
        if candidate.name and lines[candidate.line] > 1:
            value = batch.cells[str(column)][place]
            by_key[key] = replace(candidate, name=f"{candidate.name}, {column} {value:g}")
    is_kept = np.array([each.line not in refusals for each in by_key.values()], dtype=bool)
    return batch.take(is_kept), by_key, refusals


def sort_candidates(ranked: Sequence[Ranked], request: RankingRequest, *, lower_is_better: bool) -> list[Ranked]:
    """Return the candidates, the best first: those that meet the targets; by the criterion, then the rest."""
    sign, better = 1 if request.criterion.ascending else -1, 1 if lower_is_better else -1

    def order(each: Ranked) -> tuple[float, ...]:
        unpaid = (math.inf if known is None else known for known in (each.price, each.cost, each.watts))
        probability = each.joint_probability_min or 0.0
        return (each.sure is False, sign * each.value, better * each.score, -probability, *unpaid, each.line)

    return sorted(ranked, key=order)


@dataclass(frozen=True)
class _Facts:
    """Watts of a candidate, whether they were assumed, its memory in GB, and numbers that its price or others need."""

    watts: float | None = None
    assumed: bool = False
    memory_gb: float | None = None
    cells: Mapping[str, float] = field(default_factory=dict)


def _find_facts(
    machines: ParsedMachines, candidates: Mapping[int, Candidate], champion: Champion, options: PredictOptions
) -> dict[int, _Facts]:
    """Return the facts of every candidate by key; watts that it does not give are assumed, memory is completed."""
    facts = {key: _Facts(watts=each.watts) for key, each in candidates.items()}
    memory = champion.fields.fields.get(_MEMORY)
    rules = champion.rules
    read = list(dict.fromkeys([*rules.price_columns, *(name for each in rules.derived for name in each.columns)]))
    if not machines.keys or not (rules.power_columns or memory or read):
        return facts
    one_task = machines.for_tasks([next(iter(champion.typical_rows))], champion)
    completed = complete_machines(one_task, champion, assume=options.assume).frame
    power_columns = list(rules.power_columns)
    power = completed[power_columns].prod(axis=1, skipna=False) if power_columns else pd.Series(dtype=float)
    for line in map(int, completed.index):
        known = facts[line]
        if known.watts is None and pd.notna(power.get(line)):
            known = replace(known, watts=float(power[line]), assumed=True)
        gigabytes = completed[memory.columns[0]][line] if memory else None
        cells = {name: float(completed[name][line]) for name in read}
        facts[line] = replace(known, memory_gb=float(gigabytes) if pd.notna(gigabytes) else None, cells=cells)
    return facts


def _evaluate(
    prediction: Prediction,
    candidate: Candidate,
    facts_by_line: Mapping[int, _Facts],
    request: RankingRequest,
    champion: Champion,
) -> Ranked:
    read = {*request.weights, *(each.output for each in request.constraints), *request.criterion.exponents}
    tasks = {task for each in read for task in getattr(each, "tasks", (getattr(each, "task", ""),))}
    for refused in prediction.unpredicted:
        if refused.task in tasks:
            raise UserError(f"{candidate.name or prediction.machine} cannot be ranked", refused.message)
    estimates = {Output.of(estimate): estimate for estimate in prediction.estimates}
    shares = tuple(each.probability(estimates[each.output], champion) for each in request.constraints)
    least, most = joint_bounds(shares) if shares else (None, None)
    facts = facts_by_line[prediction.line]
    rules = champion.rules
    price = candidate.price
    if price is not None:
        price *= math.prod(facts.cells[name] for name in rules.price_columns)
    # a price of an hour is no cost of years
    cost = None if rules.price_columns else request.rates.total(price, facts.watts, facts.memory_gb)
    known = criterion_facts(facts.watts, price, cost, least)
    for word in (WATTS, PRICE, COST, PROBABILITY):
        if word not in known and word in request.criterion.exponents:
            raise _missing_fact(word, request.criterion.text, candidate)
    score = weighted_score(estimates, request.weights)
    derived = {each.name: each for each in prediction.derived}
    value = evaluate_criterion(request.criterion, known, score, estimates, derived)
    lowest = min(estimates.values(), key=lambda estimate: estimate.in_domain_score or 0.0)
    return Ranked(
        rank=0,
        line=prediction.line,
        name=candidate.name or prediction.machine,
        machine=prediction.machine,
        score=score.median,
        score_low=score.low,
        score_high=score.high,
        probabilities=shares,
        joint_probability_min=least,
        joint_probability_max=most,
        sure=None if least is None else least >= request.sure,
        watts=facts.watts,
        watts_assumed=facts.assumed,
        price=price,
        value=value.median,
        value_low=value.low,
        value_high=value.high,
        trust=lowest.trust,
        cost=cost,
        cost_per_score_year=None if cost is None else cost / (score.median * request.rates.years),
    )


def _missing_fact(word: str, by: str, candidate: Candidate) -> UserError:
    label = f"candidate {candidate.line}" + (f" ({candidate.name})" if candidate.name else "")
    remedy = "add it in the column price"
    if word == COST:
        remedy = "add the column price; electricity needs watts, and memory its capacity"
    if word == WATTS:
        remedy = "the power of its processors is unknown, too: add the column watts, or tdp"
    return UserError(f"--by {by} needs the {word} of every candidate", f"{label} has none", remedy)


def _make_names_unique(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Add the line to names that several candidates have."""
    counts = pd.Series([candidate.name for candidate in ranked]).value_counts()
    return [
        replace(candidate, name=f"{candidate.name} (line {candidate.line})")
        if counts[candidate.name] > 1
        else candidate
        for candidate in ranked
    ]


def _list_notes(
    ranked: Sequence[Ranked],
    notes_of: Mapping[int, tuple[str, ...]],
    request: RankingRequest,
    champion: Champion,
) -> tuple[str, ...]:
    notes = [f"{candidate.name}: {note}" for candidate in ranked for note in notes_of.get(candidate.line, ())]
    assumed = sum(candidate.watts_assumed for candidate in ranked)
    if assumed:
        which = "" if assumed == len(ranked) else " where marked ~"
        notes.append(f"watts assumed{which}: {champion.rules.power_meaning}")
    if len(request.constraints) > 1:
        notes.append(
            "all targets together: the errors of one machine are correlated by an unknown amount; the two numbers "
            "bound the probability for any correlation, and the ranking uses the lower one"
        )
    if champion.rules.price_columns and any(candidate.price is not None for candidate in ranked):
        notes.append(f"price: the given one of an hour x {' x '.join(champion.rules.price_columns)}")
    if any(candidate.cost is not None for candidate in ranked):
        notes.append(request.rates.describe())
    return tuple(notes)


def _name_output(output: Output, outputs: Mapping[Output, float], champion: Champion) -> str:
    """Return the task of an output, with its target where several outputs have the task."""
    alone = sum(other.task == output.task for other in outputs) == 1
    title = champion.rules.task_titles.get(output.task, output.task)
    return title if alone else f"{title}.{output.target}"
