"""Lines of test rows over time: which one is chosen, its order, the complement and the interval."""

import pandas as pd
import pytest

from perfcast.domains.interference.series import SERIES_COLUMNS, tabulate_series
from perfcast.evaluation import Evaluation
from perfcast.report.plots.drawing import draw_svg
from perfcast.schema.table import Column, Kind, Role, Table, Tag
from perfcast.utils.errors import UserError

SERIES = {"line": ["run", "victim"], "position": "second"}
COLUMNS = (
    Column("id", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.ROW,)),
    Column("run", Kind.CATEGORICAL, Role.KEY, "run"),
    Column("victim", Kind.CATEGORICAL, Role.KEY, "run"),
    Column("second", Kind.NUMERICAL, Role.PROVENANCE, "run"),
)
# run 1 is steady, run 2 varies; the rows of run 2 are out of order
ROWS = pd.DataFrame(
    {
        "id": [*"abcdef"],
        "run": ["1", "1", "1", "2", "2", "2"],
        "victim": "sort",
        "second": [0.0, 1.0, 2.0, 5.0, 3.0, 4.0],
    }
)
MEASURED = [0.5, 0.5, 0.5, 0.2, 1.0, 0.6]


def points(predictor, predicted, half_width=0.6931471805599453, split="s"):
    return pd.DataFrame(
        {
            **{"split": split, "predictor": predictor, "row": ROWS["id"], "task": "throughput", "target": "share"},
            **{"measured": MEASURED, "predicted": predicted, "half_width": half_width},
        }
    )


def test_the_line_with_the_largest_spread_is_chosen_by_measured_values_alone():
    wild = points("wild", [0.1, 5.0, 0.1, 0.5, 0.5, 0.5])
    flat = points("flat", 0.5)
    series = tabulate_series(pd.concat([wild, flat]), Table("t", ROWS, COLUMNS), **SERIES)
    assert list(series.columns) == SERIES_COLUMNS
    assert set(series["line"]) == {"2, sort"}
    assert set(series["predictor"]) == {"wild", "flat"}
    line = series[series["predictor"] == "flat"]
    assert line["position"].tolist() == [3.0, 4.0, 5.0]
    assert line["measured"].tolist() == [1.0, 0.6, 0.2]
    assert line["low"].tolist() == pytest.approx([0.25] * 3)
    assert line["high"].tolist() == pytest.approx([1.0] * 3)
    assert set(series["quantity"]) == {"share"}


def test_a_complement_turns_the_interval_around():
    series = tabulate_series(points("p", 0.5), Table("t", ROWS, COLUMNS), **SERIES, complement="degradation")
    assert set(series["quantity"]) == {"degradation"}
    assert series["measured"].tolist() == pytest.approx([0.0, 0.4, 0.8])
    assert series["low"].tolist() == pytest.approx([0.0] * 3)
    assert series["high"].tolist() == pytest.approx([0.75] * 3)


def test_every_split_has_a_line_and_no_points_none():
    both = pd.concat([points("p", 0.5), points("p", 0.5, split="other")])
    series = tabulate_series(both, Table("t", ROWS, COLUMNS), **SERIES)
    assert series.groupby("split").size().to_dict() == {"s": 3, "other": 3}
    assert list(tabulate_series(both.iloc[:0], Table("t", ROWS, COLUMNS), **SERIES)) == SERIES_COLUMNS


def test_an_absent_column_is_named():
    with pytest.raises(UserError, match="'second' is not"):
        tabulate_series(points("p", 0.5), Table("t", ROWS.drop(columns="second"), COLUMNS), **SERIES)


def test_the_plot_has_a_panel_of_the_best_predictor_and_declines_other_datasets():
    keys = {"split": "s", "task": "throughput", "metric": "mape"}
    metrics = pd.DataFrame([{**keys, "predictor": name, "value": value} for name, value in (("wild", 9), ("flat", 2))])
    both = pd.concat([points("wild", [0.1, 5.0, 0.1, 0.5, 0.5, 0.5]), points("flat", 0.5)])
    series = tabulate_series(both, Table("t", ROWS, COLUMNS), **SERIES)
    plain = Evaluation("t", {"metrics": metrics}, 10, 0, 0.9)
    assert draw_svg(plain, "predictions_over_time") is None
    drawn = draw_svg(plain.with_tables(series=series), "predictions_over_time")
    assert drawn == draw_svg(plain.with_tables(series=series), "predictions_over_time")
    assert "second of 2, sort" in drawn
    assert ">flat<" in drawn
    assert ">wild<" not in drawn
