"""Predictors of interference: laws by hand, the network on sequences, and the order of their errors on a known law."""

import numpy as np
import pandas as pd
import pytest
from reloaded import reloaded

from perfcast import splits
from perfcast.domains.interference.datasets.host_interference import build
from perfcast.domains.interference.features import resource_shares, window_statistics
from perfcast.domains.interference.predictors import share_laws
from perfcast.domains.interference.predictors.cloudformer import CloudFormer
from perfcast.domains.interference.predictors.share_trees import (
    ResourceSharesTreesPredictor,
    WorkOfAloneTreesPredictor,
)
from perfcast.domains.interference.testing import host_interference as generated
from perfcast.schema.table import Column, Kind, Role, Table, Tag

SMALL = {"epochs": 2, "min_steps": 20, "batch_size": 64}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interference")
    generated.write(folder, rows=900, seed=1)
    standard = build({"host_interference": folder}, {}).table
    return window_statistics.derive(resource_shares.derive(standard))


def fit(predictor, table, rows):
    return predictor.fit(
        table.frame[rows],
        table.frame.loc[rows, ["share"]],
        columns=table.columns,
    )


def test_the_order_of_errors_on_unseen_victims_is_that_of_the_law(table):
    fold = splits.make("unseen_victim", table, 0)["fold_0"]
    training = fold.isin(["train", "validation"]).to_numpy()
    counted = (table.frame["is_reference"] == 0) & (table.frame["quantity"] == "throughput")
    tested = (fold == "test").to_numpy() & counted.to_numpy()

    def error(predictor):
        predicted = fit(predictor, table, training).predict(table.frame[tested])["share"]
        return 100 * (predicted - table.frame.loc[tested, "share"]).abs().mean()

    kinds = (
        share_laws.EntityMedianPredictor,
        share_laws.CoreSharePredictor,
        share_laws.SchedstatPredictor,
    )
    median, cores, schedstat = (error(kind()) for kind in kinds)
    assert schedstat < 4 and error(ResourceSharesTreesPredictor(n_estimators=60, learning_rate=0.1)) < 6
    assert min(median, cores) > 2 * schedstat
    assert schedstat < error(share_laws.PressureStallPredictor()) < median


def test_a_network_reads_seconds(table):
    predictor = CloudFormer(**SMALL)
    predictor.without_columns = ("*@*",)
    rows = np.arange(len(table.frame)) % 3 > 0
    fit(predictor, table, rows)
    metric = "group.processes.run_share"
    names = predictor.input_names()
    assert metric in names and not [name for name in names if "@" in name]
    tested = table.frame[~rows].head(20)
    seen = tested.assign(**{metric: table.frame[metric].iloc[[0] * 20].set_axis(tested.index)})
    expected = predictor.predict(tested)
    assert not predictor.predict(seen).equals(expected)
    pd.testing.assert_frame_equal(reloaded(predictor).predict(tested), expected)


def columns(*names):
    shares = [Column(name, Kind.NUMERICAL, Role.FEATURE, "shares") for name in names]
    return (
        Column("victim", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.ENTITY,)),
        *shares,
        Column("share", Kind.NUMERICAL, Role.TARGET, "run"),
    )


def test_laws_are_products_of_known_shares_or_medians():
    names = [
        "schedstat_share",
        "victim_cpu_unstalled",
        "victim_io_unstalled",
        "machine_cpu_unstalled",
    ]
    values = [
        [0.5, 0.8, 0.5, 0.1],
        [np.nan, 0.8, np.nan, 0.1],
        [0.0, np.nan, np.nan, 0.1],
    ]
    X = pd.DataFrame(values, columns=names).assign(victim="a")
    y = pd.DataFrame({"share": [0.9, 0.7, 0.6]})

    def predict(model, X, y, X_test):
        fitted = model().fit(X, y, columns=columns(*X.columns.drop("victim")))
        return fitted.predict(X_test)["share"].tolist()

    # the median, then the smallest
    assert predict(share_laws.SchedstatPredictor, X, y, X) == pytest.approx([0.5, 0.7, 0.01])
    assert predict(share_laws.PressureStallPredictor, X, y, X) == pytest.approx([0.4, 0.8, 0.7])
    machine = X[["victim", names[-1]]]
    assert predict(share_laws.PressureStallPredictor, machine, y, machine) == pytest.approx([0.1] * 3)
    X = pd.DataFrame({"victim": [*"aaabb"]})
    y = pd.DataFrame({"share": [0.2, 0.4, 0.5, 0.9, 0.9]})
    X_test = pd.DataFrame({"victim": ["a", "b", "new", None]})
    assert predict(share_laws.EntityMedianPredictor, X, y, X_test) == pytest.approx([0.4, 0.9, 0.5, 0.5])


def known_tenants(count=400):
    """Return rows whose throughput is 0.9 of the work, and whose tail latency has nothing to do with it."""
    frame = pd.DataFrame(
        {
            "id": np.arange(count).astype(str),
            "task": ["throughput", "latency_p99"] * (count // 2),
        }
    )
    frame = frame.assign(
        work_of_alone=np.random.default_rng(0).uniform(0.2, 1.0, count),
        use_of_alone=0.5,
    )
    frame["share"] = (0.9 * frame["work_of_alone"]).where(frame["task"] == "throughput", 0.3)
    columns = (
        Column("id", Kind.CATEGORICAL, Role.KEY, "problem", tags=(Tag.ROW,)),
        Column("task", Kind.CATEGORICAL, Role.KEY, "problem", tags=(Tag.TASK,)),
        Column("work_of_alone", Kind.NUMERICAL, Role.FEATURE, "alone"),
        Column("use_of_alone", Kind.NUMERICAL, Role.FEATURE, "alone"),
        Column("share", Kind.NUMERICAL, Role.TARGET, "problem", "share of alone"),
    )
    return Table("tenants", frame, columns, {})


def test_trees_start_from_the_work_where_it_tells_the_share_and_lookups_read_their_column():
    table = known_tenants()
    rows = np.arange(len(table.frame)) < 300
    fitted = fit(WorkOfAloneTreesPredictor(n_estimators=30, learning_rate=0.3), table, rows)
    assert [task.strip("\x1f") for task in fitted.based_["share"]] == ["throughput"]
    tested = table.frame[~rows]
    assert np.abs(reloaded(fitted).predict(tested)["share"] - tested["share"]).mean() < 0.05
    assert np.isfinite(fitted.predict(tested.assign(work_of_alone=np.nan))["share"]).all()
    for model, name in (
        (share_laws.WorkOfAlonePredictor, "work_of_alone"),
        (share_laws.UseOfAlonePredictor, "use_of_alone"),
    ):
        np.testing.assert_allclose(fit(model(), table, rows).predict(tested)["share"], tested[name])
