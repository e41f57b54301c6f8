"""Headline metrics, and errors of described machines: computed by hand."""

import pandas as pd
import pytest

from perfcast.evaluation import AVERAGE
from perfcast.evaluation.evaluation_files import headline_metrics
from perfcast.evaluation.supplementary_tables import DESCRIBED_COLUMNS, summarize_described


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        (
            {"trees": {"mape": 2.0, "coverage": 91.0, "r2": 0.9}, "nearest": {"mape": 4.0}, "ridge": {"mape": 3.0}},
            {"champion": "trees", "mape": 2.0, "coverage": 91.0, "baseline": "ridge", "baseline_mape": 3.0},
        ),
        ({"power_law": {"mape": 5.0}}, {"champion": "trees"}),
        # a share has its error in points
        (
            {
                "trees": {"mae": 2.0, "mape": 90.0},
                "nearest": {"mae": 4.0, "mape": 30.0},
                "ridge": {"mae": 3.0, "mape": 80.0},
            },
            {"champion": "trees", "mae": 2.0, "mape": 90.0, "baseline": "ridge", "baseline_mae": 3.0},
        ),
    ],
)
def test_a_split_has_the_champion_and_the_best_baseline_that_were_measured(errors, expected):
    metrics = {"hosts": {"random": {name: {"average": values} for name, values in errors.items()}}}
    headline = headline_metrics(metrics, {"hosts": "trees"}, ["nearest", "ridge"])
    assert headline["hosts", "random"] == expected


def test_metrics_of_described_machines_are_averaged_over_tasks():
    common = {"split": "forward_2024", "facts": "all", "level": 1}
    lines = [("int", 100.0, 110.0, 99.0, 121.0), ("int", 100.0, 80.0, 72.0, 90.0), ("fp", 50.0, 50.0, 45.0, 55.0)]
    described = pd.DataFrame(lines, columns=["task", "measured", "predicted", "low", "high"]).assign(**common)
    whole, none, empty = (summarize_described(frame, 0.9) for frame in (described, None, described.head(0)))
    table = whole.set_index("task")
    assert table.loc["int", ["n", "mape", "medape", "coverage"]].tolist() == pytest.approx([2, 15, 15, 50])
    assert table.loc["int", "width"] == pytest.approx((100 * 22 / 110 + 100 * 18 / 80) / 2)
    # the second interval ends 10 below the measured score: its width and 2 / 0.1 times the distance
    assert table.loc["int", "interval_score"] == pytest.approx((22 + 18 + 20 * 10) / 2)
    assert table.loc[AVERAGE, ["n", "mape", "coverage"]].tolist() == pytest.approx([3, 7.5, 75])
    assert none.empty and empty.empty and list(whole) == list(empty) == DESCRIBED_COLUMNS
