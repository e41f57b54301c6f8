"""Metrics of described machines: counted by hand on a few rows."""

import pandas as pd
import pytest

from perfcast.evaluation import AVERAGE
from perfcast.evaluation.supplementary_tables import DESCRIBED_COLUMNS, summarize_described


def predictions():
    common = {"split": "forward_2024", "facts": "all", "level": 1}
    return pd.DataFrame(
        [
            {**common, "task": "int", "measured": 100.0, "predicted": 110.0, "low": 99.0, "high": 121.0},
            {**common, "task": "int", "measured": 100.0, "predicted": 80.0, "low": 72.0, "high": 90.0},
            {**common, "task": "fp", "measured": 50.0, "predicted": 50.0, "low": 45.0, "high": 55.0},
        ]
    )


def summarize(frame):
    return summarize_described(pd.DataFrame(), None, predictions=frame, level=0.9)


def test_metrics_are_averaged_over_tasks():
    table = summarize(predictions()).set_index("task")
    assert list(table.reset_index()[DESCRIBED_COLUMNS]) == DESCRIBED_COLUMNS
    assert table.loc["int", ["n", "mape", "medape", "coverage"]].tolist() == pytest.approx([2, 15, 15, 50])
    assert table.loc["int", "width"] == pytest.approx((100 * 22 / 110 + 100 * 18 / 80) / 2)
    # the second interval ends 10 below the measured score: its width and 2 / 0.1 times the distance
    assert table.loc["int", "interval_score"] == pytest.approx((22 + 18 + 20 * 10) / 2)
    assert table.loc[AVERAGE, ["n", "mape", "coverage"]].tolist() == pytest.approx([3, 7.5, 75])


def test_without_predictions_there_is_no_row():
    assert summarize(None).empty
    assert summarize(predictions().head(0)).columns.tolist() == DESCRIBED_COLUMNS
