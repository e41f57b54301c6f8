"""Predictors of a device of which ten latencies are known, on devices made up of additive costs."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from perfcast.predictors.predictor import load_predictor
from perfcast.predictors.transfer.device_attention import DeviceAttentionPredictor
from perfcast.predictors.transfer.help_maml import HelpPredictor
from perfcast.predictors.transfer.ridge_transfer import RidgeTransferPredictor
from perfcast.predictors.transfer.task_experts import Known
from perfcast.predictors.transfer.task_items import ItemEncoder, at_most, item_columns, task_descriptions
from perfcast.schema.table import Column, Kind, Role, Tag

KINDS = ("conv", "pool", "skip")
EDGES = 6
COLUMNS = (
    Column("network", Kind.CATEGORICAL, Role.KEY, "network", tags=(Tag.ENTITY,)),
    Column("device", Kind.CATEGORICAL, Role.FEATURE, "device", tags=(Tag.TASK,)),
    Column("maker", Kind.CATEGORICAL, Role.FEATURE, "device"),
    *(Column(f"edge_{n}", Kind.CATEGORICAL, Role.FEATURE, "cell") for n in range(EDGES)),
    *(Column(f"n_{kind}", Kind.NUMERICAL, Role.FEATURE, "counts") for kind in KINDS),
)
FEW = (DeviceAttentionPredictor(draws=500, few_rows=30), RidgeTransferPredictor(few_rows=30))
TEACHING = 6


def networks(count, rng):
    drawn = rng.integers(3, size=(count, EDGES))
    frame = pd.DataFrame({f"edge_{n}": np.array(KINDS)[drawn[:, n]] for n in range(EDGES)})
    counts = {f"n_{kind}": (drawn == n).sum(axis=1).astype(float) for n, kind in enumerate(KINDS)}
    return frame.assign(**counts, network=[f"network {n}" for n in range(count)])


def latencies(frame, device):
    """Devices of even number are slow at convolutions, of odd at pooling; the seventh, 6, is as 0, 2 and 4 are."""
    rng = np.random.default_rng(device)
    costs = np.array([8.0, 1.0, 0.3] if device % 2 == 0 else [1.0, 6.0, 0.3]) * rng.uniform(0.9, 1.1, 3)
    base = rng.uniform(1, 5)
    return base + frame[[f"n_{kind}" for kind in KINDS]].to_numpy() @ costs


def data(count=120, shots=10):
    """Return the training rows of six devices and ten of the seventh, and its other rows."""
    rng = np.random.default_rng(0)
    every = networks(count, rng)
    rows = []
    for device in range(TEACHING + 1):
        told = every.assign(
            device=f"device {device}", maker="even" if device % 2 == 0 else "odd", latency=latencies(every, device)
        )
        rows.append(told)
    known = pd.concat([*rows[:-1], rows[-1].iloc[:shots]], ignore_index=True)
    return known, rows[-1].iloc[shots:].reset_index(drop=True)


@pytest.fixture(scope="module")
def known_and_asked():
    return data()


def fit(predictor, known):
    return predictor.fit(known.drop(columns="latency"), known["latency"], columns=COLUMNS)


@pytest.mark.parametrize("predictor", FEW, ids=lambda one: type(one).__name__)
class TestTenRows:
    def test_order_a_new_device_like_known_ones(self, predictor, known_and_asked):
        known, asked = known_and_asked
        forecast = fit(predictor, known).predict(asked)["latency"]
        assert spearmanr(forecast, asked["latency"]).statistic > 0.99
        assert np.abs(np.log(forecast / asked["latency"])).mean() < 0.03

    def test_a_device_unlike_all_others_is_learned_from_its_own_rows(self, predictor, known_and_asked):
        known, asked = known_and_asked
        strange = lambda frame: 2 + 9 * frame["n_skip"] + 0.2 * frame["n_conv"]  # noqa: E731
        mine = known["device"] == f"device {TEACHING}"
        known = known.assign(latency=known["latency"].where(~mine, strange(known)))
        forecast = fit(predictor, known).predict(asked)["latency"]
        least = 0.9 if isinstance(predictor, DeviceAttentionPredictor) else 0.3
        assert spearmanr(forecast, strange(asked)).statistic > least

    def test_a_well_measured_device_is_answered_for_by_its_own_expert(self, predictor, known_and_asked):
        known, asked = known_and_asked
        rows = asked.assign(device="device 1", maker="odd")
        forecast = fit(predictor, known).predict(rows)["latency"]
        np.testing.assert_allclose(forecast, latencies(rows, 1), rtol=0.02)

    def test_a_device_never_seen_is_a_mean_of_all(self, predictor, known_and_asked):
        known, asked = known_and_asked
        forecast = fit(predictor, known).predict(asked.assign(device="device 99"))["latency"]
        assert known["latency"].min() < forecast.mean() < known["latency"].max()

    def test_more_rows_than_an_expert_may_have_are_thinned_out(self, predictor, known_and_asked):
        known, asked = known_and_asked
        thin = type(predictor)(**{**predictor.get_params(), "expert_rows": 40})
        assert spearmanr(fit(thin, known).predict(asked)["latency"], asked["latency"]).statistic > 0.97


class TestDeviceAttention:
    def known(self, noise=0.0):
        rng = np.random.default_rng(1)
        experts = 1 + 0.4 * rng.normal(size=(3, 10))
        return Known(experts[1] + noise * rng.normal(size=10), experts, {"a": np.zeros((10, 2))}, np.zeros(3))

    def test_attends_to_the_expert_that_agrees_with_the_rows(self):
        weights = DeviceAttentionPredictor(draws=500)._weigh(self.known())
        assert weights.experts.argmax() == 1
        assert weights.experts.sum() == pytest.approx(1.0, abs=1e-9)

    def test_attends_to_the_expert_of_a_like_device_where_the_rows_do_not_say(self):
        known = self.known()
        same = Known(known.values, np.repeat(known.experts[:1], 3, axis=0), known.groups, np.array([0.0, 0.0, 1.0]))
        assert DeviceAttentionPredictor(draws=500)._weigh(same).experts.argmax() == 2

    def test_the_posterior_is_that_of_the_textbook(self):
        # one setting: the weights are those of a Gaussian process worked out by hand
        predictor, known = DeviceAttentionPredictor(draws=1, random_state=4), self.known(noise=0.1)
        known = Known(
            known.values, known.experts[:0], {"a": np.random.default_rng(2).normal(size=(10, 2))}, np.zeros(0)
        )
        from perfcast.predictors.transfer.device_attention import _Prior

        prior = _Prior(np.random.default_rng(4), 1, 1, [0.3])
        scale, _, constant = prior.scales[0]
        kernel = scale**2 * known.groups["a"] @ known.groups["a"].T + constant**2
        solution = np.linalg.solve(kernel + prior.noise[0] ** 2 * np.eye(10), known.values - 1)
        weights = predictor._weigh(known)
        np.testing.assert_allclose(weights.groups["a"], scale**2 * known.groups["a"].T @ solution)
        assert weights.constant == pytest.approx(1 + constant**2 * solution.sum())


class TestHelp:
    def predictor(self, **changed):
        return HelpPredictor(**{"epochs": 8, "few_rows": 30, "width": 16, "random_state": 1, **changed})

    def test_orders_a_new_device_and_says_so_after_loading(self, known_and_asked, tmp_path):
        known, asked = known_and_asked
        fitted = fit(self.predictor(), known)
        forecast = fitted.predict(asked)
        assert spearmanr(forecast["latency"], asked["latency"]).statistic > 0.9
        fitted.save(tmp_path)
        pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(asked), forecast)

    def test_the_embedding_is_of_the_networks_that_every_device_has(self, known_and_asked):
        known, _ = known_and_asked
        found = fit(self.predictor(epochs=1), known).known_["latency"]
        new = found[f"device {TEACHING}\x1f"]
        assert new.embedding.min() == pytest.approx(0.0)
        assert new.embedding.max() == pytest.approx(1.0)
        assert {len(one.embedding) for one in found.values()} == {10}
        assert len(new.known) == 10

    def test_tasks_set_aside_choose_the_epoch(self, known_and_asked):
        known, _ = known_and_asked
        choosing = (known["device"] == "device 2").to_numpy() & (known.groupby("device").cumcount() >= 10).to_numpy()
        predictor = self.predictor(epochs=3)
        predictor.fit(known.drop(columns="latency"), known["latency"], columns=COLUMNS, validation=choosing)
        assert np.isfinite(pd.DataFrame(predictor.history_).to_numpy(dtype=float)).all()  # as runs are recorded


class TestItems:
    def test_columns_that_describe_the_device_are_no_items(self, known_and_asked):
        known, _ = known_and_asked
        items = item_columns(known, COLUMNS)
        assert {column.name for column in items} == {column.name for column in COLUMNS[3:]}
        assert task_descriptions(known, COLUMNS, items)["device 3\x1f"] == {"maker": "odd"}

    def test_pairs_of_categories_come_where_rows_suffice(self, known_and_asked):
        known, _ = known_and_asked
        items = item_columns(known, COLUMNS)
        pairs = 15 * 9
        assert set(ItemEncoder(pairs - 1).fit(known, items).transform(known)) == {"cell", "counts"}
        encoder = ItemEncoder(pairs).fit(known, items)
        found = encoder.transform(known)
        assert found["cell pairs"].shape == (len(known), pairs)
        np.testing.assert_allclose(found["cell pairs"].mean(axis=0), 0, atol=1e-12)
        again = ItemEncoder.from_state(encoder.to_state(), items).transform(known)
        assert all(np.array_equal(found[name], again[name]) for name in found)

    def test_rows_are_thinned_evenly_by_task(self):
        kept = at_most(np.array(["a"] * 10 + ["b"] * 2), 3)
        assert kept.tolist() == [0, 4, 9, 10, 11]
