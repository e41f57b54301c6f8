"""Watts of machines at every load: of a champion of power, or of the design power with the spread of measured ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from perfcast.decisions.criteria import HOURS_PER_YEAR, Candidate, Output
from perfcast.decisions.joint_scores import DRAWS, predict_scores
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.predict import PredictOptions

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
        watts: np.ndarray = count * self.idle + load * (self.full - self.idle)
        return watts / 1000 * HOURS_PER_YEAR


def draw_power(
    placed: Sequence[MachineEntry], facts: Mapping[int, Candidate], champion: Champion, options: PredictOptions
) -> dict[int, PowerDraws]:
    """Return the watts of machines by place, without those whose power nothing tells.

    Watts that the user gives are those at full load. Else the champion of power tells both, or the design power with
    the ratios of `DescriptionRules.power_ratios`.
    """
    known = _predict(placed, champion.power, options) if champion.power else {}
    normals = np.random.default_rng(_SEED).standard_normal((2, DRAWS))
    full_ratio, idle_share = (
        np.exp(middle + spread * normal)
        for (middle, spread), normal in zip(champion.rules.power_ratios, normals, strict=True)
    )
    draws = {}
    for place, candidate in facts.items():
        power = known.get(place)
        if candidate.watts is None:
            if power is not None:
                draws[place] = power
            continue
        share = np.minimum(idle_share if power is None else power.idle / power.full, 1.0)
        if not candidate.watts_assumed:
            full, basis = np.full(DRAWS, candidate.watts), GIVEN
        elif power is None:
            full, basis = candidate.watts * full_ratio, DESIGN
        else:
            full, basis = power.full, power.basis
        draws[place] = PowerDraws(full * share, full, basis)
    return draws


def _predict(placed: Sequence[MachineEntry], power: Champion, options: PredictOptions) -> dict[int, PowerDraws]:
    """Return the watts of the machines that a champion of power can use, by place; it reads no field of others."""
    entries = [
        each._replace(values={name: value for name, value in each.values.items() if power.fields.get(name)})
        for each in placed
    ]
    sides = []
    for target in power.rules.power_targets:
        mix = {Output(task, target): 1.0 for task in power.tasks}
        scores, _ = predict_scores(entries, power, mix, options, None, _SEED)
        sides.append(
            {}
            if scores is None
            else {
                place: (scores.joint.logs[row], scores.joint.spreads[row].is_published)
                for (place, _), row in scores.row_of.items()
            }
        )
    idles, fulls = sides
    return {
        place: PowerDraws(np.exp(idles[place][0]), np.exp(logs), MEASURED if published else ESTIMATED)
        for place, (logs, published) in fulls.items()
        if place in idles
    }


def list_power_notes(champion: Champion, bases: Collection[str | None]) -> list[str]:
    """Return what the watts of some bases are."""
    notes, power = [], champion.power
    if DESIGN in bases:
        (middle, spread), _ = champion.rules.power_ratios
        times = f" x {np.exp(middle):.2f}, within a factor of {np.exp(1.645 * spread):.2f} with 90 %" if spread else ""
        notes.append(f"watts: {champion.rules.power_meaning}{times}")
    if power is not None and {MEASURED, ESTIMATED} & {*bases}:
        notes.append(f"watts of the wall: {power.basis}; machines with more memory, storage or fans take more")
    return notes
