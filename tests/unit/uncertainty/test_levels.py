"""Levels of prediction errors: variances, what known errors tell of other rows, and rolling predictions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from champion_project import project
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.schema.table import Tag
from perfcast.uncertainty.levels import ErrorLevels, ErrorRows, KnownErrors, shared_labels

LABELS = ["everything", "family", "part"]


def rows_of(labels, outputs):
    return ErrorRows(pd.DataFrame(labels, columns=LABELS), np.array(outputs))


def levels_of(noise=0.5, **variances):
    """Return levels with given variances of labels, and none by output but that of the family."""
    levels = ErrorLevels()
    levels.variances = {f"{name}{by}": 1e-8 for name in LABELS for by in ("", " by output")} | variances
    levels.noise = noise
    return levels


def test_fit_recovers_known_variances():
    """6 backtests x 8 families x 10 CPU models x 2 outputs, and a few absurd scores."""
    random = np.random.default_rng(0)
    rows = list(product(range(6), range(8), range(10), range(2)))
    times, families, parts, outputs = np.array(rows).T
    errors = (
        random.normal(0, 0.04, (6, 8))[times, families] + random.normal(0, 0.03, (6, 8, 2))[times, families, outputs]
    )
    errors += random.normal(0, 0.05, (6, 8, 10))[times, families, parts] + random.normal(0, 0.02, len(rows))
    errors[::97] += 3.0
    labels = [("everything", f"f{family}", f"{family}-{part}") for _, family, part, _ in rows]
    levels = ErrorLevels().fit(errors, rows_of(labels, np.array(["a", "b"])[outputs]), times)
    expected = {"family": 0.04, "family by output": 0.03, "part": 0.05}
    for name, size in expected.items():
        assert np.sqrt(levels.variances[name]) == pytest.approx(size, rel=0.4), name
    assert np.sqrt(levels.noise) == pytest.approx(0.02, rel=0.4)


def test_one_output_has_no_variances_by_output():
    random = np.random.default_rng(0)
    rows = rows_of([("everything", f"f{number % 5}", f"p{number}") for number in range(50)], ["a"] * 50)
    assert list(ErrorLevels().fit(random.normal(0, 0.1, 50), rows, np.zeros(50)).variances) == LABELS


def test_predictions_are_those_of_the_joint_normal_distribution():
    """The oracle conditions dense covariances; errors near 0 have the weight 5/4 under the t distribution."""
    levels = levels_of(noise=4.0, family=2.0, part=1.0, **{"family by output": 0.5})
    labels = [("everything", "f", "p"), ("everything", "f", "q"), ("everything", "g", "r"), ("everything", np.nan, "s")]
    rows, known = rows_of(labels * 2, ["a"] * 4 + ["b"] * 4), np.array([0, 1, 4])
    covariances = KnownErrors(levels, np.zeros(0), rows.take(np.zeros(0, dtype=int))).covariance(rows)
    assert covariances[0, 1] == pytest.approx(2.5, abs=1e-6) and covariances[0, 4] == pytest.approx(3.0, abs=1e-6)
    assert covariances[3, 7] == pytest.approx(1.0, abs=1e-6), "an unknown label is nobody's"
    errors = np.array([0.03, -0.01, 0.02])
    among = covariances[np.ix_(known, known)] - (1 - 4 / 5) * levels.noise * np.eye(3)
    measured = KnownErrors(levels, errors, rows.take(known))
    shifts, factors = measured.predict(rows)
    others = [2, 3, 5, 6, 7]
    weights = np.linalg.solve(among, covariances[known][:, others])
    np.testing.assert_allclose(shifts[others], weights.T @ errors, rtol=1e-3, atol=1e-9)
    left = np.diag(covariances)[others] - (weights * covariances[known][:, others]).sum(axis=0)
    np.testing.assert_allclose(factors[others], (left / np.diag(covariances)[others]) ** 0.25, rtol=1e-3)
    narrowed = measured.covariance(rows)
    assert (np.diag(narrowed) <= np.diag(covariances) + 1e-9).all()
    assert narrowed[4, 5] < covariances[4, 5]


@settings(max_examples=60, deadline=None)
@given(st.floats(-0.4, 0.4), st.integers(1, 6), st.floats(0.001, 0.1), st.floats(0.001, 0.1))
def test_a_known_error_moves_its_own_row_most_and_never_past_it(error, count, part, by_output):
    levels = levels_of(noise=0.001, family=0.002, part=part, **{"part by output": by_output})
    known = KnownErrors(levels, np.full(count, error), rows_of([("everything", "f", "p")] * count, ["a"] * count))
    labels = [("everything", "f", "p"), ("everything", "f", "p"), ("everything", "f", "q"), ("everything", "g", "r")]
    shifts, factors = known.predict(rows_of(labels, ["a", "b", "a", "a"]))
    sizes = np.abs(shifts)
    assert (shifts * error >= -1e-12).all() and sizes[0] <= abs(error) + 1e-12
    assert sizes[0] >= sizes[1] - 1e-12 >= sizes[2] - 2e-12 >= sizes[3] - 3e-12
    assert (np.diff(factors) >= -1e-12).all() and (factors <= 1).all()


def test_a_mistyped_score_tells_nothing_more_than_a_large_error():
    levels, row = levels_of(family=2.0), rows_of([("everything", "f", "p")], ["a"])
    large, absurd = (KnownErrors(levels, np.array([size]), row).predict(row)[0][0] for size in (0.5, 7.0))
    assert large == absurd > 0


def test_rolling_reads_earlier_months_alone():
    random, count = np.random.default_rng(0), 60
    months = np.datetime64("2023-01", "M") + random.integers(0, 6, count)
    rows = rows_of([("everything", f"f{number % 3}", f"p{number % 9}") for number in range(count)], ["a", "b"] * 30)
    errors, levels = random.normal(0, 0.1, count), levels_of(noise=0.01, family=0.02, part=0.01)
    expected, factors = levels.roll(errors, rows, months)
    first = months == months.min()
    assert (expected[first] == 0).all() and (factors[first] == 1).all() and (factors[~first] < 1).all()
    changed = np.where(months >= np.datetime64("2023-04"), -errors, errors)
    until = months <= np.datetime64("2023-04")
    np.testing.assert_allclose(levels.roll(changed, rows, months)[0][until], expected[until], atol=1e-9)


def test_known_errors_survive_their_folder(tmp_path):
    labels = [("everything", "f", "p"), ("everything", np.nan, "q")]
    rows = rows_of(labels, ["a", "b"])
    for number, numbers in enumerate(([0, 1], [])):
        folder, taken = tmp_path / str(number), np.array(numbers, dtype=int)
        folder.mkdir()
        months = pd.to_datetime(["2024-01-01", "2024-02-01"]).to_numpy()[taken]
        errors, trained = np.array([0.1, -0.2])[taken], rows.take(taken[:1]).count(taken[:1])
        given_errors = KnownErrors(levels_of(part=1.0), errors, rows.take(taken), months=months, trained=trained)
        given_errors.save(folder)
        loaded = KnownErrors.load(folder)
        np.testing.assert_array_equal(loaded.predict(rows), given_errors.predict(rows))
        assert (loaded.months == months).all() and loaded.levels.variances == given_errors.levels.variances


def test_shared_labels_are_the_entity_its_slices_and_levels():
    table = project().champion.reference_data.measured
    labels = shared_labels(table)
    names = [
        "everything",
        "cpu_vendor",
        "family",
        "cpu_model",
        "compiler_major_minor",
        "os_name",
        "system_stem",
        "identity",
    ]
    assert list(labels.columns) == names
    assert labels["identity"].nunique() > labels[table.column_of(Tag.ENTITY)].nunique()


def test_what_training_rows_told_of_a_label_has_little_left_to_move():
    levels = levels_of(noise=0.01, **{"family": 0.01, "part": 0.02, "part by output": 0.02})
    row, other = rows_of([("everything", "f", "p")], ["a"]), rows_of([("everything", "f", "q")], ["a"])
    moves, widths = [], []
    for count in (0, 1, 3, 30):
        submissions = np.arange(count).astype(str)
        trained = rows_of([("everything", "f", "p")] * count, ["a"] * count).count(submissions)
        known = KnownErrors(levels, np.array([-0.2]), row, trained=trained)
        (shift,), (width,) = known.predict(row)
        moves.append([shift, known.predict(other)[0][0]])
        widths.append(width)
    assert (np.diff(np.abs(moves), axis=0) < 0).all() and (np.diff(widths) > 0).all()
    assert abs(moves[3][0]) < abs(moves[0][0]) / 3


def test_rows_of_one_submission_are_one_result_of_a_label():
    rows = rows_of([("everything", "f", "p"), ("everything", "f", "p"), ("everything", "f", np.nan)], ["a", "b", "a"])
    counts = rows.count(np.array(["one", "one", "two"]))
    assert counts["part"].to_dict() == {"p": 1} and counts["family"].to_dict() == {"f": 2}
    assert counts["family by output"].to_dict() == {"f\x1fa": 2, "f\x1fb": 1}


def test_errors_of_machines_with_training_results_are_less_correlated():
    """Their family is known: what is left are errors of their own."""
    levels = levels_of(noise=0.001, family=0.02, part=0.001)
    rows, nothing = rows_of([("everything", "f", "p"), ("everything", "f", "q")], ["a", "a"]), np.zeros(0, dtype=int)
    trained = rows_of([("everything", "f", "p")] * 60, ["a"] * 60).count(np.arange(60))
    new, known = (
        KnownErrors(levels, np.zeros(0), rows.take(nothing), trained=each).correlations(rows)[0, 1]
        for each in ({}, trained)
    )
    assert new > 0.8 and known < 0.5
