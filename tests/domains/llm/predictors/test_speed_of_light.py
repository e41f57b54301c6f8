"""Speed of light, and boosted trees on the residual of a physical time."""

import numpy as np
import pandas as pd
import pytest

import perfcast
from perfcast.domains.llm.predictors.speed_of_light import SpeedOfLightPredictor
from perfcast.schema.table import Column, Kind, Role, Tag


def number(name, *tags):
    return Column(name, Kind.NUMERICAL, Role.FEATURE, "time", tags=tags)


COLUMNS = (
    Column("gpu", Kind.CATEGORICAL, Role.KEY, "gpu", tags=(Tag.ENTITY,)),
    Column("op", Kind.CATEGORICAL, Role.FEATURE, "shape", tags=(Tag.TASK,)),
    number("t_compute", Tag.BOUND, Tag.COST),
    number("t_memory", Tag.BOUND, Tag.COST),
    number("size"),
    number("peak"),
    Column("latency", Kind.NUMERICAL, Role.TARGET, "time"),
)


def cases(rows=400, seed=0, gpus=4):
    """Return times of twice the speed of light where `size` is positive, else four times."""
    random = np.random.default_rng(seed)
    gpu = random.integers(0, gpus, rows)
    compute, memory = np.exp(random.normal(0, 2, (2, rows)))
    size = random.normal(0, 1, rows)
    frame = pd.DataFrame(
        {
            "gpu": [f"g{value}" for value in gpu],
            "op": random.choice(["gemm", "moe"], rows),
            "t_compute": compute,
            "t_memory": memory,
            "size": size,
            "peak": gpu.astype(float),
        }
    )
    return frame, np.maximum(compute, memory) * np.where(size > 0, 2.0, 4.0)


def fit(predictor, frame, latency, columns=COLUMNS, **options):
    return predictor.fit(frame, pd.DataFrame({"latency": latency}), columns=columns, **options)


def light_trees(**options):
    return perfcast.estimator("light_trees", preset="full", learners={"lightgbm": options})


def test_speed_of_light_is_the_longest_bound():
    frame, latency = cases()
    predicted = fit(SpeedOfLightPredictor(), frame, latency).predict(frame)["latency"]
    np.testing.assert_allclose(predicted, frame[["t_compute", "t_memory"]].max(axis=1))


def test_speed_of_light_ignores_a_missing_bound_and_needs_one():
    frame, latency = cases()
    model = fit(SpeedOfLightPredictor(), frame, latency)
    row = frame.iloc[:3].assign(t_compute=np.nan, t_memory=[5.0, np.nan, 0.0], op=["gemm", "moe", "new"])
    medians = {op: np.median(latency[frame["op"] == op]) for op in ("gemm", "moe")}
    assert list(model.predict(row)["latency"]) == pytest.approx([5.0, medians["moe"], np.median(latency)], rel=0.2)
    assert model.predict(row)["latency"].iloc[1] == pytest.approx(medians["moe"])


def test_light_trees_learn_the_share_of_the_peak_that_is_reached():
    frame, latency = cases()
    new, expected = cases(seed=1)
    model = fit(light_trees(min_child_samples=5), frame, latency)
    error = np.abs(model.predict(new)["latency"] / expected - 1)
    assert np.median(error) < 0.05
    # far outside the sizes of training the share stays
    large = new.assign(t_compute=new["t_compute"] * 1e6, t_memory=new["t_memory"] * 1e6)
    np.testing.assert_allclose(model.predict(large)["latency"], 1e6 * model.predict(new)["latency"], rtol=0.6)


def test_trees_do_not_see_the_columns_left_out():
    frame, latency = cases()
    latency = latency * np.exp(frame["peak"].to_numpy())  # a factor per machine, which trees would learn by its peak
    blind, seeing = (fit(light_trees(without_columns=without), frame, latency) for without in (["pe*", "t_*"], []))
    other = frame.assign(peak=frame["peak"].to_numpy()[::-1])
    np.testing.assert_array_equal(blind.predict(other), blind.predict(frame))
    assert not np.allclose(seeing.predict(other), seeing.predict(frame))
