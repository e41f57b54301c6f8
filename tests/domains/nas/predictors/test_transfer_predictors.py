"""Predictors of a device with ten measured latencies, on generated devices with additive costs."""

import numpy as np
import pandas as pd
import pytest
from reloaded import reloaded
from scipy.stats import spearmanr

from perfcast.domains.nas.predictors.help_maml import HelpMaml
from perfcast.domains.nas.predictors.ridge_transfer import (
    ItemEncoder,
    RidgeTransfer,
    select_item_columns,
    thin_rows,
)
from perfcast.schema.table import Column, Kind, Role, Tag

KINDS = ("conv", "pool", "skip")
EDGES = 6
EDGE_COLUMNS = [Column(f"edge_{n}", Kind.CATEGORICAL, Role.FEATURE, "cell") for n in range(EDGES)]
COUNT_COLUMNS = [Column(f"n_{kind}", Kind.NUMERICAL, Role.FEATURE, "counts") for kind in KINDS]
COLUMNS = (
    Column("network", Kind.CATEGORICAL, Role.KEY, "network", tags=(Tag.ENTITY,)),
    Column("device", Kind.CATEGORICAL, Role.FEATURE, "device", tags=(Tag.TASK,)),
    Column("vendor", Kind.CATEGORICAL, Role.FEATURE, "device"),
    *EDGE_COLUMNS,
    *COUNT_COLUMNS,
)
TRAINED = 6


def networks(count, rng):
    drawn = rng.integers(3, size=(count, EDGES))
    frame = pd.DataFrame({f"edge_{n}": np.array(KINDS)[drawn[:, n]] for n in range(EDGES)})
    counts = {f"n_{kind}": (drawn == n).sum(axis=1).astype(float) for n, kind in enumerate(KINDS)}
    return frame.assign(**counts, network=[f"network {n}" for n in range(count)])


def latencies(frame, device):
    """Devices of even number are slow at convolutions, of odd at pooling; the seventh, 6, is as 0, 2 and 4 are."""
    rng = np.random.default_rng(device)
    operation_ms = np.array([8.0, 1.0, 0.3] if device % 2 == 0 else [1.0, 6.0, 0.3]) * rng.uniform(0.9, 1.1, 3)
    base = rng.uniform(1, 5)
    return base + frame[[f"n_{kind}" for kind in KINDS]].to_numpy() @ operation_ms


def data(count=120, shots=10):
    """Return the training rows of six devices and ten of the seventh, and its other rows."""
    rng = np.random.default_rng(0)
    every = networks(count, rng)
    rows = []
    for device in range(TRAINED + 1):
        vendor = "even" if device % 2 == 0 else "odd"
        rows.append(
            every.assign(
                device=f"device {device}",
                vendor=vendor,
                latency=latencies(every, device),
            )
        )
    train = pd.concat([*rows[:-1], rows[-1].iloc[:shots]], ignore_index=True)
    return train, rows[-1].iloc[shots:].reset_index(drop=True)


@pytest.fixture(scope="module")
def train_and_test():
    return data()


def fit(predictor, train):
    return predictor.fit(train.drop(columns="latency"), train["latency"], columns=COLUMNS)


def ridge_transfer(**changed):
    return RidgeTransfer(few_shot_max_samples=30, **changed)


class TestTenRows:
    def test_order_a_new_device_like_known_ones(self, train_and_test):
        train, test = train_and_test
        fitted = fit(ridge_transfer(), train)
        predicted = fitted.predict(test)["latency"]
        assert spearmanr(predicted, test["latency"]).statistic > 0.99
        assert np.abs(np.log(predicted / test["latency"])).mean() < 0.03
        known = test.assign(device="device 1", vendor="odd")  # well measured: by its own expert
        np.testing.assert_allclose(fitted.predict(known)["latency"], latencies(known, 1), rtol=0.02)
        unseen = fitted.predict(test.assign(device="device 99"))["latency"]
        assert train["latency"].min() < unseen.mean() < train["latency"].max(), "a mean of all"

    def test_a_strange_device_is_learned_from_its_own_rows_(self, train_and_test):
        train, test = train_and_test
        strange = lambda frame: 2 + 9 * frame["n_skip"] + 0.2 * frame["n_conv"]  # noqa: E731
        few = train["device"] == f"device {TRAINED}"
        changed = train.assign(latency=train["latency"].where(~few, strange(train)))
        predicted = fit(ridge_transfer(), changed).predict(test)["latency"]
        assert spearmanr(predicted, strange(test)).statistic > 0.3


class TestHelp:
    def predictor(self, **changed):
        small = {
            "epochs": 8,
            "few_shot_max_samples": 30,
            "hidden_size": 16,
            "random_state": 1,
        }
        return HelpMaml(**(small | changed))

    def test_orders_a_new_device_by_an_embedding_of_common_networks(self, train_and_test):
        train, test = train_and_test
        predicted = reloaded(fit(self.predictor(), train)).predict(test)
        assert spearmanr(predicted["latency"], test["latency"]).statistic > 0.9
        tasks = fit(self.predictor(epochs=1), train_and_test[0]).tasks_["latency"]
        new = tasks[f"device {TRAINED}\x1f"]
        assert (new.embedding.min(), new.embedding.max()) == pytest.approx((0.0, 1.0))
        assert {len(task.embedding) for task in tasks.values()} == {10} == {len(new.support)}

    def test_validation_tasks_choose_the_epoch(self, train_and_test):
        train, _ = train_and_test
        validation = (train["device"] == "device 2").to_numpy() & (train.groupby("device").cumcount() >= 10).to_numpy()
        predictor = self.predictor(epochs=3)
        predictor.fit(
            train.drop(columns="latency"),
            train["latency"],
            columns=COLUMNS,
            validation=validation,
        )
        assert np.isfinite(pd.DataFrame(predictor.history_).to_numpy(dtype=float)).all()  # as runs are recorded


class TestItems:
    def test_columns_that_describe_the_device_are_no_items(self, train_and_test):
        train, _ = train_and_test
        items = select_item_columns(train, COLUMNS)
        assert {column.name for column in items} == {column.name for column in COLUMNS[3:]}
        rows = thin_rows(np.array(["a"] * 10 + ["b"] * 2), 3)
        assert rows.tolist() == [0, 4, 9, 10, 11], "rows are thinned evenly by task"

    def test_pairs_of_categories_come_where_rows_suffice(self, train_and_test):
        train, _ = train_and_test
        items = select_item_columns(train, COLUMNS)
        pairs = 15 * 9
        assert set(ItemEncoder(pairs - 1).fit(train, items).transform(train)) == {
            "cell",
            "counts",
        }
        encoder = ItemEncoder(pairs).fit(train, items)
        outputs = encoder.transform(train)
        assert outputs["cell pairs"].shape == (len(train), pairs)
        np.testing.assert_allclose(outputs["cell pairs"].mean(axis=0), 0, atol=1e-12)
        again = ItemEncoder.from_state(encoder.to_state(), items).transform(train)
        assert all(np.array_equal(outputs[name], again[name]) for name in outputs)
