"""Quality of chosen layouts: questions of a few options, scored by hand."""

import pandas as pd
import pytest

from perfcast.domains.llm.layout_choices import tabulate_choices
from perfcast.schema.table import Column, Kind, Role, Table, Tag
from perfcast.utils.errors import UserError

CHOICE = {"task": "step", "question": ["model"], "work": "load", "cost": "gpus", "limits": [10]}
COLUMNS = (
    Column("id", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.ROW,)),
    Column("model", Kind.CATEGORICAL, Role.KEY, "run"),
    Column("load", Kind.NUMERICAL, Role.FEATURE, "run"),
    Column("gpus", Kind.NUMERICAL, Role.FEATURE, "run"),
)
# throughput per GPU as measured: a 4 / 8 = 0.5, b 16 / 20 = 0.8 but too slow, c 16 / (8 * 2) = 1, d 16 / (9 * 2) = 0.89
ROWS = pd.DataFrame(
    {"id": [*"abcd"], "model": "m", "load": [4.0, 16.0, 16.0, 16.0], "gpus": [1.0, 1.0, 2.0, 2.0]},
)
MEASURED = [8.0, 20.0, 8.0, 9.0]


def choose(predicted, choice=CHOICE, rows=ROWS, measured=MEASURED):
    points = pd.DataFrame(
        {
            **{"split": "s", "predictor": "p", "row": rows["id"], "task": "step", "target": "t"},
            **{"measured": measured, "predicted": predicted},
        }
    )
    return tabulate_choices(points, Table("t", rows, COLUMNS), **choice)


def test_true_times_choose_the_best_option():
    line = choose(MEASURED).iloc[0]
    assert (line["share"], line["violated"], line["median_loss"]) == (100, 0, 0)
    assert (line["questions"], line["options"], line["limit"]) == (1, 4, 10)


def test_a_choice_below_nine_tenths_of_the_best_is_not_good():
    line = choose([8.0, 20.0, 11.0, 9.0]).iloc[0]  # c is thought too slow: d has 8/9 of its throughput
    assert (line["share"], line["violated"]) == (0, 0)
    assert line["median_loss"] == pytest.approx(100 / 9)


def test_a_choice_that_exceeds_the_limit_is_not_good():
    line = choose([8.0, 9.0, 8.0, 9.0]).iloc[0]
    assert (line["share"], line["violated"]) == (0, 100)


def test_the_fastest_is_chosen_where_none_seems_within_the_limit():
    assert choose([12.0, 30.0, 11.0, 13.0]).iloc[0]["share"] == 100


def test_questions_without_a_choice_are_left_out():
    assert choose(MEASURED, rows=ROWS.assign(model=[*"mnop"])).empty
    assert choose(MEASURED, measured=[18.0, 20.0, 18.0, 19.0]).empty


def test_an_unknown_column_is_named():
    with pytest.raises(UserError, match="'nodes' is not"):
        choose(MEASURED, choice={**CHOICE, "cost": "nodes"})
