"""Ranking of candidates by a criterion, with the probability that each meets its targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import pandas as pd

from perfcast.decisions.criteria import (
    PRICE,
    PROBABILITY,
    WATTS,
    Candidate,
    Constraint,
    Criterion,
    Output,
    evaluate_criterion,
    read_constraints,
    read_criterion,
    read_weights,
    split_candidates,
    weighted_score,
)
from perfcast.inference.batch import parse_batch
from perfcast.inference.champion import Champion
from perfcast.inference.draw_predictions import complete_machines
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.parse import ParsedMachine, ParsedMachines
from perfcast.inference.predict import PredictOptions, predict_machines
from perfcast.inference.prediction import OK, REFUSED, Answer, Prediction
from perfcast.inference.user_measurements import UserMeasurements
from perfcast.schema.table import Tag
from perfcast.uncertainty.conformal import joint_bounds
from perfcast.utils.errors import UserError

PLAIN: PredictOptions = PredictOptions(neighbors=0, explain=False)


@dataclass(frozen=True)
class Ranked:
    """One candidate with its rank.

    `probabilities` are those of the targets, in their order; the probability of all targets together is between
    `joint_probability_min` and `joint_probability_max`, whatever the correlation of their errors. `value` is that of
    the criterion, `in_domain_score` the lowest one of its predictions. Units: `watts` W, `price` as given, `score` that
    of its tasks.
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
    in_domain_score: float | None
    least_similar_group: str | None


@dataclass(frozen=True)
class RefusedCandidate:
    """Candidate that cannot be used, and the reason."""

    line: int
    name: str
    message: str


@dataclass(frozen=True, repr=False)
class Ranking(Answer):
    """Candidates, the best first, with the criterion; `refused` ones have no rank."""

    dataset: str
    champion: str
    preset: str
    by: str
    ascending: bool
    level: float
    weights: Mapping[str, float]
    unit: str
    targets: tuple[str, ...]
    sure: float | None
    candidates: tuple[Ranked, ...]
    notes: tuple[str, ...]
    kind: str = "estimates, not official results"
    refused: tuple[RefusedCandidate, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return one row per candidate, the best first, the refused ones last."""
        rows: list[dict[str, object]] = []
        for candidate in self.candidates:
            row = asdict(candidate)
            shares = zip(self.targets, row.pop("probabilities"), strict=True)
            by_target = {f"probability of {target}": share for target, share in shares}
            rows.append({**row, **by_target, "status": OK, "message": ""})
        rows += [{**asdict(candidate), "status": REFUSED} for candidate in self.refused]
        return pd.DataFrame(rows)


@dataclass(frozen=True)
class RankingRequest:
    """Criterion and constraints of a ranking; candidates that are less probable than `sure` come last."""

    criterion: Criterion
    weights: Mapping[Output, float]
    constraints: tuple[Constraint, ...] = ()
    sure: float | None = None
    ascending: bool = False


def read_request(
    targets: Sequence[str],
    champion: Champion,
    *,
    by: str = "score",
    weights: str | None = None,
    sure: float | None = None,
    ascending: bool = False,
) -> RankingRequest:
    """Return the request of typed targets, criterion and weights. Raises: UserError for a word that has no meaning."""
    constraints = read_constraints(targets, champion)
    weights_of_outputs = read_weights(weights, constraints, champion)
    return RankingRequest(read_criterion(by, champion), weights_of_outputs, constraints, sure, ascending)


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
    watts = _find_watts(machines, list(candidates.values()), champion, options)
    plain = replace(options, neighbors=0, explain=False)
    predictions = predict_machines(machines, champion, plain, measurements, progress=progress)
    ranked = []
    for prediction in predictions:
        try:
            ranked.append(_evaluate(prediction, candidates[prediction.line], watts, request, champion))
        except UserError as error:
            if strict:
                raise
            refusals[prediction.line] = error
    sign = 1 if request.ascending else -1
    ranked.sort(
        key=lambda candidate: (candidate.sure is False, sign * candidate.value, -candidate.score, candidate.line)
    )
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
        notes=(*_list_notes(ranked, machines, request, champion), *(measurements.notes if measurements else ())),
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


def _find_watts(
    machines: ParsedMachines, candidates: Sequence[Candidate], champion: Champion, options: PredictOptions
) -> dict[int, tuple[float, bool]]:
    """Return the watts of every candidate that has any, by line, and whether they were assumed."""
    watts = {candidate.line: (candidate.watts, False) for candidate in candidates if candidate.watts is not None}
    others = machines.frame.drop(index=list(watts))
    if not champion.rules.power_columns or others.empty:
        return watts
    one_task = others.assign(
        **{champion.reference_data.measured.column_of(Tag.TASK): next(iter(champion.typical_rows))}
    )
    completed = complete_machines(machines.with_frame(one_task), champion, assume=options.assume).frame
    power = completed[list(champion.rules.power_columns)].prod(axis=1, skipna=False).dropna()
    return {**watts, **{int(line): (float(value), True) for line, value in power.items()}}  # type: ignore[call-overload]


def _evaluate(
    prediction: Prediction,
    candidate: Candidate,
    watts: Mapping[int, tuple[float, bool]],
    request: RankingRequest,
    champion: Champion,
) -> Ranked:
    estimates = {Output.of(estimate): estimate for estimate in prediction.estimates}
    shares = tuple(each.probability(estimates[each.output], champion) for each in request.constraints)
    least, most = joint_bounds(shares) if shares else (None, None)
    power, assumed = watts.get(prediction.line, (None, False))
    facts = {WATTS: power, PRICE: candidate.price, PROBABILITY: least}
    for word, fact in facts.items():
        if fact is None and word in request.criterion.exponents:
            raise _missing_fact(word, request.criterion.text, candidate)
    known = {word: fact for word, fact in facts.items() if fact is not None}
    score = weighted_score(estimates, request.weights)
    value = evaluate_criterion(request.criterion, known, score, estimates)
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
        watts=power,
        watts_assumed=assumed,
        price=candidate.price,
        value=value.median,
        value_low=value.low,
        value_high=value.high,
        in_domain_score=in_domain_score,
        least_similar_group=least_similar_group,
    )


def _missing_fact(word: str, by: str, candidate: Candidate) -> UserError:
    label = f"candidate {candidate.line}" + (f" ({candidate.name})" if candidate.name else "")
    remedy = "add it in the column price"
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
    last = sum(candidate.sure is False for candidate in ranked)
    if last:
        fact = f"{last} of {len(ranked)} candidates meet the targets with less than {request.sure:g}"
        notes.append(f"{fact}: they come last")
    return tuple(notes)


def _name_output(output: Output, outputs: Mapping[Output, float]) -> str:
    """Return the task of an output, with its target where several outputs have the task."""
    alone = sum(other.task == output.task for other in outputs) == 1
    return output.task if alone else f"{output.task}.{output.target}"
