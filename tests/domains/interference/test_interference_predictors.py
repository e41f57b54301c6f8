"""Predictors of interference: laws by hand, networks on sequences, and the order of their errors on a known law."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast import splits
from perfcast.domains.interference.datasets.host_interference import build
from perfcast.domains.interference.features import resource_shares, window_statistics
from perfcast.domains.interference.predictors import sequence_networks, share_laws
from perfcast.domains.interference.predictors.share_trees import ResourceSharesTreesPredictor, WorkOfAloneTreesPredictor
from perfcast.domains.interference.testing import host_interference as generated
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.schema.table import Column, Kind, Role, Table, Tag

SMALL = {"epochs": 2, "min_steps": 20, "batch_size": 64}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder = tmp_path_factory.mktemp("interference")
    generated.write(folder, rows=900, seed=1)
    standard = build({"host_interference": folder}, {}).table
    return window_statistics.derive(resource_shares.derive(standard))


def fit(predictor: Predictor, table: Table, rows: np.ndarray) -> Predictor:
    return predictor.fit(table.frame[rows], table.frame.loc[rows, ["share"]], columns=table.columns)


def test_the_order_of_errors_on_unseen_victims_is_that_of_the_law(table: Table) -> None:
    fold = splits.make("unseen_victim", table, 0)["fold_0"]
    training = fold.isin(["train", "validation"]).to_numpy()
    counted = (table.frame["is_reference"] == 0) & (table.frame["quantity"] == "throughput")
    tested = (fold == "test").to_numpy() & counted.to_numpy()
    errors = {}
    for predictor in (
        share_laws.EntityMedianPredictor(),
        share_laws.CoreSharePredictor(),
        share_laws.SchedstatPredictor(),
        share_laws.PressureStallPredictor(),
        ResourceSharesTreesPredictor(n_estimators=60, learning_rate=0.1),
    ):
        predicted = fit(predictor, table, training).predict(table.frame[tested])["share"]
        errors[type(predictor).__name__] = 100 * (predicted - table.frame.loc[tested, "share"]).abs().mean()
    assert errors["SchedstatPredictor"] < 4
    assert errors["ResourceSharesTreesPredictor"] < 6
    for baseline in ("EntityMedianPredictor", "CoreSharePredictor"):
        assert errors[baseline] > 2 * errors["SchedstatPredictor"]
    assert errors["SchedstatPredictor"] < errors["PressureStallPredictor"] < errors["EntityMedianPredictor"]


@pytest.mark.parametrize(
    "kind",
    [
        sequence_networks.SequenceLSTM,
        sequence_networks.SequenceGRU,
        sequence_networks.TemporalConvolution,
        sequence_networks.CloudFormer,
    ],
)
def test_a_network_reads_seconds_and_is_saved_with_them(kind: type[Predictor], table: Table, tmp_path: Path) -> None:
    predictor = kind(**SMALL)
    predictor.without_columns = ("*@*",)
    rows = np.arange(len(table.frame)) % 3 > 0
    fit(predictor, table, rows)
    names = predictor.input_names()
    assert "group.processes.run_share" in names
    assert not [name for name in names if "@" in name]
    tested = table.frame[~rows].head(20)
    predictor.save(tmp_path)
    expected = predictor.predict(tested)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(tested), expected)
    seen = table.frame["group.processes.run_share"].iloc[[0] * 20].set_axis(tested.index)
    assert not predictor.predict(tested.assign(**{"group.processes.run_share": seen})).equals(expected)


def test_attention_has_shares_of_seconds_metrics_and_branches(table: Table) -> None:
    predictor = sequence_networks.CloudFormer(**SMALL)
    fit(predictor, table, np.ones(len(table.frame), dtype=bool))
    maps = predictor.attention(table.frame.head(50))
    assert maps.intra["time"].shape == (1, 10)
    assert {"(static)", "group.processes.run_share"} <= set(maps.intra["metrics"].columns)
    for frame in (*maps.intra.values(), maps.inter):
        np.testing.assert_allclose(frame.sum(axis=1), 1, rtol=1e-5)


def columns(*names: str) -> tuple[Column, ...]:
    return (
        Column("victim", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.ENTITY,)),
        *(Column(name, Kind.NUMERICAL, Role.FEATURE, "shares") for name in names),
        Column("share", Kind.NUMERICAL, Role.TARGET, "run"),
    )


def test_laws_are_products_of_known_shares() -> None:
    names = ("schedstat_share", "victim_cpu_unstalled", "victim_io_unstalled", "machine_cpu_unstalled")
    values = [[0.5, 0.8, 0.5, 0.1], [np.nan, 0.8, np.nan, 0.1], [0.0, np.nan, np.nan, 0.1]]
    X = pd.DataFrame(values, columns=list(names)).assign(victim="a")
    y = pd.DataFrame({"share": [0.9, 0.7, 0.6]})
    schedstat = share_laws.SchedstatPredictor().fit(X, y, columns=columns(*names))
    assert schedstat.predict(X)["share"].tolist() == pytest.approx([0.5, 0.7, 0.01])  # the median, then the smallest
    stalls = share_laws.PressureStallPredictor().fit(X, y, columns=columns(*names))
    assert stalls.predict(X)["share"].tolist() == pytest.approx([0.4, 0.8, 0.7])
    machine = share_laws.PressureStallPredictor().fit(X[["victim", names[-1]]], y, columns=columns(names[-1]))
    assert machine.predict(X)["share"].tolist() == pytest.approx([0.1] * 3)


def test_an_unknown_entity_gets_the_median_of_all() -> None:
    X = pd.DataFrame({"victim": ["a", "a", "a", "b", "b"]})
    y = pd.DataFrame({"share": [0.2, 0.4, 0.5, 0.9, 0.9]})
    predictor = share_laws.EntityMedianPredictor().fit(X, y, columns=columns())
    requested = pd.DataFrame({"victim": ["a", "b", "new", None]})
    assert predictor.predict(requested)["share"].tolist() == pytest.approx([0.4, 0.9, 0.5, 0.5])


RULE_COLUMNS = (
    Column("id", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.ROW,)),
    Column("quantity", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.TASK,)),
    *(Column(name, Kind.NUMERICAL, Role.FEATURE, "run") for name in ("idle_share", "unstalled_run_share")),
    Column("schedstat_share", Kind.NUMERICAL, Role.FEATURE, "run"),
    Column("share", Kind.NUMERICAL, Role.TARGET, "run"),
)


def paced_and_closed(count: int = 200) -> pd.DataFrame:
    """Half of the rows have rests of 10 to 50 % and lose nothing; the others never rest more than 1 %."""
    random = np.random.default_rng(0)
    rests = np.arange(count) % 2 == 0
    idle = np.where(rests, random.uniform(0.1, 0.5, count), random.uniform(0, 0.01, count))
    run = random.uniform(0.2, 0.9, count)
    frame = {"id": [f"r{n}" for n in range(count)], "quantity": "throughput", "idle_share": idle}
    return pd.DataFrame(
        {**frame, "unstalled_run_share": run, "schedstat_share": 0.5 * run, "share": np.where(rests, 1.0, run)}
    )


def test_a_victim_with_idle_time_keeps_up_and_another_loses_its_waiting(tmp_path: Path) -> None:
    frame = paced_and_closed()
    predictor = share_laws.IdleTimePredictor().fit(frame.drop(columns="share"), frame[["share"]], columns=RULE_COLUMNS)
    threshold, name = predictor.rules_["share"]["throughput\x1f"]
    assert 0.01 <= threshold < 0.1
    assert name == "unstalled_run_share"
    predicted = predictor.predict(frame.drop(columns="share"))
    assert predicted["share"].to_numpy() == pytest.approx(frame["share"].to_numpy())
    predictor.save(tmp_path)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(frame.drop(columns="share")), predicted)
    missing = frame.assign(unstalled_run_share=np.nan, idle_share=np.nan).drop(columns="share")
    assert (predictor.predict(missing)["share"] == 1).all()


def test_without_idle_time_the_rule_is_schedstat() -> None:
    frame = paced_and_closed().drop(columns="idle_share")
    columns = tuple(column for column in RULE_COLUMNS if column.name not in ("idle_share", "unstalled_run_share"))
    names = [column.name for column in columns if column.name != "share"]
    predictor = share_laws.IdleTimePredictor().fit(frame[names], frame[["share"]], columns=columns)
    assert predictor.predict(frame[names])["share"].to_numpy() == pytest.approx(frame["schedstat_share"].to_numpy())


def test_a_task_with_few_rows_has_the_rule_of_all() -> None:
    frame = paced_and_closed()
    frame.loc[frame.index < 10, "quantity"] = "latency_p99"
    predictor = share_laws.IdleTimePredictor().fit(frame.drop(columns="share"), frame[["share"]], columns=RULE_COLUMNS)
    assert not [task for task in predictor.rules_["share"] if "latency" in task]
    few = frame[frame["quantity"] == "latency_p99"]
    assert predictor.predict(few.drop(columns="share"))["share"].to_numpy() == pytest.approx(few["share"].to_numpy())


def known_tenants(count: int = 400) -> Table:
    """Return rows whose throughput is 0.9 of the work, and whose tail latency has nothing to do with it."""
    random = np.random.default_rng(0)
    work = random.uniform(0.2, 1.0, count)
    task = np.where(np.arange(count) % 2 == 0, "throughput", "latency_p99")
    share = np.where(task == "throughput", 0.9 * work, 0.3)
    frame = pd.DataFrame({"id": np.arange(count).astype(str), "task": task, "work_of_alone": work, "share": share})
    frame["use_of_alone"] = 0.5
    columns = (
        Column("id", Kind.CATEGORICAL, Role.KEY, "problem", tags=(Tag.ROW,)),
        Column("task", Kind.CATEGORICAL, Role.KEY, "problem", tags=(Tag.TASK,)),
        Column("work_of_alone", Kind.NUMERICAL, Role.FEATURE, "alone"),
        Column("use_of_alone", Kind.NUMERICAL, Role.FEATURE, "alone"),
        Column("share", Kind.NUMERICAL, Role.TARGET, "problem", "share of alone"),
    )
    return Table("tenants", frame, columns, {})


def test_trees_start_from_the_work_where_it_tells_the_share(tmp_path: Path) -> None:
    table = known_tenants()
    rows = np.arange(len(table.frame)) < 300
    fitted = fit(WorkOfAloneTreesPredictor(n_estimators=30, learning_rate=0.3), table, rows)
    assert [task.strip("\x1f") for task in fitted.based_["share"]] == ["throughput"]
    tested = table.frame[~rows]
    few_trees = fitted.predict(tested)["share"]
    assert np.abs(few_trees - tested["share"]).mean() < 0.05
    fitted.save(tmp_path / "model")
    pd.testing.assert_series_equal(load_predictor(tmp_path / "model").predict(tested)["share"], few_trees)
    missing = fitted.predict(tested.assign(work_of_alone=np.nan))["share"]
    assert np.isfinite(missing).all()


def test_lookups_of_tenants_seen_alone_read_their_column() -> None:
    table = known_tenants()
    rows = np.ones(len(table.frame), dtype=bool)
    work = fit(share_laws.WorkOfAlonePredictor(), table, rows).predict(table.frame)["share"]
    np.testing.assert_allclose(work, table.frame["work_of_alone"])
    use = fit(share_laws.UseOfAlonePredictor(), table, rows).predict(table.frame)["share"]
    np.testing.assert_allclose(use, 0.5)
