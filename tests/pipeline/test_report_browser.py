"""The report in a real browser where there is one; the same page through a parser everywhere."""

import itertools
import json
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

# Steps of a visitor: what the chart shows at first, after each choice, and where the pointer is on a mark.
VISIT = """
<script>
setTimeout(async () => {
  const seen = { marks: {} };
  const form = document.querySelector(".controls");
  const chart = document.querySelector(".chart canvas");
  const colored = () => {
    const copy = new OffscreenCanvas(chart.width, chart.height - 60).getContext("2d", { willReadFrequently: true });
    copy.drawImage(chart, 0, 0);
    const { data, width } = copy.getImageData(0, 0, chart.width, chart.height - 60);
    const found = [];
    for (let at = 0; at < data.length; at += 4) {
      const [red, green, blue, alpha] = data.slice(at, at + 4);
      const spread = Math.max(red, green, blue) - Math.min(red, green, blue);
      if (alpha > 60 && spread > 60) found.push([at / 4 % width, Math.floor(at / 4 / width)]);
    }
    return found;
  };
  const wait = (time) => new Promise((go) => setTimeout(go, time));
  const choose = async (name, value, kind = "change") => {
    const control = form.querySelector(`[name=${name}]`);
    if (control.options) control.selectedIndex = value; else control.value = value;
    control.dispatchEvent(new Event(kind, { bubbles: true }));
    await wait(800);
    seen.marks[`${name} ${value}`] = colored().length;
  };
  seen.marks.first = colored().length;
  await choose("split", 1);
  await choose("predictor", 1);
  await choose("task", 1);
  await choose("color", 1);
  await choose("find", "no such machine", "input");
  await choose("find", "R00001", "input");
  const box = chart.getBoundingClientRect();
  const scale = box.width / chart.width;
  const tip = () => document.querySelector("#vg-tooltip-element.visible");
  for (const [x, y] of colored()) {
    const at = { bubbles: true, clientX: box.left + x * scale, clientY: box.top + y * scale };
    for (const kind of ["pointermove", "mousemove"]) chart.dispatchEvent(new MouseEvent(kind, at));
    if (tip()) break;
  }
  seen.tip = tip()?.textContent ?? "";
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  seen.wide = document.documentElement.scrollWidth - innerWidth;
  const output = document.createElement("pre");
  output.id = "visit";
  output.textContent = JSON.stringify(seen);
  document.body.append(output);
}, 3000);
</script>
"""


class Page(HTMLParser):
    """Counts sortable heads, drawings and buttons, and keeps the levels of headings and the text of #visit."""

    def __init__(self):
        super().__init__()
        self.heads = self.sorters = self.drawings = 0
        self.levels, self.visit, self._inside = [], "", ""

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        sortable = tag == "th" and "data-column" in values
        self.heads += sortable
        self.sorters += tag == "button" and self._inside == "th"
        self.drawings += tag == "svg" and values.get("class") == "figure"
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        self._inside = "visit" if values.get("id") == "visit" else tag if sortable else ""

    def handle_data(self, data):
        self.visit += data if self._inside == "visit" else ""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write_results(folder, rows=400, seed=0)
    # a heat map is a picture inside the drawing: it must be allowed to load
    names = [*FAKE_PARAMS["plots"], "attention"]
    draw_all(read_evaluation(folder / "evaluation" / "fake"), folder / "plots" / "fake", names)
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
    assert reader.drawings == source.drawings == 3
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
def test_chart_follows_its_controls_and_names_the_row_of_a_mark(page, tmp_path, width):
    visited = tmp_path / "visited.html"
    visited.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{VISIT}</body>"), encoding="utf-8")
    # a busy machine may need several attempts: virtual time goes on while the browser's other processes work
    for attempt in range(3):
        dump, console = browse(visited, tmp_path / f"profile{attempt}", f"--window-size={width},900")
        if text := parsed(dump).visit:
            break
    assert console == []
    visit = json.loads(text)
    marks = visit["marks"]
    assert marks["find no such machine"] == 0
    assert 0 < marks["find R00001"] < marks["color 1"]
    assert marks["task 1"] < marks["predictor 1"]
    assert len({marks[step] for step in ("first", "split 1", "predictor 1", "color 1")}) == 4
    assert re.search("r00001[0-9].*part .*measured.*predicted.*error in %", visit["tip"])
    assert visit["wide"] <= 0, "the page scrolls sideways"
