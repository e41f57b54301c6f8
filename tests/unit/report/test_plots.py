import dataclasses

import matplotlib
import pytest

from perfcast.evaluation import BASELINE, evaluate
from perfcast.report.plots.drawing import STYLE, draw_all, draw_svg, load_plot, predictor_styles, select_leaders
from perfcast.testing.generated_results import LESS_TRAINING, PUBLISHED, fake_table, write_in_domain, write_runs
from perfcast.utils.errors import UserError


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    table = fake_table(rows=400, seed=0)
    runs = write_runs(table, tmp_path_factory.mktemp("runs"), seed=1)
    in_domain = write_in_domain(table, tmp_path_factory.mktemp("in_domain_score"), seed=1)
    return evaluate(runs, table, resamples=20, seed=0, published=PUBLISHED, in_domain=in_domain)


def test_a_folder_holds_the_figures_that_apply_and_no_older_one(evaluation, tmp_path):
    folder = tmp_path / "plots"
    folder.mkdir()
    (folder / "old.svg").write_text("old")
    assert draw_all(evaluation, folder, ["headline", "error_by_year"]) == ["headline", "error_by_year"]
    assert sorted(path.name for path in folder.iterdir()) == ["error_by_year.svg", "headline.svg"]


def test_an_unknown_figure_is_named_with_the_known_ones(evaluation):
    with pytest.raises(UserError, match="headline"):
        draw_svg(evaluation, "headlines")


def test_slices_are_found_by_the_end_of_their_names(evaluation):
    assert evaluation.vendor_slices == ["machine_vendor"]
    assert evaluation.lineage_slices == ["generation"]
    assert evaluation.other_slices == ["suite"]


def test_published_errors_are_drawn_with_their_split(evaluation):
    drawn = draw_svg(evaluation, "published_comparison")
    for text in (
        "forest of others, random: 4 %",
        "forest of others, random: 3.5 %",
        "network of others, unseen_cpu: 0.95 <",
        "average: Spearman",
        "Nobody, 2020",
        "unseen_cpu",
        "nearest",
    ):
        assert text in drawn
    own = evaluation.value("random", "network", "float")["value"]
    assert f">{own:.2f}<" in drawn
    ranked = evaluation.value("unseen_cpu", "network", metric="spearman")["value"]
    assert f">{ranked:.2f}<" in drawn


def test_published_errors_of_a_split_that_was_not_run_are_not_drawn(evaluation):
    other = evaluation.published.assign(split="shuffled")
    assert draw_svg(dataclasses.replace(evaluation, published=other), "published_comparison") is None


@pytest.mark.parametrize(
    ("name", "base", "ticks", "other"),
    [
        ("training_size", "random", ["5 %", "20 %", "100 %"], "forward_2023"),
        ("history", "forward_2023", ["2", "all"], "random"),
    ],
)
def test_curves_have_a_panel_per_split_and_end_at_all_of_its_training(evaluation, name, base, ticks, other):
    with matplotlib.rc_context(STYLE):
        (panel,) = load_plot(name)(evaluation).axes
    assert panel.get_title(loc="left") == base
    assert other not in draw_svg(evaluation, name)
    assert [label.get_text() for label in panel.get_xticklabels()] == ticks
    lines = {line.get_label(): line.get_ydata() for line in panel.get_lines() if len(line.get_ydata()) == len(ticks)}
    assert set(lines) == set(evaluation.predictors)
    assert lines["ridge"][-1] == evaluation.value(base, "ridge")["value"]
    assert lines["ridge"][0] > lines["ridge"][-1]


@pytest.mark.parametrize("name", ["training_size", "history"])
def test_without_forms_of_less_training_there_are_no_curves(evaluation, name):
    metrics = evaluation.metrics[evaluation.metrics["split"].isin(evaluation.splits)]
    assert draw_svg(dataclasses.replace(evaluation, metrics=metrics), name) is None


def test_a_curve_whose_split_was_not_run_ends_before_all(evaluation):
    metrics = evaluation.metrics[evaluation.metrics["split"].isin(LESS_TRAINING)]
    drawn = draw_svg(dataclasses.replace(evaluation, metrics=metrics), "history")
    assert ">all<" not in drawn
    assert ">2<" in drawn


def test_leaders_keep_the_baseline_visible():
    assert select_leaders(["a", "b", BASELINE], 1) == ["a", BASELINE]
    assert select_leaders([BASELINE, "a"], 1) == [BASELINE]
    assert select_leaders(["a", "b"], 1) == ["a"]


def test_predictors_differ_in_color_and_mark():
    found = predictor_styles([f"p{number}" for number in range(8)])
    assert len({look["color"] for look in found.values()}) == 9
    assert len({look["marker"] for look in found.values()}) == 9
