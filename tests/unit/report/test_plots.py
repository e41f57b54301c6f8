import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from perfcast.evaluation import BASELINE
from perfcast.report.plots.drawing import (
    draw_all,
    draw_svg,
    predictor_styles,
    select_leaders,
    to_svg,
)
from perfcast.utils.errors import UserError


def test_plot_folder_holds_applicable_plots_only(evaluation, tmp_path):
    folder = tmp_path / "plots"
    folder.mkdir()
    (folder / "old.svg").write_text("old")
    assert draw_all(evaluation, folder, ["headline", "error_by_year"]) == ["headline", "error_by_year"]
    assert sorted(path.name for path in folder.iterdir()) == ["error_by_year.svg", "headline.svg"]
    with pytest.raises(UserError, match="headline"):
        draw_svg(evaluation, "headlines")
    assert evaluation.vendor_slices == ["machine_vendor"]


def test_plots_whose_axes_differ_in_the_last_bit_are_equal():
    def draw(width):
        figure = Figure()
        panel = figure.add_axes((0.1, 0.1, width, 0.8))
        panel.plot([0, 1], [0, 1], marker="o")
        panel.scatter([0, 1], [1, 0], c=[0.2, 0.7])
        return to_svg(figure, "a plot")

    first = draw(0.8)
    assert first == draw(np.nextafter(0.8, 1.0))
    names = set(re.findall(r'\bid="([^"]+)"', first))
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', first))
    assert used
    assert used <= names


def test_leaders_include_the_baseline_and_styles_differ_in_color_and_marker():
    assert select_leaders(["a", "b", BASELINE], 1) == ["a", BASELINE]
    assert [select_leaders(names, 1) for names in ([BASELINE, "a"], ["a", "b"])] == [[BASELINE], ["a"]]
    styles = predictor_styles([f"p{number}" for number in range(8)]).values()
    assert len({look["color"] for look in styles}) == len({look["marker"] for look in styles}) == 9


def test_plots_have_display_names(evaluation):
    names = set(evaluation.splits) | {"power_law"}
    labels = {"network": "Neural net"}
    for plot in ("headline", "coverage", "error_by_year", "learning_curves"):
        drawn = draw_svg(evaluation, plot, labels)
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
        assert not names & set(texts), plot
        assert any("Neural net" in text for text in texts), plot
        assert any("similar machines" in text for text in texts), plot


def test_plots_are_omitted_where_too_little_was_evaluated(evaluation):
    tables = evaluation.tables
    history, slices = tables["history"], tables["slices"]
    few = {
        "learning_curves": {"history": history[history["epoch"] <= history["epoch"].min() + 1]},
        "error_by_year": {"slices": slices[(slices["slice"] != "year") | (slices["value"] == "2020")]},
    }
    for plot, changed in few.items():
        assert all(len(changed_table) for changed_table in changed.values())
        assert draw_svg(evaluation.with_tables(**changed), plot) is None, plot
