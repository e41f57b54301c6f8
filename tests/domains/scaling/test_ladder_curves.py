"""Runs under way: the known part by hand, and rows of generated runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perfcast.domains.scaling.datasets.ladder import KNOWN, TASKS, build_curves, describe_curve, fit_line
from perfcast.domains.scaling.features.training_curve import derive
from perfcast.domains.scaling.sources.olmo_ladder import LOSSES, TOKENS, list_runs, result_columns
from perfcast.domains.scaling.testing import olmo_ladder as generated
from perfcast.schema.table import Column, Kind, Role, Tag, build_table

C4 = LOSSES["c4_en"]


def evaluations(tokens: list[float], losses: list[float]) -> pd.DataFrame:
    frame = pd.DataFrame(0.5, index=range(len(tokens)), columns=result_columns())
    return frame.assign(**{TOKENS: tokens, C4: losses, "line": range(2, 2 + len(tokens))})


def test_a_line_has_its_value_at_zero_and_its_slope() -> None:
    assert fit_line(np.array([-1.0, 0.0]), np.array([5.0, 3.0])) == pytest.approx((3.0, -2.0))
    level, slope = fit_line(np.array([-0.5]), np.array([4.0]))
    assert level == 4.0
    assert np.isnan(slope)


def test_only_the_known_part_counts() -> None:
    progress = np.array([0.1, 0.25, 0.5, 0.75, 1.0])
    losses = 4 - np.log(progress)
    rows = describe_curve(evaluations((100 * progress).tolist(), losses.tolist()), 50, params=10.0)
    row = rows.set_index("task").loc["c4_en_loss_50_percent"]
    assert row["value_now"] == pytest.approx(losses[2])
    assert row["value_level"] == pytest.approx(losses[2])
    assert row["value_slope"] == pytest.approx(-1.0)  # through the evaluations at 25 and 50 %
    assert row["value"] == pytest.approx(losses[-1])
    assert (row["tokens"], row["tokens_per_param"]) == (100.0, 10.0)
    changed = losses.copy()
    changed[3] = 99.0
    again = describe_curve(evaluations((100 * progress).tolist(), changed.tolist()), 50, params=10.0)
    pd.testing.assert_frame_equal(again, rows)


def test_a_run_without_an_evaluation_so_far_has_no_row() -> None:
    assert describe_curve(evaluations([60.0, 100.0], [3.0, 2.0]), 50, params=1.0) is None


def test_every_run_task_and_share_has_a_row(tmp_path: Path) -> None:
    generated.write(tmp_path, rows=600, seed=0)
    built = build_curves({"olmo_ladder": tmp_path}, {})
    frame = built.table.frame
    assert len(frame) == len(list_runs()) * len(TASKS) * len(KNOWN)
    assert frame["result_id"].is_unique
    assert set(frame["known_share"]) == set(map(float, KNOWN))
    assert frame.groupby("run", observed=True)["value"].nunique().max() <= len(TASKS)
    assert built.rows_in == len(frame) + len(built.rejected)
    targets = built.table.select(role=Role.TARGET)
    assert targets == ["value"]


def test_a_late_first_evaluation_is_rejected_with_its_reason(tmp_path: Path) -> None:
    generated.write(tmp_path, rows=600, seed=0)
    path = tmp_path / "3B-10xC.csv"
    frame = pd.read_csv(path)
    frame[frame[TOKENS] > 0.3 * frame[TOKENS].max()].to_csv(path, index=False)
    built = build_curves({"olmo_ladder": tmp_path}, {})
    late = built.rejected[built.rejected["reason"] == "no_evaluation_so_far"]
    assert len(late) == len(TASKS)
    assert late["detail"].unique().tolist() == ["3B-10xC has no evaluation in its first 25 %"]


def test_the_command_line_can_name_every_task(tmp_path: Path) -> None:
    generated.write(tmp_path, rows=600, seed=0)
    tasks = set(build_curves({"olmo_ladder": tmp_path}, {}).table.frame["task"])
    assert "c4_en_loss_25_percent" in tasks
    assert not any("," in task or " " in task for task in tasks)  # --task separates names by commas


def test_the_slope_is_relative_to_the_level():
    values = {
        "value_now": [2.0, 0.5, 0.1],
        "value_level": [4.0, 0.0, 0.001],
        "value_slope": [-0.2, 0.3, 0.9],
        "tokens_per_param": [20.0, 40.0, 80.0],
    }
    columns = (
        Column("id", Kind.CATEGORICAL, Role.KEY, "evaluation", tags=(Tag.ROW,)),
        *(Column(name, Kind.NUMERICAL, Role.FEATURE, "curve") for name in values),
    )
    frame = derive(build_table("runs", pd.DataFrame({"id": list("abc"), **values}), columns)).frame
    np.testing.assert_allclose(frame["relative_slope"], [-0.05, np.nan, 10.0])
    np.testing.assert_allclose(frame["log_value_now"], np.log(values["value_now"]), rtol=1e-6)
