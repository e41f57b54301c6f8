"""Results after training: no answer goes away from what was published of its machine, without saying why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from champion_project import SUITES, predict, project
from hypothesis import given, settings
from hypothesis import strategies as st

from perfcast.inference.options import make_options
from perfcast.uncertainty.levels import ErrorRows, KnownErrors, outputs_of

OPTIONS = make_options(when="2025-03")


def learn(rows, errors):
    """Return the champion after errors of rows of its table, published later; NaN CPU models are of others."""
    champion = project().champion
    table = champion.reference_data.measured
    part = replace(table, frame=table.frame.iloc[rows].reset_index(drop=True))
    before = champion.calibrated.known
    known = KnownErrors(
        before.levels,
        np.array(errors),
        ErrorRows.of(part, outputs_of(part.frame[champion.task], champion.predictor.targets_[0])),
        months=np.full(len(rows), np.datetime64("2025-02-01", "ns")),
        trained=before.trained,
    )
    return replace(champion, calibrated=replace(champion.calibrated, known=known))


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_an_update_leads_no_answer_away_from_published_results_without_saying_why(data):
    table = project().champion.reference_data.measured.frame
    count = data.draw(st.integers(1, 12))
    rows = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=count, max_size=count))
    errors = data.draw(st.lists(st.floats(-0.5, 0.5), min_size=count, max_size=count))
    possible = np.flatnonzero(~(table["chips"] > table["max_sockets"]))  # generated results take any number
    machine = table.iloc[data.draw(st.sampled_from(possible.tolist()))]
    typed = {"processor": machine["cpu_model"], "chips": machine["chips"]}
    before, after = (predict(typed, each, OPTIONS).machines[0] for each in (project().champion, learn(rows, errors)))
    of_model = (table["cpu_model"].iloc[rows] == machine["cpu_model"]).sum()
    for old, new in zip(before.estimates, after.estimates, strict=True):
        if old.published is None or old.published.differs:
            continue
        away = [abs(np.log(each.median / each.published.median)) for each in (old, new)]
        if away[1] > away[0] + 1e-9:
            assert after.basis.later_results.startswith(f"{of_model} results of {machine['cpu_model']} since 2025-02")
            assert of_model > 0


def test_errors_of_others_stop_at_published_results_and_move_new_machines():
    table = project().champion.reference_data.measured.frame
    known = table.loc[table["chips"] == 2, "cpu_model"].value_counts().index[0]
    others = np.flatnonzero((table["cpu_model"] != known).to_numpy())[:200]
    champion = learn(others, np.full(len(others), -0.2))
    new = {"processor": known, "chips": 2, "memory": "4 x 8 GB DDR4-2133"}
    moved = {}
    for name, typed in (("known", {"processor": known, "chips": 2}), ("new", new)):
        before, after = (predict(typed, each, OPTIONS).machines[0] for each in (project().champion, champion))
        assert [each.task for each in before.estimates] == SUITES
        pairs = zip(before.estimates, after.estimates, strict=True)
        moved[name] = pd.Series([np.log(b.median / a.median) for a, b in pairs])
    assert moved["new"].abs().max() >= moved["known"].abs().max()
