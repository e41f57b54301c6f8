"""Sensitivity of a ranking: the share of draws of all scores in which a candidate is first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perfcast.decisions.criteria import COST, PROBABILITY, Output
from perfcast.decisions.joint_errors import JointErrors
from perfcast.decisions.ranking_answer import Ranked, RankingRequest
from perfcast.inference.machine_files import PRICE, WATTS
from perfcast.inference.prediction import Predictions
from perfcast.inference.rules import DerivedOutput, Numbers

_DRAWS = 2000


def find_first_shares(
    predictions: Predictions,
    ranked: Sequence[Ranked],
    request: RankingRequest,
    errors: JointErrors,
    cells: Mapping[int, Numbers],
) -> dict[int, float]:
    """Return the share of draws in which each candidate is the first of the given ones, by line.

    Args: `cells` are the numbers of every candidate by line, those that derived quantities read.
    """
    lines = {candidate.line for candidate in ranked}
    estimates = [(each.line, estimate) for each in predictions if each.line in lines for estimate in each.estimates]
    scores = np.log(errors.draw(estimates, _DRAWS))
    drawn_scores: dict[int, dict[Output, np.ndarray]] = {}
    for place, (line, estimate) in enumerate(estimates):
        drawn_scores.setdefault(line, {})[Output.of(estimate)] = scores[:, place]
    values = np.empty((_DRAWS, len(ranked)))
    for place, candidate in enumerate(ranked):
        logs = drawn_scores[candidate.line]
        score = sum(weight * logs[output] for output, weight in request.weights.items())
        facts = criterion_facts(candidate.watts, candidate.price, candidate.cost, candidate.joint_probability_min)
        value = np.zeros(_DRAWS)
        for factor, power in request.criterion.exponents.items():
            if isinstance(factor, Output):
                value += power * logs[factor]
            elif isinstance(factor, DerivedOutput):
                drawn = {output.task: np.exp(values) for output, values in logs.items()}
                value += power * np.log(factor.compute(drawn, cells[candidate.line]))
            elif factor in facts:
                value += power * (np.log(facts[factor]) if facts[factor] > 0 else -1e9)
            else:
                value += power * score
        values[:, place] = value if request.criterion.ascending else -value
    counts = np.bincount(values.argmin(axis=1), minlength=len(ranked))
    return {candidate.line: float(count) / _DRAWS for candidate, count in zip(ranked, counts, strict=True)}


def criterion_facts(
    watts: float | None, price: float | None, cost: float | None, probability: float | None
) -> dict[str, float]:
    """Return the facts that a criterion may name, those that are known."""
    facts = {WATTS: watts, PRICE: price, COST: cost, PROBABILITY: probability}
    return {word: fact for word, fact in facts.items() if fact is not None}
