import pytest

from perfcast.errors import UserError
from perfcast.evaluation import BASELINE, evaluate
from perfcast.fake._runs import fake_table, write_runs
from perfcast.figures._slices import maker_slices, other_slices
from perfcast.figures._style import few, looks
from perfcast.figures.base import draw_all, draw_svg


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    table = fake_table(rows=400, seed=0)
    return evaluate(write_runs(table, tmp_path_factory.mktemp("runs"), seed=1), table, resamples=20, seed=0)


def test_a_folder_holds_the_figures_that_apply_and_no_older_one(evaluation, tmp_path):
    folder = tmp_path / "figures"
    folder.mkdir()
    (folder / "old.svg").write_text("old")
    assert draw_all(evaluation, folder, ["headline", "error_by_year"]) == ["headline", "error_by_year"]
    assert sorted(path.name for path in folder.iterdir()) == ["error_by_year.svg", "headline.svg"]


def test_an_unknown_figure_is_named_with_the_known_ones(evaluation):
    with pytest.raises(UserError, match="headline"):
        draw_svg(evaluation, "headlines")


def test_slices_are_told_apart_by_what_they_are_not_by_one_data_set(evaluation):
    assert maker_slices(evaluation) == ["machine_vendor"]
    assert other_slices(evaluation) == ["generation"]


def test_few_keeps_the_baseline_visible():
    assert few(["a", "b", BASELINE], 1) == ["a", BASELINE]
    assert few([BASELINE, "a"], 1) == [BASELINE]
    assert few(["a", "b"], 1) == ["a"]


def test_predictors_differ_in_colour_and_mark():
    found = looks([f"p{number}" for number in range(8)])
    assert len({look["color"] for look in found.values()}) == 9
    assert len({look["marker"] for look in found.values()}) == 9
