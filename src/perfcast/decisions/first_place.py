"""Probabilities that candidates of a ranking come first, from joint draws of their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from perfcast.decisions.criteria import SCORE, RankingRequest
from perfcast.decisions.joint_scores import predict_scores
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry
from perfcast.inference.options import PredictOptions
from perfcast.inference.suites import Measured

MOST = 50
"""Candidates, the best ones, among which the probability is shared: those after them hardly ever come first."""


def find_first_places(
    candidates: Sequence[tuple[MachineEntry, float, float]],
    champion: Champion,
    request: RankingRequest,
    options: PredictOptions,
    measured: Measured,
) -> list[float] | list[None]:
    """Return the probability that each candidate has the best value of the criterion, the candidates best first.

    The scores are drawn jointly, with the correlations of their errors; expenses are exact. It is None where there are
    fewer than two candidates, or where they are not ordered by the score.
    Args: `candidates` have their value of the criterion and their score.
    """
    unknown = [None] * len(candidates)
    if len(candidates) < 2 or request.criterion.quantity != SCORE:
        return unknown
    placed = [entry._replace(line=place) for place, (entry, _, _) in enumerate(candidates[:MOST])]
    scores, errors = predict_scores(placed, champion, request.weights, options, measured)
    if scores is None or errors:
        return unknown
    logs = np.zeros((len(placed), scores.joint.logs.shape[1]))
    for place, (_, value, score) in enumerate(candidates[:MOST]):
        per_score = math.log(value) - math.log(score)
        of_tasks = [
            weight * scores.joint.logs[scores.row_of[place, output.task]] for output, weight in request.weights.items()
        ]
        logs[place] = per_score + np.sum(of_tasks, axis=0)
    winners = logs.argmin(axis=0) if request.criterion.ascending else logs.argmax(axis=0)
    counts: list[int] = np.bincount(winners, minlength=len(candidates)).tolist()
    return [count / logs.shape[1] for count in counts]
