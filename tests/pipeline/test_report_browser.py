"""The report in a real browser where there is one; the same page through a parser everywhere."""

import itertools
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import BROWSER, QUIET

from perfcast.evaluation import read_evaluation
from perfcast.report.plots.drawing import draw_all
from perfcast.report.render_page import write_report
from perfcast.report.report_context import collect
from perfcast.testing.generated_results import FAKE_PARAMS, write_results

# Steps of a visitor: choose, filter, step by keyboard, deselect, show a large error; the text of each step is recorded.
VISIT = """
<script>
setTimeout(async () => {
  const plot = document.querySelector(".explorer");
  const form = plot.querySelector("form");
  const seen = {};
  const wait = (time) => new Promise((go) => setTimeout(go, time));
  const choose = (name, value) => {
    form.elements[name].value = value;
    form.elements[name].dispatchEvent(new Event("change", { bubbles: true }));
    return wait(80);
  };
  const press = (key) => plot.querySelector(".focus").dispatchEvent(new KeyboardEvent("keydown", { key }));
  const record = (name, selector) => { seen[name] = plot.querySelector(selector).textContent; };
  record("at first", ".stats");
  await choose("split", "2");
  record("other split", ".stats");
  await choose("filter1", "1");
  record("filtered", ".stats");
  await choose("predictor", "1");
  record("other predictor", ".stats");
  await choose("view", "time");
  form.elements.whiskers.click();
  await wait(80);
  press("Home");
  record("largest", "p.spoken");
  press("ArrowRight");
  record("next", "p.spoken");
  record("read", ".readout");
  press("End");
  record("smallest", "p.spoken");
  press("Escape");
  record("deselected", "p.spoken");
  await choose("view", "scores");
  await choose("filter1", "");
  form.elements.find.value = "PART R00001";
  form.elements.find.dispatchEvent(new Event("input"));
  await wait(250);
  record("searched", ".stats");
  record("searched result", ".readout");
  seen.offered = [...form.elements.filter0.options].slice(1).filter((one) => !one.hidden).map((one) => one.textContent);
  seen.address = decodeURIComponent(location.hash);
  // the file is read here instead of being downloaded
  Blob = class { constructor(parts) { seen.saved = parts.join(""); } };
  URL.createObjectURL = () => "blob:";
  HTMLAnchorElement.prototype.click = () => {};
  plot.querySelector("button.save").click();
  const view = location.hash;
  form.reset();
  await wait(80);
  seen.plain = location.hash;
  const changed = new Promise((go) => addEventListener("hashchange", go, { once: true }));
  location.hash = view;
  await changed;
  await wait(80);
  record("linked", ".stats");
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  seen.wide = document.documentElement.scrollWidth - innerWidth;
  const show = document.querySelector("button.show");
  show.click();
  await wait(80);
  record("shown", "p.spoken");
  seen.shown_row = show.dataset.row;
  record("shown result", ".readout");
  const output = document.createElement("pre");
  output.id = "visit";
  output.textContent = JSON.stringify(seen);
  document.body.append(output);
}, 300);
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
def test_explorer_filters_and_steps_through_results(page, tmp_path, width):
    visited = tmp_path / "visited.html"
    visited.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{VISIT}</body>"), encoding="utf-8")
    # a busy machine may need several attempts: virtual time goes on while the browser's other processes work
    for attempt in range(3):
        dump, console = browse(visited, tmp_path / f"profile{attempt}", f"--window-size={width},900")
        if text := parsed(dump).visit:
            break
    assert console == []
    visit = json.loads(text)
    shown = {
        name: [int(n.replace(",", "")) for n in re.match(r"([\d,]+) of ([\d,]+)", visit[name]).groups()]
        for name in ("at first", "other split", "filtered", "other predictor")
    }
    assert shown["at first"][0] == shown["at first"][1]
    assert shown["other split"] != shown["at first"]
    assert 0 < shown["filtered"][0] < shown["filtered"][1]
    assert shown["other predictor"] == shown["filtered"]
    assert visit["other predictor"] != visit["filtered"]
    assert re.search(r"MAPE [\d.]+ %, MedAPE [\d.]+ %; 90 % intervals contain [\d.]+ %", visit["filtered"])
    count = shown["filtered"][0]
    assert re.match(rf"part \d+.*: measured .*, predicted .*, error .*\. 1 of {count}\.$", visit["largest"])
    assert visit["next"].endswith(f" 2 of {count}.")
    assert visit["smallest"].endswith(f" {count} of {count}.")
    errors = [
        abs(float(re.search(r"error \+?([−\d.]+)", visit[name]).group(1).replace("−", "-")))
        for name in ("largest", "next", "smallest")
    ]
    assert errors[0] > errors[2]
    assert "integer" in visit["read"] or "float" in visit["read"]
    assert visit["deselected"] == "Nothing selected."
    assert visit["shown_row"] in visit["shown result"]
    assert visit["shown"].endswith(f" of {shown['at first'][1]}.")
    count_found = int(re.match(r"\d+", visit["searched"]).group())
    assert 0 < count_found < shown["other split"][0]
    assert "r00001" in visit["searched result"]
    offered = [int(re.search(r"\((\d+)\)$", text).group(1)) for text in visit["offered"]]
    assert sum(offered) == count_found, "the choices of a filter count what the search leaves"
    assert "predictor=" in visit["address"]
    assert "find=PART+R00001" in visit["address"]
    head, *lines = visit["saved"].strip().split("\r\n")
    assert head.startswith("row,machine,") and "predicted (estimate)" in head
    assert len(lines) == count_found
    assert all(line.startswith("r00001") and ",part 0" in line for line in lines)
    assert visit["plain"] == ""
    assert visit["linked"] == visit["searched"]
    assert visit["wide"] <= 0, "the page scrolls sideways"
