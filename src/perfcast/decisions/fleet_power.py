"""Watts of machines at every load: of a champion of power, or of the design power with the spread of measured ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from perfcast.decisions.criteria import HOURS_PER_YEAR, Candidate, Output
from perfcast.decisions.joint_scores import DRAWS, predict_scores
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.options import PredictOptions

GIVEN, MEASURED, ESTIMATED, DESIGN = "given", "measured", "estimated", "design power"
_SEED = 1
"""Another one than that of the scores: errors of watts are independent of them."""


class PowerDraws(NamedTuple):
    """Watts of a machine at idle and at full load, (DRAWS,) each; `basis` is one of the words of this module."""

    idle: np.ndarray
    full: np.ndarray
    basis: str

    def energy(self, count: float, load: float | np.ndarray) -> np.ndarray:
        """Return the kWh a year of `count` machines that do the work of `load` full ones, (draws,).

        Watts rise linearly with the load from idle to full.
        """
        watts: np.ndarray = count * self.idle + load * np.maximum(self.full - self.idle, 0.0)
        return watts / 1000 * HOURS_PER_YEAR


def draw_power(
    placed: Sequence[MachineEntry], facts: Mapping[int, Candidate], champion: Champion, options: PredictOptions
) -> dict[int, PowerDraws]:
    """Return the watts of machines by place, without those whose power nothing tells.

    Watts that the user gives are those at full load. Else the champion of power tells both, or the design power with
    the ratios of `Presentation.power_ratios`.
    """
    draws = _predict(placed, champion.power, options) if champion.power else {}
    normals = np.random.default_rng(_SEED).standard_normal((2, DRAWS))
    ratios = np.array(champion.rules.presentation.power_ratios)
    full_ratio, idle_share = np.exp(ratios[:, :1] + ratios[:, 1:] * normals)
    for place, each in facts.items():
        if each.watts is None:
            continue
        full = each.watts * full_ratio
        power = draws.setdefault(place, PowerDraws(full * idle_share, full, DESIGN))
        if not each.watts_assumed:
            share = np.minimum(power.idle / power.full, 1.0)
            draws[place] = PowerDraws(each.watts * share, np.full(DRAWS, each.watts), GIVEN)
    return draws


def _predict(placed: Sequence[MachineEntry], power: Champion, options: PredictOptions) -> dict[int, PowerDraws]:
    """Return the watts of the machines that a champion of power can use, by place; it reads no field of others."""
    fields, (task,) = power.fields, power.tasks
    entries = [
        each._replace(values={name: value for name, value in each.values.items() if fields.get(name)})
        for each in placed
    ]
    mixes = [{Output(task, target): 1.0} for target in power.rules.presentation.power_targets]
    idle, full = (predict_scores(entries, power, mix, options, (), seed=_SEED)[0] for mix in mixes)
    if idle is None or full is None:
        return {}
    return {
        key[0]: PowerDraws(
            np.exp(idle.joint.logs[idle.row_of[key]]),
            np.exp(full.joint.logs[row]),
            MEASURED if full.joint.spreads[row].is_published else ESTIMATED,
        )
        for key, row in full.row_of.items()
        if key in idle.row_of
    }


def summarize_power(
    machines: Sequence[tuple[PowerDraws | None, float, float | np.ndarray]], level: float
) -> dict[str, Any]:
    """Return the watts at full load, and the energy with its interval, of machines with their numbers and loads.

    None of each where the watts of a machine are not known.
    """
    names = ("watts", "energy_low", "energy", "energy_high")
    known = [(power, count, load) for power, count, load in machines if power is not None]
    if len(known) < len(machines):
        return dict.fromkeys(names)
    watts = sum(count * float(np.median(power.full)) for power, count, _ in known)
    energy = np.sum([power.energy(count, load) for power, count, load in known], axis=0)
    ends = np.quantile(energy, [(1 - level) / 2, 0.5, (1 + level) / 2], method="inverted_cdf")
    return dict(zip(names, (watts, *ends.tolist()), strict=True))


def list_power_notes(champion: Champion, bases: Collection[str | None]) -> list[str]:
    """Return what the watts of some bases are."""
    notes, power = [], champion.power
    if DESIGN in bases:
        shown = champion.rules.presentation
        (middle, spread), _ = shown.power_ratios
        times = f" x {np.exp(middle):.2f}, within a factor of {np.exp(1.645 * spread):.2f} with 90 %" if spread else ""
        notes.append(f"watts: {shown.power_meaning}{times}")
    if power is not None and {MEASURED, ESTIMATED} & {*bases}:
        notes.append(
            f"watts at the wall by {power.name} of {power.basis}; machines with more memory, storage or fans take more"
        )
    return notes
