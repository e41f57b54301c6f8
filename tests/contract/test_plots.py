"""Contract of every plot: a drawing or None, equal bytes, small SVG, title and caption."""

import sys
import types
from xml.etree import ElementTree

import matplotlib
import pytest
from docutils.core import publish_parts
from generated_results import fake_table, write_in_domain, write_runs

from perfcast import plugins
from perfcast.evaluation import evaluate
from perfcast.report.plots.drawing import (
    STYLE,
    PlotEntry,
    declare_plot,
    draw_svg,
    plot_entry,
    read_catalog,
    rst_captions,
)

NAMES = list(read_catalog())
GENERAL = [name for name in NAMES if plot_entry(name).draw.__module__.startswith("perfcast.report.")]
"""Plots of no domain; those of domains draw tables of their own."""


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    table = fake_table(rows=800, seed=0)
    runs = write_runs(table, tmp_path_factory.mktemp("runs"), seed=1)
    in_domain = write_in_domain(table, tmp_path_factory.mktemp("in_domain"), seed=1)
    return evaluate(runs, table, resamples=50, seed=0, in_domain=in_domain)


@pytest.fixture(scope="module")
def bare(evaluation):
    """One predictor on one split, without slices, dates, epochs, repetitions or intervals."""
    split, predictor = evaluation.splits[0], "ridge"

    def keep(frame):
        return frame[(frame["split"] == split) & (frame["predictor"] == predictor)]

    lost = {
        name: evaluation.tables[name].iloc[:0]
        for name in (
            "slices",
            "in_domain",
            "paired",
            "noise",
            "history",
            "importance",
        )
    }
    metrics = keep(evaluation.metrics).assign(low=float("nan"), high=float("nan"))
    return evaluation.with_tables(metrics=metrics, points=keep(evaluation.tables["points"]), **lost)


@pytest.mark.parametrize("name", NAMES)
def test_has_a_title_and_a_caption_of_sentences(name):
    entry = plot_entry(name)
    assert entry.title
    assert not entry.title.endswith(".")
    assert entry.caption.endswith(".")
    assert len(entry.caption) > 40


@pytest.mark.parametrize("name", NAMES)
def test_the_report_of_snakemake_has_its_title_and_caption(name):
    entry = plot_entry(name)
    captions = rst_captions([name])[name]
    assert captions["title"] == entry.title
    body = publish_parts(captions["caption"], writer="html")["body"]
    assert "".join(ElementTree.fromstring(body).itertext()) == entry.caption


@pytest.mark.parametrize("name", GENERAL)
def test_draws_a_full_evaluation_as_small_svg_with_equal_bytes(name, evaluation):
    text = draw_svg(evaluation, name)
    assert text is not None
    assert text == draw_svg(evaluation, name)
    assert len(text) < 300_000
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "<dc:date>" not in text


@pytest.mark.parametrize("name", NAMES)
def test_draws_or_declines_an_evaluation_with_nothing_optional(name, bare):
    text = draw_svg(bare, name)
    assert text is None or ElementTree.fromstring(text) is not None


@pytest.mark.parametrize("name", NAMES)
def test_does_not_change_the_evaluation(name, evaluation):
    copies = {key: table.copy() for key, table in evaluation.tables.items()}
    with matplotlib.rc_context(STYLE):
        plot_entry(name).draw(evaluation)
    for key, copy in copies.items():
        assert evaluation.tables[key].equals(copy)


def test_a_declared_function_is_a_plot_and_no_other(monkeypatch):
    package = types.ModuleType("perfcast.report.plots.pie")

    @declare_plot("A", "B. C.")
    def round_pie(evaluation): ...

    vars(package).update(round_pie=round_pie, draw=lambda evaluation: None)
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setattr(plugins, "modules", lambda kind: [package.__name__])
    read_catalog.cache_clear()
    try:
        assert read_catalog() == {"round_pie": PlotEntry("round_pie", "A", "B. C.", round_pie)}
    finally:
        read_catalog.cache_clear()
