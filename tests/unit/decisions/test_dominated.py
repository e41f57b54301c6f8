"""A candidate that is no better in anything that counts, and costs no less, never stands above another one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from perfcast.decisions.criteria import (
    COST,
    PROBABILITY,
    SCORE,
    Constraint,
    Output,
    RankingRequest,
    Spread,
    evaluate_criterion,
    read_criterion,
)
from perfcast.decisions.ranking import Ranked, sort_candidates
from perfcast.inference.machine_files import PRICE, WATTS
from perfcast.inference.name_lookup import TaskNames
from perfcast.inference.rules import DerivedOutput
from perfcast.utils.errors import UserError

TASKS = ("a", "b")
OUTPUTS = tuple(Output(task, "value") for task in TASKS)
RATE = DerivedOutput("rate", "1/s", "1 / (a + b)", TASKS, (), lambda scores, cells: 1 / (scores["a"] + scores["b"]))
COSTS = (PRICE, WATTS, COST)
WORDS = (SCORE, PROBABILITY, *COSTS, *TASKS, RATE.name)
LEVELS = st.sampled_from((1e-6, 0.2, 1.0, 1.5, 2.0, 3.7, 1e9))
"""Few values, so that candidates are often equal in some of them."""
CANDIDATES = st.lists(
    st.fixed_dictionaries(
        {PROBABILITY: st.sampled_from((0.0, 0.3, 0.5, 0.9, 1.0)), **dict.fromkeys((*COSTS, *TASKS), LEVELS)}
    ),
    min_size=2,
    max_size=8,
)
CRITERIA = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).flatmap(
    lambda words: st.tuples(
        st.just(words), st.lists(st.sampled_from("*/"), min_size=len(words) - 1, max_size=len(words) - 1)
    )
)


def fake(*, lower):
    rules = SimpleNamespace(lower_is_better=lower, derived=(RATE,), price_columns=())
    return SimpleNamespace(task_names=TaskNames(TASKS, {}), rules=rules, targets_of=dict.fromkeys(TASKS, ("value",)))


def spell(words, signs):
    return "".join(f"{sign}{word}" for sign, word in zip(["", *signs], words, strict=True))


def evaluate(line, given_values, request, weights):
    """Return a candidate with its value, as a ranking computes it."""
    scores = {output: Spread(given_values[output.task], None, None) for output in OUTPUTS}
    score = given_values["a"] ** weights[0] * given_values["b"] ** weights[1]
    derived = {RATE.name: Spread(RATE.compute(given_values, {}), None, None)}
    facts = {word: given_values[word] for word in (PROBABILITY, *COSTS)}
    value = evaluate_criterion(request.criterion, facts, Spread(score, None, None), scores, derived)
    least = given_values[PROBABILITY] if request.constraints else None
    unused = dict.fromkeys(("score_low", "score_high", "value_low", "value_high", "trust"))
    return Ranked(
        rank=0,
        line=line,
        name=str(line),
        machine="",
        score=score,
        probabilities=(),
        joint_probability_min=least,
        joint_probability_max=least,
        sure=None if least is None else least >= request.sure,
        watts_assumed=False,
        value=value.median,
        **{word: given_values[word] for word in COSTS},
        **unused,
    )


def is_dominated(candidate, other, request, *, lower):
    """Return whether a candidate is no better than the other in anything, costs no less, and is worse in something."""
    better = -1 if lower else 1
    senses = {**dict.fromkeys(TASKS, better), **dict.fromkeys(COSTS, -1)} | (
        {PROBABILITY: 1} if request.constraints else {}
    )
    gains = [sense * (candidate[word] - other[word]) for word, sense in senses.items()]
    return max(gains) <= 0 and min(gains) < 0


@settings(max_examples=2000, deadline=None)
@given(CRITERIA, CANDIDATES, st.booleans(), st.booleans(), st.sampled_from(((0.5, 0.5), (0.2, 0.8))))
@example((["score", "price"], ["/"]), [dict.fromkeys(WORDS[1:-1], 1.0)] * 2, True, False, (0.5, 0.5))
def test_a_dominated_candidate_never_stands_above(criterion, candidates, lower, has_targets, weights):
    champion = fake(lower=lower)
    try:
        read = read_criterion(spell(*criterion), champion)
    except UserError as error:
        assert "\n" not in str(error)
        if "must not reward" in str(error):
            assert read_criterion(error.remedy.split("'")[1], champion), "the remedy is accepted"
        return
    assume(has_targets or PROBABILITY not in read.exponents)
    goals = (Constraint(OUTPUTS[0], ">=", 1.0),) if has_targets else ()
    request = RankingRequest(read, dict(zip(OUTPUTS, weights, strict=True)), goals)
    ranked = sort_candidates(
        [evaluate(line, values, request, weights) for line, values in enumerate(candidates)],
        request,
        lower_is_better=lower,
    )
    for place, below in enumerate(ranked):
        for above in ranked[:place]:
            assert not is_dominated(candidates[above.line], candidates[below.line], request, lower=lower)


@pytest.mark.parametrize(
    ("typed", "lower", "right"),
    [
        ("score/price", True, "score*price"),
        ("a/watts", True, "a*watts"),
        ("rate*price", True, "rate/price"),
        ("score*score/cost", True, "score*score*cost"),
        ("score*price", False, "score/price"),
        ("score/probability", False, "score*probability"),
        ("price/probability*watts/score", False, None),
        ("score*price", True, None),
        ("price", False, None),
        ("rate/price", True, None),
    ],
)
def test_a_criterion_that_rewards_a_cost_is_refused_with_the_right_one(typed, lower, right):
    if right is None:
        assert read_criterion(typed, fake(lower=lower))
        return
    with pytest.raises(UserError, match="must not reward") as error:
        read_criterion(typed, fake(lower=lower))
    assert error.value.remedy == f"write --by {right!r}"
