"""Scaling laws as predictors: a law per task and training set."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from perfcast.domains.scaling.datasets.scaling_columns import ACCURACY
from perfcast.domains.scaling.predictors import curve_fit, trained_runs
from perfcast.domains.scaling.predictors.law_fit import PowerSum, fit_power_sums
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.task_rows import measured_rows
from perfcast.utils.io import write_json
from perfcast.utils.model_files import read_state

LawState = dict[str, Any]
"""Parameters of one law, as values of JSON."""


class RunGroup(NamedTuple):
    """Positions of the rows that share a law, (rows,), and their kind, "" for rows of several kinds."""

    rows: np.ndarray
    kind: str


_MIN_SHARE = 1e-4
"""Smallest and, from 1, largest predicted share of correct answers."""


@dataclass(kw_only=True, eq=False, repr=False)
class ScalingLawPredictor(Predictor):
    """Law in parameters and tokens of training runs, fitted to each task and, of several, each training set.

    A task or training set that training did not have gets the law of its task, else that of all tasks of its kind. A
    law that the runs do not identify has published exponents; that of a table without the columns `params` and
    `tokens` is a constant.
    """

    reads_tags_only: ClassVar[bool] = True

    medians_: list[float] = field(init=False)
    """Of parameters and tokens in training."""
    fits_: dict[str, dict[str, LawState]] = field(init=False)
    """Parameters by target and name of the group."""

    @abstractmethod
    def _fit_laws(
        self, runs: trained_runs.TrainedRuns, values: np.ndarray, groups: Sequence[RunGroup]
    ) -> list[LawState]:
        """Fit the law of each group of rows, all of them at once because hundreds of small fits take long."""

    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        measured = measured_rows(log_y, self.targets_)
        self.medians_ = trained_runs.known_medians(X, self.columns_)
        self.fits_ = {}
        runs = trained_runs.read_runs(X, self.columns_, self.medians_)
        for index, (target, rows) in enumerate(zip(self.targets_, measured, strict=True)):
            values = np.exp(log_y[:, index])
            groups = {}
            for name, members in runs.groups(rows).items():
                groups[name] = RunGroup(np.flatnonzero(members), _kind_of(runs, members))
            states = self._fit_laws(runs, values, list(groups.values()))
            fits = {}
            for (name, group), state in zip(groups.items(), states, strict=True):
                fits[name] = {**state, "kind": group.kind}
            self.fits_[target] = fits

    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        runs = trained_runs.read_runs(X, self.columns_, self.medians_)
        logs = np.full((len(X), len(self.targets_)), np.nan)
        for index, target in enumerate(self.targets_):
            fits = self.fits_[target]
            for (task, identity, kind), rows in runs.names():
                name = next(name for name in trained_runs.candidates_of(task, identity, kind) if name in fits)
                # a described run may name its task alone, so the kind is that of the law
                fitted_kind = fits[name]["kind"]
                values = evaluate_law(fits[name], runs.logs[rows], fitted_kind)
                most = 1 - _MIN_SHARE if fitted_kind == ACCURACY else np.inf
                logs[rows, index] = np.log(np.clip(values, _MIN_SHARE, most))
        return logs

    def _save(self, folder: Path) -> None:
        write_json(folder / "laws.json", {"medians": self.medians_, "fits": self.fits_})

    def _load(self, folder: Path) -> None:
        state = read_state(folder / "laws.json")
        self.medians_ = state["medians"]
        self.fits_ = state["fits"]


@dataclass(kw_only=True, eq=False, repr=False)
class ChinchillaLawPredictor(ScalingLawPredictor):
    """L = E + A / N^a + B / D^b, and the same for the error rate of an accuracy.

    N are parameters, D tokens; all of E, A, B, a and b are at least 0. See `law_fit` for the fit.
    Source: Hoffmann et al., Training Compute-Optimal Large Language Models, 2022, arXiv 2203.15556; fit after Besiroglu
    et al., 2024, arXiv 2404.10102.
    """

    tied: ClassVar[bool] = False

    def _fit_laws(
        self, runs: trained_runs.TrainedRuns, values: np.ndarray, groups: Sequence[RunGroup]
    ) -> list[LawState]:
        return _fit_values(runs, values, groups, tied=self.tied)


@dataclass(kw_only=True, eq=False, repr=False)
class OvertrainingLawPredictor(ChinchillaLawPredictor):
    """L = E + (a M^eta + b M^-eta) C^-eta, and the same for the error rate of an accuracy.

    M = D / N are tokens per parameter, C = 6 N D is the compute. Written in N and D, it is the law
    L = E + A / N^(2 eta) + B / D^(2 eta): curves of equal M are parallel, so over-training shifts a law and keeps its
    slope. It has one parameter less than `chinchilla_law`.
    Source: Gadre et al., Language models scale reliably with over-training and on downstream tasks, 2024,
    arXiv 2403.08540, equation 4.
    """

    tied: ClassVar[bool] = True


@dataclass(kw_only=True, eq=False, repr=False)
class ComputeSigmoidPredictor(ScalingLawPredictor):
    """accuracy = f c + (1 - f c) sigmoid(s (ln C - m)); loss = E + K C^-g.

    C = 6 N D is the compute and c the share of a random choice, so an accuracy has two parameters. It cannot tell two
    runs of one compute apart. `floor_share` is f: validation runs of the ladder lie nearer to a floor below chance,
    where the sigmoid is flatter, those of open_lm to chance itself.
    Source: the sigmoid of Ruan, Maddison and Hashimoto, Observational Scaling Laws, 2024, arXiv 2405.10938, section 3;
    loss after Kaplan et al., 2020, arXiv 2001.08361, with an irreducible term.
    """

    floor_share: float = 0.5

    def _fit_laws(
        self, runs: trained_runs.TrainedRuns, values: np.ndarray, groups: Sequence[RunGroup]
    ) -> list[LawState]:
        compute = runs.log_compute
        shares = []
        losses = []
        for rows, kind in groups:
            if kind == ACCURACY:
                floor = self.floor_share * float(np.median(runs.chance[rows]))
                shares.append(curve_fit.SharesOfRuns(compute[rows], values[rows], floor))
            else:
                losses.append((compute[rows][:, None], values[rows]))
        sigmoids = iter(curve_fit.fit_sigmoids(shares, rising=True))
        powers = iter(fit_power_sums(losses))
        return [(next(sigmoids) if kind == ACCURACY else next(powers)).to_state() for _, kind in groups]


@dataclass(kw_only=True, eq=False, repr=False)
class TwoStepLawPredictor(ScalingLawPredictor):
    """x = E + A / N^a + B / D^a; accuracy = c + (1 - c) sigmoid(-k (x - m)).

    x is the loss, or the bits per byte, of the task that the column `loss_task` names, measured on the same runs. The
    second step is fitted to measured pairs, and predicts from the x of the first. c is the share of a random choice.
    Without such pairs an accuracy gets the law of its error rate. Losses get the first step.
    Source: Bhagia et al., Establishing Task Scaling Laws via Compute-Efficient Model Ladders, 2024, arXiv 2412.04403,
    with the single exponent of Gadre et al., 2024, arXiv 2403.08540.
    """

    def _fit_laws(
        self, runs: trained_runs.TrainedRuns, values: np.ndarray, groups: Sequence[RunGroup]
    ) -> list[LawState]:
        losses = _join_losses(runs, values)
        pairs: list[np.ndarray | None] = []
        for rows, kind in groups:
            with_loss = rows[np.isfinite(losses[rows])]
            is_linked = kind == ACCURACY and len(np.unique(losses[with_loss].round(6))) >= curve_fit.MIN_PAIRS
            pairs.append(with_loss if is_linked else None)

        linked = [rows for rows in pairs if rows is not None]
        others = [group for group, rows in zip(groups, pairs, strict=True) if rows is None]
        firsts = fit_power_sums([(runs.logs[rows], losses[rows]) for rows in linked], tied=True)
        shares = []
        for rows in linked:
            chance = float(np.median(runs.chance[rows]))
            shares.append(curve_fit.SharesOfRuns(losses[rows], values[rows], chance))
        seconds = curve_fit.fit_sigmoids(shares, rising=False)

        steps = iter(zip(firsts, seconds, strict=True))
        direct = iter(_fit_values(runs, values, others, tied=True))
        states: list[LawState] = []
        for pair in pairs:
            if pair is None:
                states.append(next(direct))
            else:
                first, second = next(steps)
                states.append({"loss": first.to_state(), "link": second.to_state()})
        return states


@dataclass(kw_only=True, eq=False, repr=False)
class BrokenLawPredictor(ScalingLawPredictor):
    """L = E + A C^-c0 (1 + (C / d)^(1/f))^(-c1 f), and the same for the error rate of an accuracy.

    C = 6 N D is the compute, d the place of the only break and f its width, which is held: few runs lie near a break.
    Both exponents, c0 before and c0 + c1 after the break, are positive. Every law starts at three places with three
    pairs of exponents around the law without a break, and the fit of least Huber loss is chosen.
    Source: Caballero, Gupta, Rish and Krueger, Broken Neural Scaling Laws, 2023, ICLR, equation 1 with one break.
    """

    def _fit_laws(
        self, runs: trained_runs.TrainedRuns, values: np.ndarray, groups: Sequence[RunGroup]
    ) -> list[LawState]:
        compute = runs.log_compute
        fitted = [(compute[rows], _reduce(values[rows], kind)) for rows, kind in groups]
        return [curve.to_state() for curve in curve_fit.fit_broken_laws(fitted)]


def _fit_values(
    runs: trained_runs.TrainedRuns,
    values: np.ndarray,
    groups: Sequence[RunGroup],
    *,
    tied: bool,
) -> list[LawState]:
    """Fit the power sums of losses, or of the error rate of accuracies."""
    run_sets = [(runs.logs[rows], _reduce(values[rows], kind)) for rows, kind in groups]
    return [curve.to_state() for curve in fit_power_sums(run_sets, tied=tied)]


def _reduce(values: np.ndarray, kind: str) -> np.ndarray:
    return np.maximum(1 - values, _MIN_SHARE) if kind == ACCURACY else values


def evaluate_law(state: LawState, logs: np.ndarray, kind: str) -> np.ndarray:
    """Return the values of a law, or the accuracies of that of an error rate.

    Shapes: logs (n, 2), natural logarithms of parameters and tokens -> (n,).
    """
    if "link" in state:
        return curve_fit.Sigmoid.from_state(state["link"]).evaluate(evaluate_law(state["loss"], logs, ""))
    compute = trained_runs.log_compute(logs)
    if "slope" in state:
        return curve_fit.Sigmoid.from_state(state).evaluate(compute)
    if "place" in state:
        values = curve_fit.BrokenLaw.from_state(state).evaluate(compute)
    else:
        values = PowerSum.from_state(state).evaluate(logs if len(state["factors"]) > 1 else compute[:, None])
    return 1 - values if kind == ACCURACY else values


def _kind_of(runs: trained_runs.TrainedRuns, rows: np.ndarray) -> str:
    kinds = np.unique(runs.kinds[rows].astype(str))
    return str(kinds[0]) if len(kinds) == 1 else ""


def _join_losses(runs: trained_runs.TrainedRuns, values: np.ndarray) -> np.ndarray:
    """Return for every row the value of its `loss_task` measured on the same run, NaN without one, (n,)."""
    keys = pd.MultiIndex.from_arrays([runs.runs.astype(str), runs.loss_tasks.astype(str)])
    is_measured = ~np.isnan(values)
    measured_runs = runs.runs[is_measured].astype(str)
    measured_tasks = runs.tasks[is_measured].astype(str)
    index = pd.MultiIndex.from_arrays([measured_runs, measured_tasks])
    losses = pd.Series(values[is_measured], index=index)
    return losses[~index.duplicated()].reindex(keys).to_numpy()
