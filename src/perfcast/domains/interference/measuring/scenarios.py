"""The plan of a campaign: runs of two to four tenants, each measured alone before and after.

Design of a run, A-B-A: every tenant runs alone, then tenants run together, then every tenant alone again. The two
references stand next to the seconds that they scale, so that a drift of a shared machine is divided out. All tenants of
a run are victims of each other, which gives two to three labeled rows per second of wall time.

Blocks of runs hold every kind in fixed numbers, and names come from shuffled decks, so that an interrupted campaign has
covered workloads and kinds evenly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

LOW, HIGH = 0.4, 1.0
"""Intensities: a share of the rate of the closed loop, and the closed loop."""
ALONE, TOGETHER = "alone", "together"
WARM_UP_SECONDS = 1
"""First seconds of every phase that are discarded."""

PAIR, TRIPLE, DYNAMIC = "pair", "triple", "dynamic"
SAME_CORE, SHARED_CORES, OTHER_CORE, QUOTA, MEMORY = "same_core", "shared_cores", "other_core", "quota", "memory"
PLACEMENTS = {
    SAME_CORE: "all tenants are pinned to one core",
    SHARED_CORES: "all tenants share two cores and are not pinned to one of them",
    OTHER_CORE: "each tenant is pinned to a core of its own",
    QUOTA: "tenants share two cores and a quota of processor time",
    MEMORY: "tenants share two cores and a limit of memory, page cache included",
}
_BLOCK = {
    ALONE: {SAME_CORE: 1, SHARED_CORES: 1},
    PAIR: {SAME_CORE: 3, QUOTA: 2, MEMORY: 2, OTHER_CORE: 1},
    TRIPLE: {SAME_CORE: 1, SHARED_CORES: 4, QUOTA: 1, MEMORY: 1},
    DYNAMIC: {SAME_CORE: 1, SHARED_CORES: 2, QUOTA: 1, MEMORY: 1},
}
"""Runs of each kind in one block: few of separate cores, which the pilots show not to interfere."""
_TENANTS = {ALONE: 1, PAIR: 2, TRIPLE: 3, DYNAMIC: 3}
_QUOTAS = (0.7, 1.0, 1.4)
_MEMORY_SLACK_MIB = (96, 160, 224)
"""Room for page cache beside the tenants' own memory."""
_DYNAMIC_LENGTH = 1.6
"""Length of the dynamic phase, relative to the static one, so that neighbors change several times."""
SHORTEST_CHANGE, LONGEST_CHANGE = 5, 30
PREPARATION_SECONDS = 4.0
"""Time to start the tenants of a run, as the plan expects it."""


@dataclass(frozen=True)
class Active:
    """Activity of one tenant. Units: whole seconds since the origin of the run; intensity as a share."""

    tenant: int
    start: int
    end: int


@dataclass(frozen=True)
class Run:
    """One run.

    Args:
        workloads: Workload of each tenant.
        intensities: Intensity of each tenant, the same alone and together.
        together: First and last second in which tenants run together.
        activities: All activities, references included.
        quota: Cores that the tenants share, with the placement `quota`.
        memory_slack_mib: Page cache that the tenants share, with the placement `memory`.
    """

    number: int
    scenario: str
    placement: str
    workloads: tuple[str, ...]
    intensities: tuple[float, ...]
    together: tuple[int, int]
    activities: tuple[Active, ...]
    quota: float | None = None
    memory_slack_mib: int | None = None

    @property
    def seconds(self) -> int:
        """Return the length from the origin to the end of the last activity."""
        return max(activity.end for activity in self.activities)

    def timetable(self, tenant: int) -> list[tuple[int, int, float]]:
        """Return start, end and intensity of each activity of a tenant, by time."""
        level = sorted((entry.start, entry.end) for entry in self.activities if entry.tenant == tenant)
        return [(start, end, self.intensities[tenant]) for start, end in level]

    def active_at(self, second: int) -> list[int]:
        """Return the tenants that are active in a second."""
        return sorted({entry.tenant for entry in self.activities if entry.start <= second < entry.end})

    def references(self, tenant: int) -> list[tuple[int, int]]:
        """Return start and end of the times alone of a tenant, the seconds of warm-up left out."""
        first, last = self.together
        return [
            (entry.start + WARM_UP_SECONDS, entry.end)
            for entry in sorted(self.activities, key=lambda entry: entry.start)
            if entry.tenant == tenant and (entry.end <= first or entry.start >= last)
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Run:
        """Return the run that `to_json` wrote."""
        lists = {name: tuple(values[name]) for name in ("workloads", "intensities", "together")}
        activities = tuple(Active(**entry) for entry in values["activities"])
        return cls(**{**values, **lists, "activities": activities})


@dataclass(frozen=True)
class Design:
    """Design of a campaign. Units: seconds of one static run together, and of one reference."""

    workloads: tuple[str, ...]
    placements: tuple[str, ...]
    seed: int
    seconds: int
    reference_seconds: int = 4


class _Deck:
    """Endless draws without replacement: each card once before any comes again."""

    def __init__(self, cards: Sequence[Any], random: np.random.Generator) -> None:
        self._cards, self._random, self._left = list(cards), random, []  # type: ignore[var-annotated]

    def draw(self) -> Any:
        if not self._left:
            self._left = [self._cards[index] for index in self._random.permutation(len(self._cards))]
        return self._left.pop()


def plan_runs(design: Design) -> Iterator[Run]:
    """Yield runs without end, in blocks whose order is random."""
    random = np.random.default_rng(design.seed)
    decks = {scenario: _Deck(design.workloads, random) for scenario in _TENANTS}
    levels = {
        scenario: _Deck([(level, others) for level in (LOW, HIGH) for others in (LOW, HIGH, HIGH)], random)
        for scenario in _TENANTS
    }
    quotas, slacks = _Deck(_QUOTAS, random), _Deck(_MEMORY_SLACK_MIB, random)
    counts = [(scenario, *pair) for scenario, by_placement in _BLOCK.items() for pair in by_placement.items()]
    kinds = [(name, place) for name, place, count in counts if place in design.placements for _ in range(count)]
    number = 0
    while kinds:
        for index in random.permutation(len(kinds)):
            scenario, placement = kinds[index]
            names = [decks[scenario].draw() for _ in range(_TENANTS[scenario])]
            level, others = levels[scenario].draw()
            intensities = (level, *(others for _ in names[1:]))
            together, activities = _lay_out(scenario, len(names), design, random)
            yield Run(
                number=number,
                scenario=scenario,
                placement=placement,
                workloads=tuple(names),
                intensities=intensities,
                together=together,
                activities=activities,
                quota=quotas.draw() if placement == QUOTA else None,
                memory_slack_mib=slacks.draw() if placement == MEMORY else None,
            )
            number += 1


def _lay_out(
    scenario: str, tenants: int, design: Design, random: np.random.Generator
) -> tuple[tuple[int, int], tuple[Active, ...]]:
    """Return the time together, and the activities of the tenants."""
    length = design.reference_seconds + WARM_UP_SECONDS
    before = [Active(tenant, tenant * length, (tenant + 1) * length) for tenant in range(tenants)]
    start = tenants * length
    if scenario == DYNAMIC:
        end = start + round(_DYNAMIC_LENGTH * design.seconds)
        parts = [Active(0, start, end)]
        for tenant in range(1, tenants):
            parts += _draw_changes(tenant, start, end, random)
    else:
        end = start + (design.seconds if tenants > 1 else design.seconds // 2)
        parts = [Active(tenant, start, end) for tenant in range(tenants)]
    # in the opposite order, so that the mean distance of both references is the same for all tenants
    after = [Active(t, end + i * length, end + (i + 1) * length) for i, t in enumerate(reversed(range(tenants)))]
    return (start, end), (*before, *parts, *after)


def _draw_changes(tenant: int, start: int, end: int, random: np.random.Generator) -> list[Active]:
    """Return times of activity of a tenant that starts and stops at random, every 5 to 30 seconds."""
    parts, now, active = [], start, bool(random.integers(2))
    while now < end:
        longest = min(LONGEST_CHANGE, max(SHORTEST_CHANGE, (end - start) // 2))
        change = min(now + int(random.integers(SHORTEST_CHANGE, longest + 1)), end)
        change = end if end - change < SHORTEST_CHANGE else change
        if active:
            parts.append(Active(tenant, now, change))
        now, active = change, not active
    return parts


def plan_for(design: Design, seconds: float) -> list[Run]:
    """Return the runs that fit into a time, one at least. Units: seconds, preparation included."""
    runs: list[Run] = []
    for run in plan_runs(design):
        seconds -= run.seconds + PREPARATION_SECONDS
        if runs and seconds < 0:
            return runs
        runs.append(run)
    return runs
