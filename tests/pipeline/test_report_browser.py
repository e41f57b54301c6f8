"""The report in a real browser where there is one; the same page through a parser everywhere."""

import itertools
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import BROWSER, QUIET
from generated_results import FAKE_PARAMS, write_results

from perfcast.evaluation import read_evaluation
from perfcast.report.plots.drawing import draw_all
from perfcast.report.render_page import write_report
from perfcast.report.report_context import collect

# All folded parts are opened, and the page's width is compared with the window's.
MEASURE = """
<script>
addEventListener("load", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  const output = document.createElement("pre");
  output.id = "wide";
  output.textContent = document.documentElement.scrollWidth - innerWidth;
  document.body.append(output);
});
</script>
"""


class Page(HTMLParser):
    """Counts sortable heads, drawings and buttons, and keeps the levels of headings and the text of #wide."""

    def __init__(self):
        super().__init__()
        self.heads = self.sorters = self.drawings = 0
        self.levels, self.wide, self._inside = [], "", ""

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        sortable = tag == "th" and "data-column" in values
        self.heads += sortable
        self.sorters += tag == "button" and self._inside == "th"
        self.drawings += tag == "svg" and values.get("class") == "figure"
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        self._inside = "wide" if values.get("id") == "wide" else tag if sortable else ""

    def handle_data(self, data):
        self.wide += data if self._inside == "wide" else ""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write_results(folder, rows=400, seed=0)
    draw_all(read_evaluation(folder / "evaluation" / "fake"), folder / "plots" / "fake", FAKE_PARAMS["plots"])
    write_report(collect(folder, FAKE_PARAMS), folder / "report.html", None)
    return folder / "report" / "fake.html"


def browse(page: Path, profile: Path, *options: str) -> tuple[str, list[str]]:
    """Return the page as the browser has it after running its script, and what it wrote to its console."""
    command = [BROWSER, *QUIET, *options, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def parsed(text: str) -> Page:
    reader = Page()
    reader.feed(text)
    return reader


@pytest.mark.parametrize("name", ["fake.html", "../report.html"])
def test_report_headings_descend_one_level_at_a_time(page, name):
    levels = parsed((page.parent / name).read_text(encoding="utf-8")).levels
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_report_opens_offline_with_all_plots_and_sortable_columns(page, tmp_path):
    dump, console = browse(page, tmp_path)
    reader, source = parsed(dump), parsed(page.read_text(encoding="utf-8"))
    assert console == []
    assert reader.drawings == source.drawings == 2
    assert reader.heads == source.heads > 20
    # The script adds one button to each sortable head; the page works without it too.
    assert (source.sorters, reader.sorters) == (0, reader.heads)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_index_opens_offline_and_links_the_page(page, tmp_path):
    dump, console = browse(page.parent.parent / "report.html", tmp_path)
    assert console == []
    assert 'href="report/fake.html"' in dump


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
@pytest.mark.parametrize("width", [1300, 500])
def test_no_part_of_the_page_scrolls_sideways(page, tmp_path, width):
    measured = tmp_path / "measured.html"
    measured.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    dump, console = browse(measured, tmp_path / "profile", f"--window-size={width},900")
    assert console == []
    assert int(parsed(dump).wide) <= 0
