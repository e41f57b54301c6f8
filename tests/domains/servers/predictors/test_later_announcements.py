"""Nothing that was announced, or left unannounced, after the last training row has an influence on a prediction."""

from __future__ import annotations

import ast
import dataclasses
from math import log1p
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from generated_servers import COLUMNS, compute_scores, daily_dates, generate_servers

import perfcast
from perfcast import splits
from perfcast.domains.servers.predictors.analytical import AnalyticalPredictor
from perfcast.domains.servers.predictors.analytical_time import AnalyticalTimePredictor
from perfcast.domains.servers.processors import announcements
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

CUT = pd.Timestamp("2022-12-31")
KINDS = {
    "analytical": AnalyticalPredictor,
    "analytical_time": AnalyticalTimePredictor,
    "hybrid_trees": lambda: perfcast.estimator("hybrid_trees", learners={"extra_trees": {"n_estimators": 2}}),
}
LATER = ("Sapphire Rapids", "Emerald Rapids", "Granite Rapids-SP", "Sierra Forest", "Turin", "Turin Dense")


def rewritten(table, day):
    """Give every design of a later day than `day` another gain: one where none was announced, and the reverse."""
    changed = {}
    for name, design in table.items():
        later = design.announced > day and design.gain != 0.0
        changed[name] = dataclasses.replace(design, gain=None if design.gain else 0.9) if later else design
    return changed


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_the_same_whatever_was_announced_later(kind, monkeypatch):
    train = generate_servers(families=("Ice Lake-SP", "Cascade Lake-SP", "Milan"))
    scores = compute_scores(train.assign(family="Milan"))
    test = pd.concat([train.head(40), *[generate_servers(20, (family,), seed=3) for family in LATER]])
    test["cpu_vendor"] = np.where(test["family"].str.startswith(("Turin", "Milan")), "AMD", "Intel")

    def predict():
        model = KINDS[kind]()
        return model.fit(train, scores, columns=COLUMNS, when=daily_dates(len(train), str(CUT.date()))).predict(test)

    before = predict()
    for name in ("core_table", "process_table"):
        table = rewritten(getattr(announcements, name)(), CUT)
        assert table != getattr(announcements, name)(), "the table must have later designs"
        monkeypatch.setattr(announcements, name, lambda table=table: table)
    pd.testing.assert_frame_equal(predict(), before, check_exact=True)


def test_a_blank_counts_from_its_day_on_and_the_mean_of_the_vendor_before_it(monkeypatch):
    """Redwood Cove was sold from 2023-12-14 without a claim, and Raptor Cove from 2022-09-27."""
    known = {name: core.gain for name, core in announcements.core_table().items() if core.vendor == "Intel"}
    gains = [known[name] for name in ("Broadwell", "Skylake", "Sunny Cove", "Cypress Cove", "Golden Cove")]
    mean = log1p(sum(gains) / len(gains))
    train = generate_servers(families=("Ice Lake-SP", "Cascade Lake-SP"))

    def levels(last):
        model = AnalyticalPredictor()
        model.fit(train, compute_scores(train.assign(family="Milan")), columns=COLUMNS, when=daily_dates(600, last))
        gains_ = model.terms_.core_gains(pd.DataFrame({"family": ["Sapphire Rapids", *LATER[1:3]], "metric": "speed"}))
        return np.diff(gains_)

    raptor, redwood = levels("2022-09-26")
    assert (raptor, redwood) == pytest.approx((mean, mean))
    raptor, redwood = levels("2022-12-31")
    assert (raptor, redwood) == pytest.approx((0.0, mean))
    assert levels("2023-12-14") == pytest.approx((0.0, 0.0))


def test_every_split_has_the_gains_of_its_last_training_row():
    """Also where the split is no forward split; its training rows may be as late as its test rows."""
    rows = 900
    frame = generate_servers(rows, ("Naples", "Rome", "Milan", "Ice Lake-SP"))
    frame["score"] = compute_scores(frame.assign(family="Milan"))["score"]
    rng = np.random.default_rng(0)
    months = pd.date_range("2018-01-01", "2024-12-01", freq="MS")
    frame["published"] = months[np.sort(rng.integers(0, len(months), rows))]
    frame["row"] = [f"r{number}" for number in range(rows)]
    frame["cpu_model"] = [f"m{number // 12}" for number in range(rows)]
    columns = (
        Column("row", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
        Column("cpu_model", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY,)),
        Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
        *COLUMNS,
    )
    table = build_table("generated", frame, columns)
    days = {}
    for name in ("random", "unseen_cpu", "forward_2023", "forward_2024", "few_shot_3", "forward_2024_last_2_years"):
        folds = splits.make(name, table, 0)["fold_0"]
        known = folds.isin(["train", "validation"]).to_numpy()
        train, when = table.frame[known], table.frame.loc[known, "published"]
        predictor = AnalyticalPredictor().fit(
            train.drop(columns="score"),
            train[["score"]],
            columns=table.columns,
            validation=(folds[known] == "validation").to_numpy(),
            when=when,
        )
        assert predictor.terms_.clock_gains == announcements.announced_index(when.max())
        assert predictor.terms_.power_gains == announcements.announced_power_index(when.max())
        days[name] = when.max()
    assert days["forward_2023"] < pd.Timestamp("2023-01-01") <= days["forward_2024"] < pd.Timestamp("2024-01-01")


def test_gains_reach_predictors_through_the_terms_alone():
    """So the tests above hold for every predictor: no other module reads a gain."""
    root = Path(perfcast.__file__).parent
    harmless = {"find_core", "ancestry", "core_table"}
    readers = set()
    for folder in ("predictors", "features", "nn", "inference", "decisions", "domains/servers/predictors"):
        for path in (root / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                is_reader = isinstance(node, ast.ImportFrom) and (node.module or "").endswith("announcements")
                if is_reader and not {alias.name for alias in node.names} <= harmless:
                    readers.add(path.relative_to(root).as_posix())
    assert readers == {"domains/servers/predictors/terms.py"}
    for name in ("hybrid_attention", "hybrid_ensemble"):
        params = [perfcast.estimator(each).get_params() for each in (name, "hybrid_trees")]
        assert params[0]["structure"] == params[1]["structure"]
