"""Designs of small runs: variances against simulation and direct inversion, the rule of the choice."""

import numpy as np
import pytest

from perfcast.domains.scaling.predictors import law_design
from perfcast.domains.scaling.predictors.curve_fit import SharesOfRuns
from perfcast.domains.scaling.predictors.law_fit import fit_power_sums

TARGET = np.log([7e9, 1.4e11])
NOISE = 0.003


def runs():
    sizes, multiples = np.meshgrid([5e7, 1e8, 2e8, 4e8, 8e8], [10, 20, 40, 100, 200], indexing="ij")
    return np.log(np.column_stack([sizes.ravel(), (sizes * multiples).ravel()]))


def true_loss(logs):
    return 1.7 + 60 * np.exp(-0.25 * logs[:, 0]) + 150 * np.exp(-0.25 * logs[:, 1])


def shares(losses):
    return 0.25 + 0.75 / (1 + np.exp(3 * (losses - 2.6)))


def noisy(values, seed=0):
    return values * np.exp(np.random.default_rng(seed).normal(0, NOISE, len(values)))


@pytest.fixture(scope="module")
def loss_design():
    return law_design.design_loss(
        runs(), noisy(true_loss(runs())), TARGET, np.log([[8e8, 1e9], [1.6e9, 3.2e10], [2e9, 4e10]])
    )


def test_the_spread_is_that_of_repeated_experiments(loss_design):
    logs, truth = runs(), true_loss(runs())
    fits = fit_power_sums([(logs, noisy(truth, seed)) for seed in range(150)], tied=True)
    errors = np.log([fitted.evaluate(TARGET[None])[0] for fitted in fits]) - np.log(true_loss(TARGET[None])[0])
    spread = np.sqrt(loss_design.spread**2 - loss_design.noise**2)
    assert loss_design.noise == pytest.approx(NOISE, rel=0.4)
    # of the noise that this experiment shows; the law is linearized, and its loss is not that of the noise
    assert np.std(errors) * loss_design.noise / NOISE == pytest.approx(spread, rel=0.5)


def test_a_run_reduces_the_variance_as_an_inversion_of_all_runs_does(loss_design):
    step = loss_design.steps[0]
    added = np.linalg.inv(np.linalg.inv(step.covariance) + np.outer(step.candidates[1], step.candidates[1]))
    assert step.add(1).covariance == pytest.approx(added)
    assert step.variance - step.add(1).variance == pytest.approx(step.reductions()[1])


def test_spreads_after_a_run_are_those_of_adding_it(loss_design):
    after = [loss_design.add(run).spread for run in range(3)]
    assert loss_design.spreads_after() == pytest.approx(after)
    assert max(after) < loss_design.spread
    assert after[2] < after[1], "the larger run of one length narrows more"


@pytest.mark.parametrize("make", ["two-step", "error rate"])
def test_an_accuracy_is_predicted_and_narrows(make):
    logs, candidates = runs(), np.log([[1.6e9, 3.2e10]])
    losses = noisy(true_loss(logs))
    if make == "two-step":
        design = law_design.design_accuracy(logs, SharesOfRuns(losses, shares(losses), 0.25), TARGET, candidates)
        assert design.prediction == pytest.approx(shares(true_loss(TARGET[None]))[0], abs=0.02)
    else:
        design = law_design.design_error_rate(logs, shares(losses), TARGET, candidates)
    assert 0 < design.prediction < 1
    assert design.spreads_after()[0] < design.spread


def two_runs(cheap, expensive):
    """Return a design of two unknown parameters, each of which one run shows with some precision."""
    step = law_design.StepDesign(np.eye(2), np.array([1.0, 1.0]), np.array([[cheap, 0.0], [0.0, expensive]]))
    return law_design.LawDesign(1.0, (step,), 0.1)


def test_the_choice_keeps_to_the_budget_and_the_count():
    compute = np.array([1.0, 10.0])
    designs = [two_runs(1.0, 10.0)]
    assert law_design.choose_runs(designs, compute, budget=11, count=2) == [1, 0]
    assert law_design.choose_runs(designs, compute, budget=9, count=2) == [0]
    assert law_design.choose_runs(designs, compute, budget=9, count=1) == [0]
    assert law_design.choose_runs(designs, compute, budget=0.5, count=1) == []


def test_the_chosen_runs_narrow_more_than_random_ones(loss_design):
    sizes, multiples = np.meshgrid(np.geomspace(1e8, 3e9, 8), [5, 20, 80, 320], indexing="ij")
    candidates = np.log(np.column_stack([sizes.ravel(), (sizes * multiples).ravel()]))
    design = law_design.design_loss(runs(), noisy(true_loss(runs())), TARGET, candidates)
    compute = 6 * np.exp(candidates.sum(axis=1))
    chosen = law_design.choose_runs([design], compute, 1e21, 4)
    rng, spent = np.random.default_rng(0), compute[chosen].sum()
    assert spent <= 1e21
    for _ in range(20):
        drawn = rng.choice(len(compute), 4)
        if compute[drawn].sum() <= spent:
            assert law_design.add_runs([design], chosen)[0].spread < law_design.add_runs([design], drawn)[0].spread
