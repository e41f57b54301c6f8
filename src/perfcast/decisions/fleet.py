"""Size of a fleet: how many of a machine replace the machines of a fleet, with the probability that a number suffices.

A mix gives the share of the fleet's time that each task takes. A machine of the fleet then needs utilization x sum over
tasks of share x its score / score of the new machine; all scores are drawn jointly, see `joint_scores`. Memory, local
disk and network of the fleet need a number of machines each, see `dimensions`: the largest of all numbers counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from perfcast.decisions.criteria import Candidate, RefusedCandidate, read_candidate
from perfcast.decisions.dimensions import (
    MEMORY,
    SPEED,
    Held,
    count_machines,
    describe_dimensions,
    name_totals,
    read_amounts,
)
from perfcast.decisions.fleet_power import PowerDraws, draw_power, list_power_notes, summarize_power
from perfcast.decisions.joint_scores import MachineScores, predict_scores
from perfcast.decisions.ranking import complete_facts
from perfcast.decisions.sizing_request import SizingRequest, carry_fleet_fields, read_count, read_utilization
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.options import PredictOptions
from perfcast.inference.prediction import (
    ESTIMATE,
    OK,
    REFUSED,
    ChampionAnswer,
    find_shared_notes,
    lowest_trust,
    name_carried,
)
from perfcast.inference.suites import Measured
from perfcast.utils.errors import UserError

MAX_TARGETS = 20
_MAX_ESTIMATES = 2500
"""Most different machines x tasks: the correlations of their errors are a matrix."""
_MAX_COUNTS = 41
_TAIL = 0.005
_MAX_DRIVERS, _MAX_NARROWINGS = 5, 3
_MAX_WIDTH_LEFT = 0.95
"""Remaining width of the interval above which a result is not worth a line."""
_ROUNDING = 1e-9
MEASURED, PARTLY, ESTIMATED = "measured", "partly measured", "estimated"


@dataclass(frozen=True)
class CountChance:
    """Number of machines, and the probability that it suffices."""

    count: int
    suffices: float


@dataclass(frozen=True)
class FleetShare:
    """Machine of the fleet, its number and its share of the need; `measured` is one of MEASURED, PARTLY, ESTIMATED."""

    machine: str
    count: int
    share: float
    measured: str


@dataclass(frozen=True)
class Narrowing:
    """Interval of the number, `low` to `high`, once the scores of a machine are known; `width` is the share left."""

    machine: str
    low: int
    high: int
    width: float


@dataclass(frozen=True)
class SizedTarget:
    """Number of machines of one kind that replace the fleet.

    `needed`, spares included, suffices with the asked probability; `low` to `high` is the interval of the number.
    `needs` is the number by dimension, neither rounded nor with spares; `limiting` is the one that needs the most.
    `ratio` is that of replaced machines to new ones, without spares and rounding. `measured` is MEASURED where
    published results of this very machine are the source of all scores. `speedups` are its scores over the mean of the
    machines that it replaces. `totals` are those of the `needed` machines, `load` is their mean utilization
    over the years, and `watts_basis` one of the words of `fleet_power`, None without watts.
    Units: `watts` W at full load of all; `energy`, with its interval, kWh a year at `load`; `carbon` kg a year; `price`
    of one; `cost` a year.
    """

    line: int
    name: str
    machine: str
    needed: int
    low: int
    high: int
    limiting: str
    needs: Mapping[str, float]
    counts: tuple[CountChance, ...]
    ratio: float
    ratio_low: float
    ratio_high: float
    measured: str
    trust: str
    speedups: Mapping[str, float]
    totals: Mapping[str, float]
    watts: float | None
    watts_basis: str | None
    load: float
    price: float | None
    energy: float | None
    energy_low: float | None
    energy_high: float | None
    carbon: float | None
    cost: float | None
    narrowed_by: tuple[Narrowing, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Sizing(ChampionAnswer):
    """Targets in their order, and the fleet of `machines` that they replace, without the `refused` rows.

    `drivers` are the machines with the largest shares of the need, `totals` those of the fleet. Units: `watts` W of the
    fleet at full load and `energy` kWh a year, with its interval, at its utilization; None where the watts of a machine
    are not known.
    """

    level: float
    mix: Mapping[str, float]
    options: Mapping[str, float]
    machines: int
    rows: int
    watts: float | None
    energy: float | None
    energy_low: float | None
    energy_high: float | None
    totals: Mapping[str, float]
    drivers: tuple[FleetShare, ...]
    targets: tuple[SizedTarget, ...]
    notes: tuple[str, ...] = ()
    kind: str = ESTIMATE
    refused: tuple[RefusedCandidate, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return one row per target and number of machines, the refused rows last."""
        rows: list[dict[str, Any]] = []
        for target in self.targets:
            plain = {name: value for name, value in vars(target).items() if not isinstance(value, (tuple, Mapping))}
            speedups = {f"speedup {task}": value for task, value in target.speedups.items()}
            needs = {f"needed for {name}": count for name, count in target.needs.items()}
            common = {**plain, **target.totals, **speedups, **needs, "status": OK, "message": ""}
            rows += [{**common, **asdict(chance)} for chance in target.counts]
        for each in self.refused:
            row = {**asdict(each), "status": REFUSED}
            rows.append({**row, **name_carried(row.pop("carried"), tuple(row))})
        return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Row:
    """Row of the fleet, or a target: `place` is that of its machine among the different ones."""

    entry: MachineEntry
    place: int
    candidate: Candidate
    count: int
    load: float


def size_fleet(
    fleet: Sequence[MachineEntry],
    onto: Sequence[MachineEntry],
    champion: Champion,
    request: SizingRequest,
    options: PredictOptions | None = None,
    *,
    measured: Measured = (),
    brief: bool = False,
) -> Sizing:
    """Size every target for a fleet; rows and targets that cannot be used are refused with the reason.

    Equal machines are predicted once, and equal requests have equal draws. A `brief` answer has any number of targets,
    and does not tell what would narrow their intervals.
    Raises: UserError where no row or no target can be used, and for more than can be computed.
    """
    if not brief and not 1 <= len(onto) <= MAX_TARGETS:
        raise UserError(f"a fleet must have 1 to {MAX_TARGETS} targets", f"it has {len(onto)}", "name them with --onto")
    options = replace(options or PredictOptions(), neighbors=0, explain=False)
    rows, targets, refused = list[_Row](), list[_Row](), list[RefusedCandidate]()
    machines, candidates = dict[Any, MachineEntry](), dict[int, Candidate]()
    for number, entry in enumerate([*fleet, *onto]):
        try:
            of_fleet = number < len(fleet)
            entry = carry_fleet_fields(entry) if of_fleet else entry  # noqa: PLW2901
            count, used = (read_count(entry), read_utilization(entry)) if of_fleet else (1, 1.0)
            candidate = read_candidate(entry)
        except UserError as error:
            refused.append(_refuse(entry, str(error)))
            continue
        texts = sorted((name.strip().lower(), str(value).strip()) for name, value in entry.values.items())
        place = machines.setdefault((candidate.watts, *texts), entry._replace(line=len(machines))).line
        candidates.setdefault(place, candidate)
        (rows if of_fleet else targets).append(_Row(entry, place, candidate, count, count * used))
    placed, most = [*machines.values()], _MAX_ESTIMATES // len(request.mix)
    if len(placed) > most:
        fact = f"there are {len(placed)}"
        raise UserError(f"a fleet may have {most} different machines", fact, "leave out fields that matter little")
    scores, errors = predict_scores(placed, champion, request.mix, options, measured)
    for row in (*rows, *targets):
        if row.place in errors:
            message = str(errors[row.place]).replace(placed[row.place].label, row.entry.label)
            refused.append(_refuse(row.entry, message))
    rows, targets = ([row for row in listed if row.place not in errors] for listed in (rows, targets))
    if not rows or not targets or scores is None:
        first = refused[0].message if refused else f"it has {len(fleet)} rows"
        raise UserError(f"a fleet must have a {'target' if rows else 'row'} that can be used", first)
    facts = complete_facts(scores.machines, candidates, champion, assume=options.assume)
    power, sizes = draw_power(placed, facts, champion, options), facts[rows[0].place].sizes
    sizer = _Sizer(rows, scores, (facts, power), champion, request)
    exact, lacking, dimensions = _count_exact(rows, targets, facts, champion, request)
    refused += lacking
    sized = [sizer.size(target, options.level, of_target, brief=brief) for target, of_target in exact]
    common = find_shared_notes([each.notes for each in sized])
    sized = [replace(each, notes=tuple(note for note in each.notes if note not in common)) for each in sized]
    notes = [f"{100 * sizer.measured_share:.0f} % of the need is of machines with published results", dimensions]
    if request.electricity_price and any(target.candidate.price is None for target in targets):
        notes.append("a target without a price has no cost, and the electricity price counts nothing for it")
    if refused:
        notes.append(f"{len(refused)} of {len(fleet) + len(onto)} rows and targets are refused: no number counts them")
    notes += filter(None, [champion.rules.presentation.size_note, champion.describe_carried(fleet)])
    notes += list_power_notes(champion, {each.watts_basis for each in sized})
    titles = champion.rules.names.task_titles
    return Sizing(
        *champion.identity,
        month=champion.name_month(options.when),
        level=options.level,
        mix={titles.get(output.task, output.task): share for output, share in request.mix.items()},
        options={name: value for name, value in vars(request).items() if name != "mix"},
        machines=sum(row.count for row in rows),
        rows=len(rows),
        **sizer.fleet_power(options.level),
        totals={name: sum(row.count * facts[row.place].sizes[name] for row in rows) for name in sizes}
        | name_totals(exact[0][1]),
        drivers=sizer.drivers(),
        targets=tuple(sized),
        notes=(*notes, *common, *(note for each in measured if each for note in each.notes), *champion.notices),
        refused=tuple(sorted(refused, key=lambda each: each.line)),
    )


def _refuse(entry: MachineEntry, message: str) -> RefusedCandidate:
    return RefusedCandidate(entry.line, entry.label, message, entry.plain_carried)


def _count_exact(
    rows: Sequence[_Row],
    targets: Sequence[_Row],
    facts: Mapping[int, Candidate],
    champion: Champion,
    request: SizingRequest,
) -> tuple[list[tuple[_Row, dict[str, Held]]], list[RefusedCandidate], str]:
    """Return the targets with how many of each have what the fleet has, by dimension, the others, and what counts.

    Raises: UserError where every target lacks what the fleet needs.
    """
    held = [read_amounts(row.entry, row.candidate, facts[row.place], champion) for row in (*rows, *targets)]
    of_fleet = list(zip((row.count for row in rows), held, strict=False))
    counted, refused, assumed = list[tuple[_Row, dict[str, Held]]](), list[RefusedCandidate](), list[int]()
    for target, amounts in zip(targets, held[len(rows) :], strict=True):
        try:
            exact = count_machines(of_fleet, amounts, target.entry.label)
        except UserError as error:
            refused.append(_refuse(target.entry, str(error)))
            continue
        # memory that nobody states limits nothing, but a note has its number
        if MEMORY in exact and all(each.is_typical for each in held):
            assumed.append(math.ceil(exact.pop(MEMORY).machines * request.factor) + request.spare)
        counted.append((target, exact))
    if not counted:
        raise UserError("a fleet must have a target that can be used", refused[0].message)
    return counted, refused, describe_dimensions(held, assumed)


class _Sizer:
    """Need of a fleet, and the numbers of targets that meet it."""

    def __init__(
        self,
        rows: Sequence[_Row],
        scores: MachineScores,
        facts: tuple[Mapping[int, Candidate], Mapping[int, PowerDraws]],
        champion: Champion,
        request: SizingRequest,
    ) -> None:
        self._scores, self._champion, self._request = scores, champion, request
        self._facts, self._power = facts
        self._joint = scores.joint
        self._tasks = {output.task: share for output, share in request.mix.items()}
        self._loads, self._counts = Counter[int](), Counter[int]()
        for row in rows:
            self._loads[row.place] += row.load  # type: ignore[assignment]
            self._counts[row.place] += row.count
        middles = np.exp([spread.middle for spread in self._joint.spreads])
        demands = {place: [load * middles[row] for row in self._rows(place)] for place, load in self._loads.items()}
        totals = np.sum([*demands.values()], axis=0)
        weights = np.array([*self._tasks.values()])
        self._means = dict(zip(self._tasks, (totals / self._loads.total()).tolist(), strict=True))
        self._shares = {place: float(weights @ (np.array(each) / totals)) for place, each in demands.items()}
        self._order = sorted(self._shares, key=lambda place: (-self._shares[place], place))
        self.measured_share = sum(share for place, share in self._shares.items() if self._describe(place) == MEASURED)

    def drivers(self) -> tuple[FleetShare, ...]:
        """Return the machines of the fleet with the largest shares of the need."""
        names = self._scores.predictions
        return tuple(
            FleetShare(names[place].machine, self._counts[place], self._shares[place], self._describe(place))
            for place in self._order[:_MAX_DRIVERS]
        )

    def fleet_power(self, level: float) -> dict[str, Any]:
        """Return what `summarize_power` tells of the fleet at its utilization."""
        counts = self._counts.items()
        return summarize_power([(self._power.get(place), count, self._loads[place]) for place, count in counts], level)

    def size(self, target: _Row, level: float, exact: Mapping[str, Held], *, brief: bool) -> SizedTarget:
        """Return the number of machines of a target, with intervals of a level.

        Args: `exact` is what it has, and how many of it have what the fleet has, by dimension beside speed.
        """
        scores, request, place = self._scores, self._request, target.place
        prediction, facts = scores.predictions[place], self._facts[place]
        low_end, high_end = ends = (1 - level) / 2, (1 + level) / 2
        by_speed = self._needs(place, self._joint.logs)
        needs_of = {name: each.machines * request.factor for name, each in exact.items()}
        least = max(needs_of.values(), default=0.0)
        needs_of = {SPEED: float(_quantile(by_speed, request.sure)), **needs_of}
        needs = np.maximum(by_speed, least)
        counts = _count_machines(needs)
        needed = int(_quantile(counts, request.sure)) + request.spare
        low, high = (int(each) + request.spare for each in _quantile(counts, ends))
        ratios = self._counts.total() / _quantile(needs, [high_end, 0.5, low_end])
        load = np.minimum(by_speed * (request.mean_growth / request.factor) / needed, 1.0)
        power = self._power.get(place)
        used = summarize_power([(power, needed, needed * load)], level)
        energy, cost = used["energy"], None
        if (price := target.candidate.price) is not None and (energy is not None or not request.electricity_price):
            cost = needed * price / request.years + (energy or 0.0) * request.electricity_price
        titles = self._champion.rules.names.task_titles
        middles = np.exp([self._joint.spreads[row].middle for row in self._rows(place)])
        pairs = zip(self._means.items(), middles.tolist(), strict=True)
        speedups = {titles.get(task, task): middle / mean for (task, mean), middle in pairs}
        return SizedTarget(
            line=target.entry.line,
            name=target.candidate.name or prediction.machine,
            machine=prediction.machine,
            needed=needed,
            low=low,
            high=high,
            limiting=max(needs_of, key=lambda name: needs_of[name]),
            needs=needs_of,
            counts=_list_chances(counts + request.spare, needed),
            **dict(zip(("ratio_low", "ratio", "ratio_high"), map(float, ratios), strict=True)),
            measured=self._describe(place),
            trust=lowest_trust(scores.estimates[row] for row in self._rows(place)),
            speedups=speedups,
            totals={name: needed * value for name, value in facts.sizes.items()} | name_totals(exact, needed),
            **used,
            watts_basis=None if power is None else power.basis,
            load=float(np.median(load)),
            price=price,
            carbon=None if energy is None or not request.carbon else energy * request.carbon,
            cost=cost,
            narrowed_by=() if brief else self._list_narrowings(place, ends, needs, least),
            notes=prediction.notes,
        )

    def _rows(self, place: int) -> list[int]:
        return [self._scores.row_of[place, task] for task in self._tasks]

    def _describe(self, place: int) -> str:
        published = [self._joint.spreads[row].is_published for row in self._rows(place)]
        return MEASURED if all(published) else PARTLY if any(published) else ESTIMATED

    def _needs(self, target: int, logs: np.ndarray) -> np.ndarray:
        """Return the number of machines of a target that every draw needs, no whole number, (draws,)."""
        places, loads = [*self._loads], np.array([*self._loads.values()], dtype=float)
        needs = np.zeros(logs.shape[1])
        for task, share in self._tasks.items():
            rows = [self._scores.row_of[place, task] for place in places]
            needs += share * (loads @ np.exp(logs[rows] - logs[self._scores.row_of[target, task]]))
        return needs * self._request.factor

    def _list_narrowings(
        self, target: int, ends: Sequence[float], needs: np.ndarray, least: float
    ) -> tuple[Narrowing, ...]:
        """Return what the scores of the target, or of a large share of the fleet, would leave of the interval."""
        low, high = _quantile(np.log(needs), ends)
        if high - low < _ROUNDING:
            return ()
        narrowings = []
        for place in dict.fromkeys([target, *self._order[:_MAX_NARROWINGS]]):
            left = np.maximum(self._needs(target, self._joint.know(self._rows(place))), least)
            first, last = _quantile(np.log(left), ends)
            width = float((last - first) / (high - low))
            if width < _MAX_WIDTH_LEFT:
                count = [int(each) + self._request.spare for each in _count_machines(np.exp([first, last]))]
                narrowings.append(Narrowing(self._scores.predictions[place].machine, count[0], count[1], width))
        return tuple(sorted(narrowings, key=lambda each: each.width)[:_MAX_NARROWINGS])


def _count_machines(needs: np.ndarray) -> np.ndarray:
    """Return the whole numbers of machines that meet needs, at least one."""
    return np.maximum(np.ceil(needs - _ROUNDING), 1)


def _quantile(values: np.ndarray, levels: float | Sequence[float]) -> Any:
    return np.quantile(values, levels, method="inverted_cdf")


def _list_chances(counts: np.ndarray, needed: int) -> tuple[CountChance, ...]:
    """Return numbers, the needed one among them, from one that hardly suffices to one that nearly surely does."""
    first, last = (int(each) for each in _quantile(counts, [_TAIL, 1 - _TAIL]))
    step = max(1, -(-(last - first) // (_MAX_COUNTS - 2)))
    first -= (first - needed) % step
    return tuple(CountChance(each, float(np.mean(counts <= each))) for each in range(first, last + step, step))
