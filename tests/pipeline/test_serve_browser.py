"""The served page in a real browser: describe a machine, see its forecasts, vary one thing, share the link."""

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from browser import BROWSER, QUIET
from forecasting_project import SUITES, project
from serving_project import served

from perfcast.serving import pages
from perfcast.serving.pages import Page as File

VISIT = (Path(__file__).parent / "serve_visit.js").read_bytes()


class Visit(HTMLParser):
    """Keeps the text of #visit."""

    def __init__(self):
        super().__init__()
        self.told, self._inside = "", False

    def handle_starttag(self, tag, attributes):
        self._inside = dict(attributes).get("id") == "visit"

    def handle_data(self, data):
        self.told += data if self._inside else ""


@pytest.fixture
def address(monkeypatch):
    """A server whose page brings its visitor along, as a file of its own: the policy refuses anything else."""
    script = b'<script type="module" src="/static/visit.js"></script></body>'
    page = pages.PAGES["/"]
    monkeypatch.setitem(pages.PAGES, "/", File(page.content.replace(b"</body>", script), page.kind))
    monkeypatch.setitem(pages.FILES, "/static/visit.js", File(VISIT, pages.FILES["/static/page.js"].kind))
    with served(project().champion) as found:
        yield found


def browse(address, profile, *options):
    quiet = [option for option in QUIET if "virtual-time" not in option]
    # virtual time stands still while the server is asked, so that slow machines change nothing
    command = [BROWSER, *quiet, "--virtual-time-budget=60000", *options, f"--user-data-dir={profile}", "--dump-dom"]
    done = subprocess.run([*command, address], capture_output=True, text=True, timeout=240, check=True)
    visit = Visit()
    visit.feed(done.stdout)
    assert visit.told, done.stderr
    return json.loads(visit.told), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
@pytest.mark.parametrize("width", [1100, 500])
def test_a_visitor_forecasts_varies_and_shares(address, tmp_path, width):
    said, console = browse(address, tmp_path / "first", f"--window-size={width},900")
    assert "failed" not in said, said["failed"]
    # the refusal of the unknown processor is the only thing that a console shows
    assert [line for line in console if "422" not in line] == []
    assert said["at first"] == []
    assert said["nothing said"] == ["a machine must be described, however: nothing was said; start with its processor"]
    assert "xeon gold 6148" in said["offered"]
    assert len(said["offered"]) <= 12
    assert "machine 1 has 'Zeus 1'" in said["unknown"][0]
    assert said["problem"] == []
    assert [text.split()[0] for text in said["suites"]] == SUITES
    assert all(re.fullmatch(r"\w+ [\d.]+ [\d.]+ to [\d.]+ .*", text) for text in said["suites"])
    assert len(said["support"]) == 4
    assert all("support 0." in text or "support 1." in text for text in said["support"])
    assert said["origins"][0] == "Given as described"
    assert {"tdp_w 150 W", "chips 2"} <= set(said["given"])
    for suite, (label, near) in zip(SUITES, said["drawings"], strict=True):
        assert re.match(rf"{suite}: estimate [\d.]+, 90 % interval [\d.]+ to [\d.]+; nearest measured: ", label)
        assert near == 3
    assert len(said["tables"]) == 3
    assert said["bad range"] == ['step must be a number, however: it is "x"']
    assert said["curves"] == SUITES
    assert said["points"] == [5, 5, 5, 5]
    assert said["wide"] <= 0, "the page scrolls sideways"
    assert parse_qs(said["link"][1:]) == {
        "m.processor": ["Xeon Gold 6148"],
        "m.chips": ["2"],
        "m.tdp": ["150 W"],
        "vary": ["tdp"],
        "from": ["100"],
        "to": ["200"],
        "step": ["25"],
    }
    shared, console = browse(f"{address}/{said['link']}", tmp_path / "second")
    assert console == []
    assert shared["restored"] == ["Xeon Gold 6148", "2", "100"]
    assert shared["at first"] == said["suites"]
    assert shared["curves at first"] == SUITES


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_the_page_of_the_api_opens(address, tmp_path):
    command = [BROWSER, *QUIET, f"--user-data-dir={tmp_path}", "--dump-dom", f"{address}/docs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    for words in ("POST /forecast", "GET /parts", 'id="Forecasts"', f"curl {address}/forecast"):
        assert words in done.stdout
    assert urlsplit(address).hostname == "127.0.0.1"
