"""Sources of error: levels of groups are subtracted with the median of the other rows."""

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.servers.error_sources import (
    CONFIGURATION,
    ERROR_SOURCE_COLUMNS,
    NOTHING,
    subtract_level,
    tabulate_error_sources,
)
from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.render_page import domain_sections
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.splits import split_label
from perfcast.utils.errors import UserError


def machines(rows=400, seed=0):
    """Return a table and points whose residuals are the level of a core, that of a model and noise."""
    random = np.random.default_rng(seed)
    core, model = np.arange(rows) % 4, np.arange(rows) % 40
    columns = (
        Column("id", Kind.NUMERICAL, Role.KEY, "provenance", tags=(Tag.ROW,)),
        Column("core", Kind.NUMERICAL, Role.FEATURE, "processor"),
        Column("model", Kind.NUMERICAL, Role.FEATURE, "processor", tags=(Tag.CONFIG,)),
        Column("setup", Kind.NUMERICAL, Role.FEATURE, "system", tags=(Tag.CONFIG,)),
        Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
    )
    frame = pd.DataFrame({"id": range(rows), "core": core, "model": model, "setup": 0, "score": 50.0})
    levels = np.array([-0.3, -0.1, 0.1, 0.3])[core] + random.normal(0, 0.05, 40)[model]
    residual = levels + random.normal(0, 0.01, rows)
    points = pd.DataFrame({"split": "random", "predictor": "ridge", "row": range(rows), "task": "only"})
    points = points.assign(target="score", measured=50.0, predicted=50 * np.exp(residual))
    return build_table("small", frame, columns), points


def test_known_levels_leave_the_noise():
    table, points = machines()
    steps = {"the core": ["core"], "the model": ["model"]}
    frame = tabulate_error_sources(points, table, steps=steps)
    assert list(frame) == ERROR_SOURCE_COLUMNS
    average = frame[frame["task"] == AVERAGE].set_index("known")
    assert list(average.index) == [NOTHING, "the core", "the model", CONFIGURATION]
    assert average.loc[NOTHING, "mape"] > 10
    assert average.loc["the core", "mape"] == pytest.approx(100 * 0.05 * np.sqrt(2 / np.pi), rel=0.3)
    assert average.loc["the model", "mape"] == pytest.approx(100 * 0.01 * np.sqrt(2 / np.pi), rel=0.2)
    shares = average["share"].dropna()
    expected = 100 * (1 - average.loc[CONFIGURATION, "mape"] / average.loc[NOTHING, "mape"])
    assert shares.sum() == pytest.approx(expected)


def test_the_level_of_a_group_is_the_median_of_the_others():
    residual = np.array([3.5, 3.6, 3.8, 4.1, 5.0])
    expected = [3.5 - 3.8, 3.6 - 3.8, 3.8 - 3.6, 4.1 - 3.6, 5.0]
    assert subtract_level(residual, np.array(["a", "a", "a", "a", "b"])) == pytest.approx(expected)


def test_the_level_of_few_rows_is_shrunken():
    random = np.random.default_rng(0)
    groups = np.arange(1000) // 2
    noise = random.normal(0, 0.1, 1000)
    assert np.abs(subtract_level(noise, groups)).mean() <= np.abs(noise).mean(), "noise is no level"
    remaining = subtract_level(np.repeat(random.normal(0, 0.1, 500), 2) + noise, groups)
    assert np.abs(remaining).mean() < 0.95 * np.abs(np.repeat(random.normal(0, 0.1, 500), 2) + noise).mean()


def test_groups_of_tasks_have_levels_of_their_own():
    table, points = machines(rows=80)
    other = points.assign(task="other", predicted=points["measured"] * 1.5)
    frame = tabulate_error_sources(pd.concat([points, other]), table, steps={"the core": ["core"]})
    by_task = frame[frame["known"] == "the core"].set_index("task")["mape"]
    assert by_task["other"] == pytest.approx(0, abs=1e-9)
    assert by_task["only"] > 1


def test_unknown_columns_are_refused():
    table, points = machines(rows=20)
    with pytest.raises(UserError, match="'cores' of 'the core' is not"):
        tabulate_error_sources(points, table, steps={"the core": ["cores"]})


def test_the_report_lists_them_by_split():
    line = {"split": "random", "predictor": "network", "task": AVERAGE, "medape": 2.0}
    frame = pd.DataFrame(
        [
            {**line, "step": 0, "known": "nothing", "mape": 6.0, "share": np.nan},
            {**line, "step": 1, "known": "CPU model", "mape": 3.0, "share": 50.0},
            {**line, "step": 1, "known": "CPU model", "mape": 9.0, "share": 50.0, "predictor": "ridge"},
        ]
    )
    plain = Evaluation("servers", {"metrics": pd.DataFrame([{**line, "metric": "mape", "value": 6.0}])}, 10, 0, 0.9)
    assert domain_sections(plain, "network") == []
    (section,) = domain_sections(plain.with_tables(error_sources=frame), "network")
    (shown,) = section.data
    assert split_label("random") in shown.caption
    assert shown.lines == [("nothing", "6.00", "2.00", "–"), ("CPU model", "3.00", "2.00", "50.0")]
