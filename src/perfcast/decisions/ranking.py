"""Ranking of candidates by a criterion, with the probability that each meets its targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from perfcast.decisions.cost_rates import PRICE_ALONE, CostRates
from perfcast.decisions.criteria import (
    COST,
    PRICE,
    PROBABILITY,
    WATTS,
    Candidate,
    Output,
    evaluate_criterion,
    read_constraints,
    read_criterion,
    read_weights,
    split_candidates,
    weighted_score,
)
from perfcast.decisions.joint_errors import JointErrors
from perfcast.decisions.order_draws import criterion_facts, find_first_shares
from perfcast.decisions.ranking_answer import Ranked, Ranking, RankingRequest, RefusedCandidate
from perfcast.inference.batch import parse_batch
from perfcast.inference.champion import Champion
from perfcast.inference.draw_predictions import DrawPredictions, complete_machines
from perfcast.inference.impute import hold_equal, impute_draws
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachine, ParsedMachines
from perfcast.inference.predict import PredictOptions, predict_machines
from perfcast.inference.prediction import Prediction
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.schema.table import Tag
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
    ascending: bool = False,
    rates: CostRates = PRICE_ALONE,
) -> RankingRequest:
    """Return the request of typed targets, criterion and weights. Raises: UserError for a word that has no meaning."""
    constraints = read_constraints(targets, champion)
    weights_of_outputs = read_weights(weights, constraints, champion)
    criterion = read_criterion(by, champion)
    if COST in criterion.exponents and champion.rules.price_columns:
        raise UserError("--by must not name the cost where prices are per hour", f"it is {by!r}", "name the price")
    ascending = ascending or (champion.rules.lower_is_better and criterion.rises > 0)
    return RankingRequest(criterion, weights_of_outputs, constraints, sure, ascending, rates)


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
    """Rank candidates by the criterion; of equal ones the higher score, then the earlier line comes first.

    A candidate that cannot be used, or that lacks the price or the watts of the criterion, is refused with the reason.

    User measurements correct every prediction, see `predict_machines`. The word `probability` of a criterion is the
    lower bound of the probability that all targets are met together.
    Raises: UserError for the first candidate that is refused, with `strict` or when it is the only one.
    """
    if request.sure is not None and not request.constraints:
        raise UserError("--sure needs a target", "there is no --target")
    if PROBABILITY in request.criterion.exponents and not request.constraints:
        fact = "there is no --target"
        raise UserError(f"--by {request.criterion.text} needs a target", fact, "such as 'CINT2017rate >= 1500'")
    strict = strict or len(entries) == 1
    machines, candidates, refusals = _read_candidates(entries, champion, strict=strict)
    machines, held = hold_equal(machines, champion) if options.assume else (machines, ())
    facts = _find_facts(machines, list(candidates.values()), champion, options)
    plain = replace(options, neighbors=0, explain=False)
    predictions = predict_machines(machines, champion, plain, measurements, progress=progress)
    common = measurements.notes if measurements else ()
    own_notes = {each.line: tuple(note for note in each.notes if note not in common) for each in predictions}
    machines = replace(machines, notes=own_notes)
    ranked = []
    for prediction in predictions:
        try:
            ranked.append(_evaluate(prediction, candidates[prediction.line], facts, request, champion))
        except UserError as error:
            if strict:
                raise
            refusals[prediction.line] = error
    sign, better = 1 if request.ascending else -1, 1 if champion.rules.lower_is_better else -1
    ranked.sort(
        key=lambda candidate: (
            candidate.sure is False,
            sign * candidate.value,
            better * candidate.score,
            candidate.line,
        )
    )
    errors = None
    if champion.calibrated is not None and 2 <= len(ranked) <= MAX_DRAWN:
        drawn = DrawPredictions(impute_draws(machines, champion, assume=options.assume), champion)
        errors = JointErrors(drawn, champion, options, measurements)
    cells = {line: known.cells for line, known in facts.items()}
    shares = find_first_shares(predictions, ranked, request, errors, cells)
    ranked = [replace(each, first_share=share) for each, share in zip(ranked, shares, strict=True)]
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
        ascending=request.ascending,
        level=options.level,
        weights={_name_output(output, request.weights): weight for output, weight in request.weights.items()},
        unit=units.pop() if len(units) == 1 else "",
        targets=tuple(map(str, request.constraints)),
        sure=request.sure,
        candidates=tuple(
            replace(candidate, rank=rank) for rank, candidate in enumerate(_make_names_unique(ranked), start=1)
        ),
        notes=(*held, *_list_notes(ranked, machines, request, champion), *common),
        refused=tuple(
            RefusedCandidate(entry.line, _name_refused(entry, candidates), str(refusals[entry.line]))
            for entry in entries
            if entry.line in refusals
        ),
    )


def _read_candidates(
    entries: Sequence[MachineEntry], champion: Champion, *, strict: bool
) -> tuple[ParsedMachines, dict[int, Candidate], dict[int, UserError]]:
    """Return the machines that can be used, the candidates by line, and the errors of the others by line."""
    task = champion.reference_data.measured.column_of(Tag.TASK)

    def refuse_task(machine: ParsedMachine) -> None:
        if task in machine.cells:
            remedy = "leave it out; --target and --weights name the tasks"
            raise UserError("candidates must name no task", f"{machine.label} has {machine.typed[task].name}", remedy)

    machine_entries, candidates, refusals = [], {}, {}
    for entry in entries:
        try:
            (machine_entry,), (candidate,) = split_candidates([entry])
        except UserError as error:
            if strict:
                raise
            refusals[entry.line] = error
            continue
        machine_entries.append(machine_entry)
        candidates[entry.line] = candidate
    batch = parse_batch(machine_entries, champion, strict=strict, check=refuse_task)
    return batch.machines, candidates, refusals | dict(batch.refusals)


def _name_refused(entry: MachineEntry, candidates: Mapping[int, Candidate]) -> str:
    candidate = candidates.get(entry.line)
    return candidate.name if candidate and candidate.name else entry.label


@dataclass(frozen=True)
class _Facts:
    """Watts of a candidate, whether they were assumed, its memory in GB, and numbers that its price or others need."""

    watts: float | None = None
    assumed: bool = False
    memory_gb: float | None = None
    cells: Mapping[str, float] = field(default_factory=dict)


def _find_facts(
    machines: ParsedMachines, candidates: Sequence[Candidate], champion: Champion, options: PredictOptions
) -> dict[int, _Facts]:
    """Return the facts of every candidate by line; watts that it does not give are assumed, memory is completed."""
    facts = {each.line: _Facts(watts=each.watts) for each in candidates}
    memory = champion.fields.fields.get(_MEMORY)
    rules = champion.rules
    read = list(dict.fromkeys([*rules.price_columns, *(name for each in rules.derived for name in each.columns)]))
    if machines.frame.empty or not (rules.power_columns or memory or read):
        return facts
    one_task = machines.frame.assign(
        **{champion.reference_data.measured.column_of(Tag.TASK): next(iter(champion.typical_rows))}
    )
    completed = complete_machines(machines.with_frame(one_task), champion, assume=options.assume).frame
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
    domains = [
        (estimate.in_domain_score, estimate.least_similar_group)
        for estimate in estimates.values()
        if estimate.in_domain_score is not None
    ]
    in_domain_score, least_similar_group = min(domains, key=lambda pair: pair[0]) if domains else (None, None)
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
        sure=None if request.sure is None or least is None else least >= request.sure,
        watts=facts.watts,
        watts_assumed=facts.assumed,
        price=price,
        value=value.median,
        value_low=value.low,
        value_high=value.high,
        in_domain_score=in_domain_score,
        least_similar_group=least_similar_group,
        memory_gb=facts.memory_gb,
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
    ranked: Sequence[Ranked], machines: ParsedMachines, request: RankingRequest, champion: Champion
) -> tuple[str, ...]:
    notes = [f"{candidate.name}: {note}" for candidate in ranked for note in machines.notes.get(candidate.line, ())]
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
    last = sum(candidate.sure is False for candidate in ranked)
    if last:
        fact = f"{last} of {len(ranked)} candidates meet the targets with less than {request.sure:g}"
        notes.append(f"{fact}: they come last")
    return tuple(notes)


def _name_output(output: Output, outputs: Mapping[Output, float]) -> str:
    """Return the task of an output, with its target where several outputs have the task."""
    alone = sum(other.task == output.task for other in outputs) == 1
    return output.task if alone else f"{output.task}.{output.target}"
