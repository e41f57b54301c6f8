"""In-domain scores and neighbors of partly described machines: what was given counts, what was assumed does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from champion_project import KNOWN, is_possible, make_machines, predict, project

from perfcast.inference import PredictOptions, predict_machines
from perfcast.inference.reference_data import describing_columns

OPTIONS = PredictOptions(neighbors=0, explain=False)
FIRST = ("suite", "cpu_model", "chips")


def describe_more_and_more(row, seed):
    """Return a measured machine once for every number of its fields, in a random order."""
    names = [column.name for column in describing_columns(project().standard, ())]
    cells = project().champion.reference_data.measured.frame.iloc[[row]][names]
    given = [name for name in names if name not in FIRST and cells[name].notna().iloc[0]]
    order = [*FIRST, *np.random.default_rng(seed).permutation(given)]
    counts = range(len(FIRST), len(order) + 1, 2)
    frame = cells.iloc[[0] * len(counts)].set_axis(range(1, len(counts) + 1)).copy()
    for name in names:
        known = np.array([name in order[:count] for count in counts])
        frame[name] = frame[name].where(known)
    return make_machines(frame)


@pytest.mark.parametrize("seed", range(4))
def test_a_field_that_the_measured_machine_has_never_lowers_the_score(seed):
    champion = project().champion
    measured = champion.reference_data.measured.frame
    possible = [row for row in range(len(measured)) if is_possible(measured.iloc[[row]])]
    row = int(np.random.default_rng(seed).choice(possible))
    answer = predict_machines(describe_more_and_more(row, seed), champion, OPTIONS)
    scores = [machine.estimates[0].in_domain_score for machine in answer]
    assert len(scores) > 5
    assert np.diff(scores).min() > -1e-6


def test_a_field_that_no_measured_machine_has_lowers_the_score():
    (usual,) = predict(KNOWN, options=OPTIONS).machines
    (odd,) = predict({**KNOWN, "memory": "2 x 4 GB DDR3-1066"}, options=OPTIONS).machines
    assert all(
        far.in_domain_score < near.in_domain_score for far, near in zip(odd.estimates, usual.estimates, strict=True)
    )


def test_assumed_values_do_not_move_neighbors():
    options = replace(OPTIONS, neighbors=3)
    (assumed,) = predict(KNOWN, options=options).machines
    (bare,) = predict(KNOWN, options=replace(options, assume=False)).machines
    assert sum(estimate.assumed for estimate in assumed.estimates) > 0
    for first, second in zip(assumed.estimates, bare.estimates, strict=True):
        assert first.neighbors == second.neighbors
        assert first.in_domain_score == pytest.approx(second.in_domain_score)


def test_the_nearest_machines_have_the_cpu_model_that_was_given():
    champion = project().champion
    frame = champion.reference_data.measured.frame
    (answer,) = predict(KNOWN, options=replace(OPTIONS, neighbors=1)).machines
    for estimate in answer.estimates:
        same = frame[(frame["suite"] == estimate.task) & (frame["cpu_model"] == "xeon gold 6148")]
        if len(same):
            assert estimate.neighbors[0].machine.endswith("xeon gold 6148")


def test_numbers_of_numpy_are_numbers():
    (first,) = predict({**KNOWN, "chips": np.float64(2)}, options=OPTIONS)
    (second,) = predict({**KNOWN, "chips": np.int64(2)}, options=OPTIONS)
    assert first.estimates == second.estimates
