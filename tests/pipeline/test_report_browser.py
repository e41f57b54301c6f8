"""The report in a real browser where there is one; the same page through a parser everywhere."""

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from perfcast.fake._results import FAKE_PARAMS, write_results
from perfcast.report import collect, render

QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=2000",
)


class Sortable(HTMLParser):
    """Counts sortable heads and, after the script has run, the buttons it put into them."""

    def __init__(self):
        super().__init__()
        self.heads = self.buttons = self.drawings = 0

    def handle_starttag(self, tag, attributes):
        self.heads += tag == "th" and "data-column" in dict(attributes)
        self.buttons += tag == "button"
        self.drawings += tag == "svg"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write_results(folder, rows=400, seed=0)
    path = folder / "report.html"
    path.write_text(render(collect(folder, FAKE_PARAMS)), encoding="utf-8")
    return path


def browser_dump(page: Path, profile: Path) -> str:
    """Return the page as the browser has it after running its script; the page itself where there is no browser."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        return page.read_text(encoding="utf-8")
    command = [browser, *QUIET, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.slow
def test_the_page_opens_offline_with_all_figures_and_sortable_columns(page, tmp_path):
    dump = browser_dump(page, tmp_path)
    reader, source = Sortable(), Sortable()
    reader.feed(dump)
    source.feed(page.read_text(encoding="utf-8"))
    assert reader.drawings == source.drawings == 2
    assert reader.heads == source.heads > 20
    # The script adds one button to each sortable head; the page works without it too.
    assert source.buttons == 0
    assert reader.buttons in ({reader.heads} if dump != page.read_text(encoding="utf-8") else {0})
