import dataclasses
import hashlib
import re
from html.parser import HTMLParser

import pytest
from generated_results import FAKE_PARAMS

from perfcast.report.error_tables import metric_tables
from perfcast.report.plots.drawing import inline_svg
from perfcast.report.render_page import render_pages, small_dataset_sentence, split_answers, write_report
from perfcast.report.report_context import collect
from perfcast.report.text_tables import number, row_counts
from perfcast.schema.display_names import metric_label
from perfcast.splits import scenario_label, split_label
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


INDEX, PAGE = "report.html", "report/fake.html"


@pytest.fixture(scope="module")
def pages(context):
    return render_pages(context)


@pytest.fixture(scope="module")
def page(pages):
    return pages[PAGE]


def parse(text):
    reader = Strict()
    reader.feed(text)
    reader.close()
    return reader


@pytest.mark.parametrize(("name", "links"), [(INDEX, {PAGE}), (PAGE, {f"../{INDEX}"})])
def test_page_is_well_formed_loads_nothing_and_has_no_broken_reference(pages, name, links):
    parsed, text = parse(pages[name]), pages[name]
    assert (parsed.mistakes, parsed.open, parsed.loads) == ([], [], [])
    assert len(parsed.ids) == len(set(parsed.ids))
    assert {target for target in parsed.targets if not target.startswith("#")} == links
    assert {target[1:] for target in parsed.targets if target.startswith("#")} <= set(parsed.ids)
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(parsed.ids)
    assert not re.search(r"@import|url\((?!#)|fetch\(|XMLHttpRequest", text)
    assert len(text.encode()) < 3_000_000


def test_report_is_written_as_an_index_with_checksums_beside_a_folder_and_again_with_equal_bytes(
    results, pages, tmp_path
):
    again = collect(results, FAKE_PARAMS, titles={"fake": "Generated <servers>"}, sources={"fake": ["fake"]})
    write_report(again, tmp_path / INDEX, None)
    assert {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*.html")} == pages
    assert set(pages) == {INDEX, PAGE}
    assert f'data-sha256="{hashlib.sha256(pages[PAGE].encode()).hexdigest()}"' in pages[INDEX]
    with pytest.raises(UserError, match="HTML"):
        write_report(again, tmp_path / "report", None)


def test_pages_have_the_expected_values_and_escape_foreign_text(pages):
    html = "".join(pages.values())
    assert "Generated &lt;servers&gt;" in html and "Nobody &amp; Co." in html
    assert "<script>alert" not in html
    text = " ".join(" ".join(" ".join(parse(text).text) for text in pages.values()).split())
    for fact in (
        "quick preset",
        "noise floor",
        "Limits",
        "How to reproduce",
        "make run",
        "are estimates",
        "registered trademarks of the Standard Performance Evaluation Corporation",
        "run make retry with a network",
        "other , which needs absent",
        "not a score",
        "Python",
        "Error of every predictor on every split",
    ):
        assert fact in text
    page = pages[PAGE]
    assert page.count("<table") == page.count("<thead>") == page.count("<tbody>")
    drawings = page.count('<svg class="figure" role="img" aria-label="')
    assert drawings == page.count("<figcaption>") - page.count('<figure class="hero">') == 2
    assert "serves comparison" not in page


@pytest.mark.parametrize(
    ("changes", "words", "is_found"),
    [
        ({"license": "Apache-2.0"}, "Standard Performance", False),
        ({"retrieved": "2026-03-01"}, "present, retrieved 2026-03-01<", True),
        ({"retrieved": ""}, "present, date of retrieval not stated<", True),
    ],
)
def test_sources_are_told_with_their_terms_and_dates(context, changes, words, is_found):
    sources = tuple({**source, **changes} for source in context.sources)
    bare = dataclasses.replace(context.datasets[0], table=None, plots=())
    pages = render_pages(dataclasses.replace(context, sources=sources, datasets=(bare,)))
    assert (words in "".join(pages.values())) == is_found


def test_report_needs_only_an_evaluation(results, tmp_path):
    with pytest.raises(UserError, match="evaluations"):
        collect(tmp_path, {})
    bare = tmp_path / "evaluation" / "fake"
    bare.mkdir(parents=True)
    for path in (results / "evaluation" / "fake").iterdir():
        (bare / path.name).write_bytes(path.read_bytes())
    pages = render_pages(collect(tmp_path, {}))
    assert "Data quality</h2>" not in pages[PAGE]
    assert all("has the smallest error on average" in text for text in pages.values())


def test_summary_names_the_champion_of_inner_validation_and_omits_leaking_splits(context):
    part = context.datasets[0]
    metrics = part.evaluation.metrics
    leaking = part.evaluation.with_tables(metrics=metrics.assign(split=metrics["split"].replace("random", "shuffled")))
    other = dataclasses.replace(part, champion={"predictor": "ridge"}, evaluation=leaking)
    assert other.leader == "ridge"
    assert "shuffled" not in str(split_answers(other))
    pages = render_pages(dataclasses.replace(context, datasets=(other,)))
    for text in pages.values():
        assert "The predictor, ridge, was chosen by inner validation.</p>" in text
    words = "shuffled serves comparison with published values only: its test rows have siblings"
    assert words in pages[PAGE]


def test_answers_start_with_the_hardest_split(context, pages):
    part = context.datasets[0]
    answers = split_answers(part)
    errors = [answer.results[0][1]["value"] for answer in answers]
    assert errors == sorted(errors, reverse=True)
    assert [name for name, _ in answers[0].results] == [part.leader, "power_law", "nearest"]
    assert 'class="fill" style="width: 9' in pages[INDEX]
    first = answers[0]
    text = re.search(r'<p class="answer">(.*)</p>', pages[INDEX])[1]
    assert text.startswith(f"{first.title} (split {first.split}, {first.results[0][1]['seeds']} seed")
    assert f"within {first.texts['median']} % of the measured result" in text
    assert f"(95 % interval {number(first.results[0][1]['low'])} to " in text
    assert split_label(first.split) != first.title or not scenario_label(first.split)


def test_dataset_too_small_to_rank_is_one_paragraph(context):
    part = context.datasets[0]
    metrics = part.evaluation.metrics.assign(entities=9)
    small = dataclasses.replace(part, name="tiny", evaluation=part.evaluation.with_tables(metrics=metrics))
    assert part.evaluation.can_rank and not small.evaluation.can_rank
    sentence = small_dataset_sentence(small)
    assert "of 9 machines; the mean errors of its 5 predictors lie between" in sentence
    pages = render_pages(dataclasses.replace(context, datasets=(small,)))
    assert set(pages) == {INDEX}
    assert sentence.split(":", 1)[1] in pages[INDEX]


def test_error_table_marks_clear_winners_and_the_noise_floor(context):
    evaluation = context.datasets[0].evaluation
    table = metric_tables(evaluation)[0]
    assert [name for name, *_ in table.lines] == evaluation.ranking()
    assert [len(line) for line in table.lines] == [7] * 5
    assert all(cell.mark == "best" for cell in table.lines[0][1:])
    assert not any(cell.mark for _, *cells in table.lines[1:] for cell in cells)
    assert table.foot[0][0] == "noise floor"
    undecided = evaluation.with_tables(paired=evaluation.tables["paired"].assign(claim="undecided"))
    assert not any(cell.mark for _, *cells in metric_tables(undecided)[0].lines for cell in cells)


def test_interval_table_has_coverage_width_and_interval_score_without_winners(context):
    evaluation = context.datasets[0].evaluation
    *others, table = metric_tables(evaluation)
    assert table.headings[1:] == [metric_label(name, short=True) for name in ("coverage", "width", "interval_score")]
    name, _, _, cell, *_ = table.lines[0]
    assert cell.key == evaluation.value(evaluation.splits[0], name, metric="interval_score")["value"]
    assert not any(cell.mark for _, *cells in table.lines for cell in cells)
    metrics = evaluation.metrics[~evaluation.metrics["metric"].isin(["coverage", "width", "interval_score"])]
    bare = metric_tables(evaluation.with_tables(metrics=metrics))
    assert [each.fold for each in bare] == [each.fold for each in others] == ["", *["By task"] * 3, "Further metrics"]


def test_numbers_and_tables_of_quality():
    assert [number(value) for value in (1.234, 12.34, 1234.5, float("nan"))] == ["1.23", "12.3", "1,234", "–"]
    lines = row_counts({"rows_in": 10, "rows_kept": 7, "merged": {"same_row": 1}, "rejected": {"no_score": 2}})
    assert lines == [("read", "", 10), ("kept", "", 7), ("merged", "same row", 1), ("rejected", "no score", 2)]


def test_inline_plots_have_distinct_ids():
    svg = (
        '<?xml version="1.0"?><svg viewBox="0 0 1 1"><metadata>date</metadata><g id="a">'
        '<use xlink:href="#a" clip-path="url(#a)" style="fill: #ffffff; stroke: #1f2328"/></g></svg>'
    )
    text = inline_svg(svg, prefix="p", label='say "it"')
    for part in ('id="p-a"', 'href="#p-a"', "url(#p-a)", "fill: none; stroke: currentColor", "&quot;it&quot;"):
        assert part in text
    assert "metadata" not in text


def test_order_follows_the_parameters(results):
    plots = [plot.name for plot, _ in collect(results, FAKE_PARAMS).datasets[0].plots]
    assert plots == FAKE_PARAMS["plots"]
    turned = collect(results, {**FAKE_PARAMS, "plots": ["headline"]}).datasets[0].plots
    assert [plot.name for plot, _ in turned] == ["headline", "learning_curves"]


def test_leakage_table_is_optional(context, pages):
    common = {"meaning": "rows <must> be test rows", "looked_at": "7 runs", "remedy": "train again"}
    numbers = {"control_error": 0.8731, "chance_error": 0.84, "better": 2, "shuffles": 10}
    lines = [("tested rows", [], {}), ("shuffled target", ["one"], numbers)]
    checks = [{**common, "check": name, "findings": findings, "numbers": values} for name, findings, values in lines]
    part = dataclasses.replace(context.datasets[0], table=None, leakage={"dataset": "fake", "checks": checks})
    text = render_pages(dataclasses.replace(context, datasets=(part,)))[PAGE]
    assert "2 checks, 1 finding. A finding" in text
    assert "rows &lt;must&gt; be test rows" in text
    assert "log error 0.873; chance: 0.840; better than chance in 2 of 10 shuffles" in text
    assert parse(text).mistakes == []
    assert "Leakage checks</h2>" not in pages[PAGE]
