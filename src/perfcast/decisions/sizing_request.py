"""Request of a sizing: mix of tasks, growth, headroom and spares; numbers of the rows of a fleet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from perfcast.decisions.criteria import Output, join_thousands, read_output
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import COUNT, OF_FLEETS, UTILIZATION, MachineEntry
from perfcast.inference.suites import Suites
from perfcast.utils.errors import UserError

MAX_COUNT = 1_000_000
_MIN_SHARE = 1e-4
"""Least share of a task or of a utilization; below it a fleet has no load to replace."""
_TOLERANCE = 1e-6
_BOUNDS = {
    "growth": (0.0, 10.0),
    "years": (1e-3, 100.0),
    "headroom": (0.0, 0.95),
    "spare": (0.0, 1000.0),
    "sure": (0.01, 0.995),
    "electricity_price": (0.0, 1e9),
    "carbon": (0.0, 1e6),
}
"""Smallest and largest value of every option."""


@dataclass(frozen=True)
class SizingRequest:
    """Need of a fleet beside its rows.

    `mix`: share of the fleet's time by output, 1 in total. `growth`: of the need in a year, for `years`, over which
    prices are spread, too. `headroom`: share of the new machines that stays free. `spare`: further machines. `sure`:
    probability with which the number suffices. Units: `electricity_price` per kWh, `carbon` kg per kWh.
    """

    mix: Mapping[Output, float]
    growth: float = 0.0
    years: float = 1.0
    headroom: float = 0.0
    spare: int = 0
    sure: float = 0.9
    electricity_price: float = 0.0
    carbon: float = 0.0

    @property
    def factor(self) -> float:
        """The capacity that is needed, over that which is used today."""
        return float((1 + self.growth) ** self.years / (1 - self.headroom))

    @property
    def mean_growth(self) -> float:
        """The need over that of today, the mean over the years."""
        rate = self.years * math.log1p(self.growth)
        return math.expm1(rate) / rate if rate else 1.0


def read_sizing(champion: Champion, mix: str | Mapping[str, float] = "", **options: float) -> SizingRequest:
    """Return the request of a typed mix, `TASK:SHARE,TASK:SHARE` or one task, and of the options of `SizingRequest`.

    Without a mix, the tasks that count throughput have equal shares.
    Raises: UserError for a task that cannot size a fleet, shares whose sum is not 1, and a number out of its bounds.
    """
    lower = champion.rules.presentation.lower_is_better
    if lower or champion.calibrated is None:
        fact = f"this champion has {'times or costs' if lower else 'no intervals'}"
        raise UserError("a fleet is sized by scores of which more is better, with intervals", fact)
    for name, value in options.items():
        low, high = _BOUNDS[name]
        if not low <= value <= high or (name == "spare" and value != int(value)):
            kind = "a whole number" if name == "spare" else "a number"
            raise UserError(f"--{name.replace('_', '-')} must be {kind} from {low:g} to {high:g}", f"it is {value:g}")
    shares = _read_mix(mix, champion)
    request = SizingRequest(shares, **options)  # type: ignore[arg-type]
    if not math.isfinite(request.factor) or request.factor > MAX_COUNT:
        raise UserError("--growth for --years must stay below a millionfold", f"it is {request.factor:.3g}")
    return request


def _read_mix(mix: str | Mapping[str, float], champion: Champion) -> dict[Output, float]:
    suites = Suites(champion)
    ending = champion.rules.presentation.throughput_ending
    useful = [task for task in champion.tasks if task.endswith(ending)]
    if not useful:
        raise UserError("a fleet is sized by scores that machines add up to", f"those of {champion.dataset} do not")
    if not mix:
        return {read_output(task, suites, "--mix"): 1 / len(useful) for task in useful}
    pieces = [piece if ":" in piece else f"{piece}:1" for piece in mix.split(",")] if isinstance(mix, str) else ()
    given = [piece.rpartition(":")[::2] for piece in pieces] if isinstance(mix, str) else mix.items()
    shares: dict[Output, float] = {}
    for name, share in given:
        output = read_output(name.strip(), suites, "--mix")
        if output.task in {each.task for each in shares}:
            fact = f"it is {str(mix)[:80]!r}"
            raise UserError("--mix must be TASK:SHARE,TASK:SHARE with every task once", fact, f"such as {useful[0]}:1")
        if output.task not in useful:
            fact = f"{name[:40]!r} counts the time of one run"
            raise UserError("--mix must name tasks of throughput", fact, f"write {' or '.join(useful)}")
        shares[output] = _read_share(str(share), f"--mix {name[:40]}")
    total = math.fsum(shares.values())
    if not abs(total - 1) <= _TOLERANCE:
        raise UserError("the shares of --mix must sum to 1", f"they sum to {total:g}", "such as 0.7 and 0.3")
    return shares


def carry_fleet_fields(entry: MachineEntry) -> MachineEntry:
    """Return a row of a fleet that carries its count and its utilization. Raises: UserError where one stands twice."""
    everything = {**entry.values, **entry.carried}
    names = {name: OF_FLEETS[key] for name in everything if (key := name.strip().lower()) in OF_FLEETS}
    if len({*names.values()}) < len(names):
        raise UserError("a machine must give every field once", f"{entry.label} has {' and '.join(names)}")
    others = {name: value for name, value in entry.carried.items() if name not in names}
    values = {name: value for name, value in entry.values.items() if name not in names}
    return entry._replace(
        values=values, carried={**others, **{field: everything[name] for name, field in names.items()}}
    )


def read_count(entry: MachineEntry) -> int:
    """Return the number of machines of a row. Raises: UserError unless it is a positive whole number."""
    given = _given(entry, COUNT)
    text = str(given).strip()
    if isinstance(given, str):
        text = join_thousands(text, f"{COUNT} of {entry.label}")
    requirement = f"{COUNT} must be a whole number from 1 to {MAX_COUNT}"
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value <= MAX_COUNT or value != int(value):
        raise UserError(requirement, f"{entry.label} has {text[:40]!r}" if text else f"{entry.label} has none")
    return int(value)


def read_utilization(entry: MachineEntry) -> float:
    """Return the share of a row's machines that is used, 1 without any. Raises: UserError unless it is a share."""
    given = _given(entry, UTILIZATION)
    return _read_share(str(given), f"{UTILIZATION} of {entry.label}") if str(given).strip() else 1.0


def _given(entry: MachineEntry, name: str) -> object:
    value = entry.carried.get(name)
    return "" if value is None or value != value else value  # noqa: PLR0124  (NaN differs from itself)


def _read_share(text: str, label: str) -> float:
    """Return a share, typed as 0.45 or 45 %."""
    plain = text.strip().replace(",", ".")
    percent = plain.endswith("%")
    try:
        value = float(plain.removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        value = math.nan
    if not _MIN_SHARE <= value <= 1:
        raise UserError(f"{label} must be from {_MIN_SHARE:.4f} to 1", f"it is {plain[:40]!r}", "0.45 or 45 % is 45 %")
    return value
