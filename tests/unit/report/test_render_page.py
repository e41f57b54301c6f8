import dataclasses
import re
from html.parser import HTMLParser

import pytest

from perfcast.report.error_tables import headline_grid, number, paired_rows, task_grids, worst_slices
from perfcast.report.plots.drawing import inline_svg
from perfcast.report.render_page import detail_tables, environment, leakage_section, render, row_counts
from perfcast.report.report_context import collect
from perfcast.report.summaries import leading_predictor, retrieval_text, summary_sentence
from perfcast.testing.generated_results import FAKE_PARAMS, write_results
from perfcast.utils.errors import UserError

VOID = {"meta", "br", "link", "img", "input", "hr", "col"}


class Strict(HTMLParser):
    """Reads HTML and remembers what a lenient browser would forgive."""

    def __init__(self):
        super().__init__()
        self.open, self.mistakes, self.ids, self.loads, self.targets, self.text = [], [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        if len(names) != len(set(names)):
            self.mistakes.append(f"<{tag}> repeats an attribute")
        values = dict(attributes)
        if "id" in values:
            self.ids.append(values["id"])
        if "src" in values or tag in {"link", "iframe", "object", "embed", "img"}:
            self.loads.append(tag)
        target = values.get("href") or values.get("xlink:href") or ""
        if tag == "a" and target.startswith("http"):
            return self.open.append(tag)
        if target:
            self.targets.append(target)
        if tag not in VOID:
            self.open.append(tag)
        return None

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.mistakes.append(f"</{tag}> closes {self.open[-1:]}")
        else:
            self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write_results(folder, rows=500, seed=0)
    return folder


@pytest.fixture(scope="module")
def context(results):
    return collect(results, FAKE_PARAMS, titles={"fake": "Generated <servers>"})


@pytest.fixture(scope="module")
def page(context):
    return render(context)


@pytest.fixture(scope="module")
def parsed(page):
    reader = Strict()
    reader.feed(page)
    reader.close()
    return reader


def test_page_has_closed_elements_and_unique_ids(parsed):
    assert parsed.mistakes == []
    assert parsed.open == []
    assert len(parsed.ids) == len(set(parsed.ids))


def test_page_loads_nothing_and_has_no_broken_reference(parsed, page):
    assert parsed.loads == []
    assert all(target.startswith("#") for target in parsed.targets)
    assert {target[1:] for target in parsed.targets} <= set(parsed.ids)
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(parsed.ids)
    assert not re.search(r"@import|url\((?!#)|fetch\(|XMLHttpRequest", page)
    assert len(page.encode()) < 8_000_000


def test_render_is_deterministic(results, page):
    assert render(collect(results, FAKE_PARAMS, titles={"fake": "Generated <servers>"})) == page


def test_render_escapes_foreign_text(page):
    assert "Generated &lt;servers&gt;" in page
    assert "<script>alert" not in page
    assert "Nobody &amp; Co." in page


def test_page_has_the_expected_values(parsed):
    text = " ".join(" ".join(parsed.text).split())
    for fact in (
        "quick preset",
        "noise floor",
        "Limits",
        "How to reproduce",
        "make run",
        "registered trademarks of the Standard Performance Evaluation Corporation",
        "are estimates",
        "to_2024_12",
        "run make retry with a network",
        "other , which needs absent",
        "not a score",
        "Error of every predictor on every split",
        "Python",
    ):
        assert fact in text


def test_tables_have_header_cells_and_plots_have_descriptions(page):
    assert page.count("<table") == page.count("<thead>") == page.count("<tbody>")
    assert page.count('<svg class="figure" role="img" aria-label="') == page.count("<figcaption>") == 2


def test_page_without_spec_sources_omits_spec(results, context):
    sources = tuple({**source, "license": "Apache-2.0"} for source in context.sources)
    assert "Standard Performance" not in render(type(context)(**{**vars(context), "sources": sources}))


def test_report_needs_only_an_evaluation(results, tmp_path):
    with pytest.raises(UserError, match="evaluations"):
        collect(tmp_path, {})
    bare = tmp_path / "evaluation" / "fake"
    bare.mkdir(parents=True)
    for path in (results / "evaluation" / "fake").iterdir():
        (bare / path.name).write_bytes(path.read_bytes())
    page = render(collect(tmp_path, {}))
    assert "<h3>Data quality</h3>" not in page
    assert "best on average" in page


def test_summary_names_the_champion_of_inner_validation(results, context, tmp_path):
    part = context.datasets[0]
    other = type(part)(**{**vars(part), "champion": {"predictor": "ridge"}})
    assert leading_predictor(other) == "ridge"
    assert "ridge, chosen by inner validation" in summary_sentence(other)
    assert "(nearest: " in summary_sentence(part)


def test_summary_omits_leaking_splits(context, page):
    assert "serves comparison" not in page
    part = context.datasets[0]
    metrics = part.evaluation.metrics
    other = dataclasses.replace(
        part.evaluation, metrics=metrics.assign(split=metrics["split"].replace("random", "shuffled"))
    )
    other = dataclasses.replace(part, evaluation=other)
    assert "shuffled" not in summary_sentence(other)
    text = render(dataclasses.replace(context, datasets=(other,)))
    assert "shuffled serves comparison with published values only: its test rows have siblings" in text


def test_headline_grid_marks_clear_winners_and_the_noise_floor(context):
    evaluation = context.datasets[0].evaluation
    grid = headline_grid(evaluation)
    assert [name for name, _ in grid.rows] == evaluation.ranking()
    assert [len(cells) for _, cells in grid.rows] == [6] * 5
    assert all(cell.best for cell in grid.rows[0][1])
    assert not any(cell.best for _, cells in grid.rows[1:] for cell in cells)
    assert grid.foot[0][0] == "noise floor"
    undecided = dataclasses.replace(evaluation, paired=evaluation.paired.assign(claim="undecided"))
    assert not any(cell.best for _, cells in headline_grid(undecided).rows for cell in cells)


def test_further_tables(context):
    evaluation = context.datasets[0].evaluation
    assert len(task_grids(evaluation)) == 3
    assert [row["name"] for row in paired_rows(evaluation)] == ["network", "forest", "ridge", "power_law"]
    worst = worst_slices(evaluation, "network")
    assert {row["split"] for row in worst} == set(evaluation.splits)
    assert all(row["rows"] >= 20 for row in worst)


@pytest.mark.parametrize(("value", "text"), [(1.234, "1.23"), (12.34, "12.3"), (1234.5, "1,234"), (float("nan"), "–")])
def test_format_number(value, text):
    assert number(value) == text


def test_quality_table_accounts_for_all_rows():
    lines = row_counts({"rows_in": 10, "rows_kept": 7, "merged": {"same_row": 1}, "rejected": {"no_score": 2}})
    assert lines == [("read", "", 10), ("kept", "", 7), ("merged", "same row", 1), ("rejected", "no score", 2)]


def test_detail_tables_flatten_facts_with_percentages():
    tables = detail_tables(
        {"details": {"rows_cut": 5, "join_coverage": {"share_of_rows": 0.5, "by": {"a": {"n": 3}}}, "ranges": {}}}
    )
    assert tables == [
        ("facts", [("rows cut", "5")]),
        ("join coverage", [("share of rows", "50.0 %"), ("by · a · n", "3")]),
    ]


def test_inline_plots_have_distinct_ids():
    svg = (
        '<?xml version="1.0"?><svg viewBox="0 0 1 1"><metadata>date</metadata><g id="a">'
        '<use xlink:href="#a" clip-path="url(#a)" style="fill: #ffffff; stroke: #1f2328"/></g></svg>'
    )
    text = inline_svg(svg, prefix="p", label='say "it"')
    assert 'id="p-a"' in text
    assert 'href="#p-a"' in text
    assert "url(#p-a)" in text
    assert "fill: none; stroke: currentColor" in text
    assert "metadata" not in text
    assert "&quot;it&quot;" in text


def test_source_table_shows_retrieval_or_snapshot():
    assert retrieval_text({"retrieved": "2026-03-01"}) == "retrieved 2026-03-01"
    assert retrieval_text({"snapshot": "to_2024_12"}) == "snapshot to_2024_12"
    assert retrieval_text({}) == "date of retrieval not stated"


def test_order_follows_the_parameters(results):
    plots = [plot.name for plot in collect(results, FAKE_PARAMS).datasets[0].plots]
    assert plots == FAKE_PARAMS["plots"]
    turned = collect(results, {**FAKE_PARAMS, "plots": ["headline"]}).datasets[0].plots
    assert [plot.name for plot in turned] == ["headline", "learning_curves"]


def test_leakage_table_is_optional():
    check = {
        "check": "tested rows",
        "meaning": "rows <must> be test rows",
        "looked_at": "7 runs",
        "remedy": "train again",
    }
    numbers = {"control_mape": 87.3, "chance_mape": 84.7, "difference_low": -0.4, "difference_high": 6.5}
    rendered = {
        "dataset": "fake",
        "checks": [
            {**check, "findings": [], "numbers": {}},
            {**check, "check": "shuffled target", "findings": ["one"], "numbers": numbers},
            {**check, "findings": [], "numbers": {"least_share_of_error_left": 0.136, "by": "memory in rate"}},
        ],
    }
    text = environment().get_template("leakage.html").render(data=leakage_section(rendered))
    assert "3 checks, 1 finding. A finding" in text
    assert "rows &lt;must&gt; be test rows" in text
    assert "MAPE 87.3 %; chance: 84.7 % (difference -0.40 to +6.50)" in text
    assert "memory in rate leaves 14 % of the error of a constant" in text
    page = Strict()
    page.feed(text)
    assert not page.open + page.mistakes
    assert leakage_section(None) is None
