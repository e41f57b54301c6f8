"""Expected errors: a non-negative sum of distances, fitted by likelihood."""

import numpy as np
import pytest

from perfcast.uncertainty.conformal import fit_expected_error


def made(rows=20_000, base=0.01, weights=(0.1, 0.0), seed=0):
    rng = np.random.default_rng(seed)
    distances = rng.random((rows, len(weights)))
    return np.abs(rng.laplace(0, base + distances @ np.array(weights))), distances, np.ones(rows)


def test_the_true_weights_are_found():
    base, weights = fit_expected_error(*made(base=0.02), 0.0)
    assert base == pytest.approx(0.02, rel=0.1)
    assert weights == pytest.approx([0.1, 0.0], abs=0.004)


def test_base_is_a_share_of_the_mean_error_at_least():
    sizes, distances, share = made(base=0.001)
    assert fit_expected_error(sizes, distances, share, 0.0)[0] == pytest.approx(0.2 * sizes.mean(), rel=0.05)


def test_a_rare_large_error_does_not_rule():
    sizes, distances, share = made()
    sizes[:100] = 5.0
    assert fit_expected_error(sizes, distances, share, 0.0)[1] == pytest.approx([0.1, 0.0], abs=0.015)


def test_no_weight_is_negative():
    sizes, distances, share = made(weights=(0.0, 0.0))
    base, weights = fit_expected_error(sizes * (1 - 0.9 * distances[:, 1]), distances, share, 0.0)
    assert base > 0
    assert (weights >= 0).all()
    assert weights[1] == 0


def test_a_penalty_shrinks_the_weights_in_any_unit():
    sizes, distances, share = made()
    free, some, much = (fit_expected_error(sizes, distances, share, penalty)[1][0] for penalty in (0.0, 0.03, 1.0))
    assert 0 < much < 0.5 * free
    assert much < some < 0.98 * free
    assert fit_expected_error(100 * sizes, distances, share, 1.0)[1][0] == pytest.approx(100 * much, rel=1e-3)


def test_rows_count_by_their_share():
    sizes, distances, _ = made(weights=(0.0, 0.0))
    sizes[:1000] *= 10
    heavy = np.where(np.arange(len(sizes)) < 1000, 19.0, 1.0)
    assert (
        fit_expected_error(sizes, distances, heavy, 1.0)[0]
        > 2 * fit_expected_error(sizes, distances, 1 + 0 * heavy, 1.0)[0]
    )


def test_errors_of_zero_have_a_positive_expectation():
    base, weights = fit_expected_error(np.zeros(9), np.zeros((9, 1)), np.ones(9), 0.0)
    assert base > 0
    assert np.isfinite(weights).all()


@pytest.mark.parametrize("penalty", [0.0, 0.01, 0.3])
def test_no_other_values_have_a_lower_loss(penalty):
    """The loss of the docstring, written once more: Laplace likelihood by share, and the penalty in relative units."""
    sizes, distances, _ = made(rows=2000, base=0.03, weights=(0.1, 0.02))
    share = np.random.default_rng(1).uniform(0.5, 2, len(sizes))
    base, weights = fit_expected_error(sizes, distances, share, penalty)
    cut = np.minimum(sizes, np.quantile(sizes, 0.99))
    mean = np.average(cut, weights=share)

    def loss(values):
        expected = values[0] + distances @ values[1:]
        likelihood = np.average(np.log(expected) + cut / expected, weights=share)
        return likelihood + penalty * np.sum((values[1:] / mean) ** 2)

    fitted = np.append(base, weights)
    assert base > 0.2 * mean
    for place in range(3):
        for factor in (0.97, 1.03):
            assert loss(np.where(np.arange(3) == place, factor * fitted, fitted)) > loss(fitted)
