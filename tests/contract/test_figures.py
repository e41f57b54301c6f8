"""What every figure must do: a drawing that applies or a clear None, equal bytes, small SVG, title and caption."""

import dataclasses
from xml.etree import ElementTree

import matplotlib
import pytest
from docutils.core import publish_parts

from perfcast import plugins
from perfcast.evaluation import evaluate
from perfcast.fake._runs import PUBLISHED, fake_table, write_runs, write_support
from perfcast.figures._captions import captions
from perfcast.figures._style import STYLE
from perfcast.figures.base import draw_svg

NAMES = plugins.names("figures")


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    table = fake_table(rows=800, seed=0)
    runs = write_runs(table, tmp_path_factory.mktemp("runs"), seed=1)
    support = write_support(table, tmp_path_factory.mktemp("support"), seed=1)
    return evaluate(runs, table, resamples=50, seed=0, published=PUBLISHED, support=support)


@pytest.fixture(scope="module")
def bare(evaluation):
    """One predictor on one split, without slices, dates, epochs, repetitions or intervals."""
    split, predictor = evaluation.splits[0], "ridge"

    def keep(frame):
        return frame[(frame["split"] == split) & (frame["predictor"] == predictor)]

    return dataclasses.replace(
        evaluation,
        metrics=keep(evaluation.metrics).assign(low=float("nan"), high=float("nan")),
        slices=evaluation.slices.iloc[:0],
        support=evaluation.support.iloc[:0],
        levels=evaluation.levels.iloc[:0],
        paired=evaluation.paired.iloc[:0],
        noise=evaluation.noise.iloc[:0],
        history=evaluation.history.iloc[:0],
        importance=evaluation.importance.iloc[:0],
        attention=evaluation.attention.iloc[:0],
        published=evaluation.published.iloc[:0],
        points=keep(evaluation.points),
    )


@pytest.mark.parametrize("name", NAMES)
def test_has_a_title_and_a_caption_of_sentences(name):
    module = plugins.load("figures", name)
    assert module.TITLE
    assert not module.TITLE.endswith(".")
    assert module.CAPTION.endswith(".")
    assert len(module.CAPTION) > 40


@pytest.mark.parametrize("name", NAMES)
def test_the_report_of_snakemake_finds_its_title_and_caption_without_importing_it(name):
    module = plugins.load("figures", name)
    told = captions([name])[name]
    assert told["title"] == module.TITLE
    body = publish_parts(told["caption"], writer="html")["body"]
    assert "".join(ElementTree.fromstring(body).itertext()) == module.CAPTION


@pytest.mark.parametrize("name", NAMES)
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
    before = {field.name: getattr(evaluation, field.name) for field in dataclasses.fields(evaluation)}
    copies = {key: value.copy() for key, value in before.items() if hasattr(value, "columns")}
    with matplotlib.rc_context(STYLE):
        plugins.load("figures", name).draw(evaluation)
    for key, copy in copies.items():
        assert before[key].equals(copy)
