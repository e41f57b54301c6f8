"""Sources of error: levels of groups are subtracted with the median of the other rows."""

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.servers import error_sources
from perfcast.evaluation import AVERAGE, Evaluation
from perfcast.report.render_page import domain_sections
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.splits import split_label
from perfcast.utils.errors import UserError


def machines(rows=400):
    """Return a table and points whose residuals are the level of a core, that of a model and noise."""
    random = np.random.default_rng(0)
    core, model = np.arange(rows) % 4, np.arange(rows) % 40
    config = {
        name: Column(name, Kind.NUMERICAL, Role.FEATURE, "system", tags=(Tag.CONFIG,)) for name in ("model", "setup")
    }
    columns = (
        Column("id", Kind.NUMERICAL, Role.KEY, "provenance", tags=(Tag.ROW,)),
        Column("core", Kind.NUMERICAL, Role.FEATURE, "processor"),
        *config.values(),
        Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
    )
    frame = pd.DataFrame({"id": range(rows), "core": core, "model": model, "setup": 0, "score": 50.0})
    levels = np.array([-0.3, -0.1, 0.1, 0.3])[core] + random.normal(0, 0.05, 40)[model]
    residual = levels + random.normal(0, 0.01, rows)
    points = pd.DataFrame({"split": "random", "predictor": "ridge", "row": range(rows), "task": "only"})
    points = points.assign(target="score", measured=50.0, predicted=50 * np.exp(residual))
    return build_table("small", frame, columns), points


def test_known_levels_leave_the_noise_and_are_medians_of_the_others():
    table, points = machines()
    frame = error_sources.tabulate_error_sources(points, table, steps={"the core": ["core"], "the model": ["model"]})
    assert list(frame) == error_sources.ERROR_SOURCE_COLUMNS
    average = frame[frame["task"] == AVERAGE].set_index("known")
    assert list(average.index) == [error_sources.NOTHING, "the core", "the model", error_sources.CONFIGURATION]
    mape = average["mape"]
    assert mape[error_sources.NOTHING] > 10
    assert mape["the core"] == pytest.approx(100 * 0.05 * np.sqrt(2 / np.pi), rel=0.3)
    assert mape["the model"] == pytest.approx(100 * 0.01 * np.sqrt(2 / np.pi), rel=0.2)
    assert average["share"].sum() == pytest.approx(
        100 * (1 - mape[error_sources.CONFIGURATION] / mape[error_sources.NOTHING])
    )
    residual = np.array([3.5, 3.6, 3.8, 4.1, 5.0])
    expected = [3.5 - 3.8, 3.6 - 3.8, 3.8 - 3.6, 4.1 - 3.6, 5.0]
    assert error_sources.subtract_level(residual, np.array([*"aaaab"])) == pytest.approx(expected)
    noise = np.random.default_rng(0).normal(0, 0.1, 1000)
    assert np.abs(error_sources.subtract_level(noise, np.arange(1000) // 2)).mean() <= np.abs(noise).mean(), (
        "noise is no level"
    )


def test_groups_of_tasks_have_levels_of_their_own_and_unknown_columns_are_refused():
    table, points = machines(rows=80)
    other = points.assign(task="other", predicted=points["measured"] * 1.5)
    frame = error_sources.tabulate_error_sources(pd.concat([points, other]), table, steps={"the core": ["core"]})
    by_task = frame[frame["known"] == "the core"].set_index("task")["mape"]
    assert by_task["other"] == pytest.approx(0, abs=1e-9) and by_task["only"] > 1
    with pytest.raises(UserError, match="'cores' of 'the core' is not"):
        error_sources.tabulate_error_sources(points, table, steps={"the core": ["cores"]})


def test_the_report_lists_them_by_split():
    line = {"split": "random", "task": AVERAGE, "medape": 2.0}
    steps = [("network", 0, "nothing", 6.0, np.nan), ("network", 1, "CPU model", 3.0, 50.0)]
    steps.append(("ridge", 1, "CPU model", 9.0, 50.0))
    frame = pd.DataFrame(steps, columns=["predictor", "step", "known", "mape", "share"]).assign(**line)
    metrics = pd.DataFrame([{**line, "predictor": "network", "metric": "mape", "value": 6.0}])
    plain = Evaluation("servers", {"metrics": metrics}, 10, 0, 0.9)
    assert domain_sections(plain, "network") == []
    (section,) = domain_sections(plain.with_tables(error_sources=frame), "network")
    (shown,) = section.data
    assert split_label("random") in shown.caption
    assert shown.lines == [("nothing", "6.00", "2.00", "–"), ("CPU model", "3.00", "2.00", "50.0")]
