"""A few measured scores of one's own sharpen forecasts of the same machine and of its siblings, without retraining."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perfcast.describing.entries import Vocabulary
from perfcast.describing.files import Entry
from perfcast.errors import UserError
from perfcast.forecasting.champion import Champion
from perfcast.forecasting.completing import complete
from perfcast.forecasting.describing import describe
from perfcast.forecasting.featuring import featured
from perfcast.intervals import Correlation, Errors, labels_of, questions_of
from perfcast.schema import Role, Table, Tag

_FAR = np.log(2.0)
"""Difference of a measured score from its forecast, in logarithms, from which it is doubted aloud."""
MOST = 500
"""Scores that are taken together: more would be data to train on."""


@dataclass(frozen=True)
class OwnMeasurements:
    """Measured scores with the errors of their forecasts.

    Shapes: residuals (m,) log measured - log forecast. `notes` say what is strange about them.
    """

    correlation: Correlation
    known: Errors
    residuals: np.ndarray
    notes: tuple[str, ...] = ()

    def correct(self, table: Table, target: str, typical: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what to add to the logarithm of every forecast of a target, (n,), and by what its interval narrows.

        The best linear prediction of the forecasts' errors from those measured, and the share of the standard deviation
        that it leaves. `typical` (n,) are the errors that the calibration expects.
        """
        asked = questions_of(table.frame[table.column_of(Tag.TASK)], target)
        return self.correlation.predict(self.known, self.residuals, Errors(labels_of(table), asked, typical))


def measured_by_oneself(
    entries: Sequence[Entry], champion: Champion, machine: Mapping[str, object] | None = None
) -> OwnMeasurements:
    """Read measured scores: machines in words, each with its task and a score under the name of a target or `score`.

    What an entry leaves out is that of `machine`, where there is only one; columns of the data set that no forecast
    reads, such as a spread, are passed over. Raises: UserError for what cannot be used.
    """
    calibrated = champion.calibrated
    correlation = calibrated.correlation if calibrated else None
    if calibrated is None or correlation is None:
        fact = f"{champion.name} of {champion.dataset} was not rehearsed"
        raise UserError("own measurements need a champion that knows its errors", fact, "train it on more rows")
    if len(entries) > MOST:
        raise UserError(f"own measurements must be at most {MOST}", f"there are {len(entries)}", "give the newest")
    targets = champion.predictor.targets_
    scores = [_scores(said, where, targets, champion) for _, where, said in entries]
    task = champion.knowledge.measured.column_of(Tag.TASK)
    told: list[Entry] = []
    for number, (_, where, said) in enumerate(entries):
        other = {*targets, "score", *champion.knowledge.set_aside}
        rest = {word: value for word, value in said.items() if word.strip().lower() not in other}
        whole = {**(machine or {}), **{word: value for word, value in rest.items() if value not in (None, "")}}
        if task not in champion.vocabulary.cells(whole, where):
            raise UserError(f"a measured score must name its {task}", f"{where} names none", "add that column")
        told.append((number, where, whole))
    described = describe(told, champion)
    completed = complete(described.frame, champion.knowledge, champion.donors)
    measured = champion.knowledge.measured
    table = featured(champion.dataset, completed.frame, measured.columns, champion.features)
    forecasts = champion.predictor.predict(table.frame)
    labels, tasks = labels_of(table), table.frame[task]
    parts, residuals, places = [], [], []
    for target in targets:
        found = np.array([one.get(target, np.nan) for one in scores], dtype=float)
        known = np.isfinite(found) & forecasts[target].notna().to_numpy()
        asked = questions_of(tasks[known], target)
        typical = calibrated.intervals(table.frame[known], asked)["typical"].to_numpy()
        parts.append(Errors(labels[known], asked, typical))
        residuals += (np.log(found[known]) - np.log(forecasts.loc[known, target].to_numpy())).tolist()
        places += np.flatnonzero(known).tolist()
    notes = [
        f"{entries[place][1]} is {np.exp(residual):.2f} times its forecast: other compiler options, or a mistake?"
        for residual, place in zip(residuals, places, strict=True)
        if abs(residual) > _FAR
    ]
    together = Errors(
        pd.concat([one.labels for one in parts]),
        np.concatenate([one.questions for one in parts]),
        np.concatenate([one.typical for one in parts]),
    )
    return OwnMeasurements(correlation, together, np.array(residuals), tuple(notes))


def _scores(said: Mapping[str, object], where: str, targets: Sequence[str], champion: Champion) -> dict[str, float]:
    """Return the scores of an entry by target."""
    declared = [column for column in champion.knowledge.measured.columns if column.role is Role.TARGET]
    words = Vocabulary([column for column in declared if column.name in targets])
    own = {
        (targets[0] if word.strip().lower() == "score" else word): value
        for word, value in said.items()
        if word.strip().lower() in (*targets, "score")
    }
    found = {name: float(value) for name, value in words.cells(own, where).items()}
    if not found:
        raise UserError(
            "an own measurement must have a score",
            f"{where} has none",
            f"add a column named {' or '.join([*targets[:3], 'score'])}",
        )
    return found
