"""Statistics of windows, shares of resources and ratios to alone: values by hand and against NumPy."""

import warnings

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.interference.features import (
    alone_ratios,
    resource_shares,
    window_statistics,
)
from perfcast.domains.interference.features.alone_ratios import (
    ALONE,
    OF_ALONE,
    USE,
    WORK,
)
from perfcast.schema.sequences import from_matrix
from perfcast.schema.table import Column, Kind, Role, build_table

NAN = np.nan
RUN = "group.processes.run_seconds"
READS = "group.processes.syscr"
WRITES = "group.processes.syscw"


def table(metrics, **numbers):
    frame = pd.DataFrame(
        {
            **{name: from_matrix(np.array(rows)) for name, rows in metrics.items()},
            **numbers,
        }
    )
    columns = [Column(name, Kind.SEQUENCE, Role.FEATURE, "cpu", meaning="load") for name in metrics]
    columns += [Column(name, Kind.NUMERICAL, Role.FEATURE, "shares") for name in numbers]
    return build_table("tiny", frame, columns)


def test_statistics_of_known_values_are_those_of_numpy():
    random = np.random.default_rng(0)
    windows = random.normal(size=(300, 10)).astype("float32")
    windows[random.random(windows.shape) < 0.3] = NAN
    windows[:3] = [[NAN] * 10, [NAN] * 9 + [2], [1] * 10]
    statistics = dict(
        zip(
            window_statistics.STATISTICS,
            window_statistics.describe_windows(windows),
            strict=True,
        )
    )
    numbers = windows.astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(statistics["mean"], np.nanmean(numbers, axis=1), atol=1e-12)
        np.testing.assert_allclose(statistics["deviation"], np.nanstd(numbers, axis=1), atol=1e-12)
        np.testing.assert_allclose(statistics["q10"], np.nanquantile(numbers, 0.1, axis=1), atol=1e-12)
        np.testing.assert_allclose(statistics["q90"], np.nanquantile(numbers, 0.9, axis=1), atol=1e-12)
    np.testing.assert_array_equal(statistics["last"], numbers[:, -1])
    for row in range(3, 300):
        known = np.isfinite(numbers[row])
        if known.sum() > 1:
            slope = np.polyfit(np.flatnonzero(known), numbers[row, known], 1)[0]
            assert statistics["slope"][row] == pytest.approx(slope, abs=1e-9)
    assert statistics["slope"][1] == 0
    assert np.isnan([values[0] for values in statistics.values()]).all()


def test_shares_are_those_of_the_last_second():
    metrics = {
        RUN: [[1, 0.5], [1, 0], [1, NAN]],
        "group.processes.wait_seconds": [[0, 1.5], [0, 0], [0, 1]],
        "group.pressure.cpu.some_seconds": [[0, 0.75], [0, 0], [0, 1.02]],
        "host.cpu.periods": [[10, 10], [NAN, NAN], [10, 10]],
        "host.cpu.throttled_periods": [[0, 4], [NAN, NAN], [0, 0]],
        "group.cpu.usage_seconds": [[0.5], [0], [0]],
        "others.cpu.usage_seconds": [[1.5], [0], [0]],
    }
    derived = resource_shares.derive(table(metrics, neighbors=[1, 0, 3], cores=[1, 2, 2])).frame
    assert derived["core_share"].tolist() == [0.5, 1, 0.5]
    np.testing.assert_array_equal(derived["schedstat_share"], [0.25, NAN, NAN])
    assert derived["unwaited_share"].tolist() == [0, 1, 0]
    assert derived["slept_share"].tolist()[:2] == [0, 1]
    assert derived["victim_cpu_unstalled"].tolist() == [0.25, 1, 0]
    assert derived["unthrottled_share"].tolist() == [0.6, 1, 1]
    assert "machine_io_unstalled" not in derived
    np.testing.assert_array_equal(derived["cpu_part"], [0.25, NAN, NAN])  # of victim and neighbors


def make(now, alone):
    """Return a table of windows of two seconds that end with `now`, and the means alone."""
    windows = {name: [[0.0, value] for value in values] for name, values in now.items()}
    return table(windows, **{ALONE + name: values for name, values in alone.items()})


def test_use_and_work_are_ratios_to_alone_which_end_at_ten():
    derived = alone_ratios.derive(make({RUN: [0.2, 0.9, 0.5, 0.3]}, {RUN: [0.8, 0.6, 0.0, NAN]})).frame
    np.testing.assert_allclose(derived[RUN + OF_ALONE], [0.25, 1.5, NAN, NAN], rtol=1e-6)
    np.testing.assert_allclose(derived[USE], [0.25, 1.0, NAN, NAN], rtol=1e-6)
    np.testing.assert_allclose(derived[WORK], derived[USE])
    now = {
        RUN: [0.5, 0.5, 0.5],
        READS: [30.0, 10.0, 900.0],
        WRITES: [20.0, 0.0, 0.0],
    }
    alone = {
        RUN: [1.0, 1.0, 1.0],
        READS: [100.0, 49.0, 600.0],
        WRITES: [100.0, 0.0, 0.0],
    }
    derived = alone_ratios.derive(make(now, alone)).frame
    np.testing.assert_allclose(derived[WORK], [0.25, 0.5, 1.0], rtol=1e-6)
    np.testing.assert_allclose(derived[USE], 0.5, rtol=1e-6)
    capped = alone_ratios.derive(make({RUN: [0.5], READS: [40.0]}, {RUN: [0.5], READS: [0.01]})).frame
    assert capped[READS + OF_ALONE].iloc[0] == 10
