"""Predictors of a device with ten measured latencies, on generated devices with additive costs."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from perfcast.domains.nas.predictors.device_attention import DeviceAttention
from perfcast.domains.nas.predictors.help_maml import HelpMaml
from perfcast.domains.nas.predictors.task_experts import (
    FewShotTask,
    ItemEncoder,
    RidgeTransfer,
    describe_tasks,
    select_item_columns,
    thin_rows,
)
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Column, Kind, Role, Tag

KINDS = ("conv", "pool", "skip")
EDGES = 6
COLUMNS = (
    Column("network", Kind.CATEGORICAL, Role.KEY, "network", tags=(Tag.ENTITY,)),
    Column("device", Kind.CATEGORICAL, Role.FEATURE, "device", tags=(Tag.TASK,)),
    Column("vendor", Kind.CATEGORICAL, Role.FEATURE, "device"),
    *(Column(f"edge_{n}", Kind.CATEGORICAL, Role.FEATURE, "cell") for n in range(EDGES)),
    *(Column(f"n_{kind}", Kind.NUMERICAL, Role.FEATURE, "counts") for kind in KINDS),
)
PREDICTORS = (DeviceAttention(n_draws=500, few_shot_max_samples=30), RidgeTransfer(few_shot_max_samples=30))
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
        rows.append(every.assign(device=f"device {device}", vendor=vendor, latency=latencies(every, device)))
    train = pd.concat([*rows[:-1], rows[-1].iloc[:shots]], ignore_index=True)
    return train, rows[-1].iloc[shots:].reset_index(drop=True)


@pytest.fixture(scope="module")
def train_and_test():
    return data()


def fit(predictor, train):
    return predictor.fit(train.drop(columns="latency"), train["latency"], columns=COLUMNS)


@pytest.mark.parametrize("predictor", PREDICTORS, ids=lambda predictor: type(predictor).__name__)
class TestTenRows:
    def test_order_a_new_device_like_known_ones(self, predictor, train_and_test):
        train, test = train_and_test
        predicted = fit(predictor, train).predict(test)["latency"]
        assert spearmanr(predicted, test["latency"]).statistic > 0.99
        assert np.abs(np.log(predicted / test["latency"])).mean() < 0.03

    def test_a_device_that_differs_from_all_others_is_learned_from_its_own_rows(self, predictor, train_and_test):
        train, test = train_and_test
        strange = lambda frame: 2 + 9 * frame["n_skip"] + 0.2 * frame["n_conv"]  # noqa: E731
        few = train["device"] == f"device {TRAINED}"
        train = train.assign(latency=train["latency"].where(~few, strange(train)))
        predicted = fit(predictor, train).predict(test)["latency"]
        bound = 0.9 if isinstance(predictor, DeviceAttention) else 0.3
        assert spearmanr(predicted, strange(test)).statistic > bound

    def test_a_well_measured_device_is_predicted_by_its_own_expert(self, predictor, train_and_test):
        train, test = train_and_test
        rows = test.assign(device="device 1", vendor="odd")
        predicted = fit(predictor, train).predict(rows)["latency"]
        np.testing.assert_allclose(predicted, latencies(rows, 1), rtol=0.02)

    def test_a_device_never_seen_is_a_mean_of_all(self, predictor, train_and_test):
        train, test = train_and_test
        predicted = fit(predictor, train).predict(test.assign(device="device 99"))["latency"]
        assert train["latency"].min() < predicted.mean() < train["latency"].max()

    def test_more_rows_than_an_expert_may_have_are_thinned_out(self, predictor, train_and_test):
        train, test = train_and_test
        thin = type(predictor)(**{**predictor.get_params(), "max_samples_per_task": 40})
        assert spearmanr(fit(thin, train).predict(test)["latency"], test["latency"]).statistic > 0.97


class TestDeviceAttention:
    def task(self, noise=0.0):
        rng = np.random.default_rng(1)
        experts = 1 + 0.4 * rng.normal(size=(3, 10))
        return FewShotTask(experts[1] + noise * rng.normal(size=10), experts, {"a": np.zeros((10, 2))}, np.zeros(3))

    def test_attends_to_the_expert_that_agrees_with_the_rows(self):
        weights = DeviceAttention(n_draws=500)._weigh(self.task())
        assert weights.experts.argmax() == 1
        assert weights.experts.sum() == pytest.approx(1.0, abs=1e-9)

    def test_attends_to_the_expert_of_a_similar_device_where_the_rows_do_not_decide(self):
        task = self.task()
        same = FewShotTask(task.values, np.repeat(task.experts[:1], 3, axis=0), task.outputs, np.array([0.0, 0.0, 1.0]))
        assert DeviceAttention(n_draws=500)._weigh(same).experts.argmax() == 2

    def test_the_posterior_is_that_of_the_textbook(self):
        # one setting: the weights are those of a Gaussian process worked out by hand
        predictor, task = DeviceAttention(n_draws=1, random_state=4), self.task(noise=0.1)
        task = FewShotTask(
            task.values, task.experts[:0], {"a": np.random.default_rng(2).normal(size=(10, 2))}, np.zeros(0)
        )
        from perfcast.domains.nas.predictors.device_attention import _Prior

        prior = _Prior(np.random.default_rng(4), 1, 1, [0.3])
        scale, _, constant = prior.scales[0]
        kernel = scale**2 * task.outputs["a"] @ task.outputs["a"].T + constant**2
        solution = np.linalg.solve(kernel + prior.noise[0] ** 2 * np.eye(10), task.values - 1)
        weights = predictor._weigh(task)
        np.testing.assert_allclose(weights.outputs["a"], scale**2 * task.outputs["a"].T @ solution)
        assert weights.constant == pytest.approx(1 + constant**2 * solution.sum())


class TestHelp:
    def predictor(self, **changed):
        return HelpMaml(**{"epochs": 8, "few_shot_max_samples": 30, "hidden_size": 16, "random_state": 1, **changed})

    def test_orders_a_new_device_and_predicts_the_same_after_loading(self, train_and_test, tmp_path):
        train, test = train_and_test
        fitted = fit(self.predictor(), train)
        predicted = fitted.predict(test)
        assert spearmanr(predicted["latency"], test["latency"]).statistic > 0.9
        fitted.save(tmp_path)
        pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(test), predicted)

    def test_the_embedding_is_of_the_networks_that_every_device_has(self, train_and_test):
        train, _ = train_and_test
        tasks = fit(self.predictor(epochs=1), train).tasks_["latency"]
        new = tasks[f"device {TRAINED}\x1f"]
        assert new.embedding.min() == pytest.approx(0.0)
        assert new.embedding.max() == pytest.approx(1.0)
        assert {len(task.embedding) for task in tasks.values()} == {10}
        assert len(new.support) == 10

    def test_validation_tasks_choose_the_epoch(self, train_and_test):
        train, _ = train_and_test
        validation = (train["device"] == "device 2").to_numpy() & (train.groupby("device").cumcount() >= 10).to_numpy()
        predictor = self.predictor(epochs=3)
        predictor.fit(train.drop(columns="latency"), train["latency"], columns=COLUMNS, validation=validation)
        assert np.isfinite(pd.DataFrame(predictor.history_).to_numpy(dtype=float)).all()  # as runs are recorded


class TestItems:
    def test_columns_that_describe_the_device_are_no_items(self, train_and_test):
        train, _ = train_and_test
        items = select_item_columns(train, COLUMNS)
        assert {column.name for column in items} == {column.name for column in COLUMNS[3:]}
        assert describe_tasks(train, COLUMNS, items)["device 3\x1f"] == {"vendor": "odd"}

    def test_pairs_of_categories_come_where_rows_suffice(self, train_and_test):
        train, _ = train_and_test
        items = select_item_columns(train, COLUMNS)
        pairs = 15 * 9
        assert set(ItemEncoder(pairs - 1).fit(train, items).transform(train)) == {"cell", "counts"}
        encoder = ItemEncoder(pairs).fit(train, items)
        outputs = encoder.transform(train)
        assert outputs["cell pairs"].shape == (len(train), pairs)
        np.testing.assert_allclose(outputs["cell pairs"].mean(axis=0), 0, atol=1e-12)
        again = ItemEncoder.from_state(encoder.to_state(), items).transform(train)
        assert all(np.array_equal(outputs[name], again[name]) for name in outputs)

    def test_rows_are_thinned_evenly_by_task(self):
        rows = thin_rows(np.array(["a"] * 10 + ["b"] * 2), 3)
        assert rows.tolist() == [0, 4, 9, 10, 11]
