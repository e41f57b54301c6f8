"""The served page in a real browser: describe a machine, predict it, vary a characteristic, share the link."""

import csv
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from bridged_project import LATER, bridged_pair
from browser import BROWSER, QUIET
from champion_project import TITLES, project
from serving_project import served

import perfcast
from perfcast.serving import app

VISIT = Path(__file__).parent / "serve_visit.js"


class Visit(HTMLParser):
    """Parser that collects the text of #visit."""

    def __init__(self):
        super().__init__()
        self.text, self._inside = "", False

    def handle_starttag(self, tag, attributes):
        self._inside = dict(attributes).get("id") == "visit"

    def handle_data(self, data):
        self.text += data if self._inside else ""


@pytest.fixture(params=[lambda: project().champion])
def address(request, monkeypatch, tmp_path):
    """Server whose page loads the visitor as a file, because the security policy forbids inline scripts."""
    script = b'<script type="module" src="/static/visit.js"></script></body>'
    folder = shutil.copytree(app.PAGE_FOLDER, tmp_path / "page")
    page = folder / "index.html"
    page.write_bytes(page.read_bytes().replace(b"</body>", script))
    shutil.copy(VISIT, folder / "visit.js")
    monkeypatch.setattr(app, "PAGE_FOLDER", folder)
    with served(request.param()) as url:
        yield url


def browse(address, profile, *options):
    quiet = [option for option in QUIET if "virtual-time" not in option]
    # virtual time stops during requests, so that slow test machines have no effect
    command = [BROWSER, *quiet, "--virtual-time-budget=60000", *options, f"--user-data-dir={profile}", "--dump-dom"]
    process = subprocess.run([*command, address], capture_output=True, text=True, timeout=240, check=True)
    visit = Visit()
    visit.feed(process.stdout)
    assert visit.text, process.stderr
    return json.loads(visit.text), [line for line in process.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
@pytest.mark.parametrize("width", [1100, 500])
def test_visitor_predicts_varies_and_shares(address, tmp_path, width):
    texts, console = browse(address, tmp_path / "first", f"--window-size={width},900")
    assert "failed" not in texts, texts["failed"]
    # the console shows only the refusal of the unknown processor
    assert [line for line in console if "422" not in line] == []
    assert texts["at first"] == []
    assert texts["empty form"] == ["Describe the machine first, for example its processor."]
    assert "xeon gold 6148" in texts["suggested"]
    assert len(texts["suggested"]) <= 12
    assert "machine 1 has 'Zeus 1'" in texts["unknown"][0]
    assert texts["problem"] == []
    assert [text.split()[0] for text in texts["suites"]] == TITLES
    assert all(re.fullmatch(r"\w+ [\d.]+ [\d.]+ to [\d.]+", text) for text in texts["suites"])
    assert texts["titles"] == texts["ratios"] == texts["chosen"] == []
    assert len(texts["trust"]) == 4
    assert all(text.startswith(("Trust: high", "Trust: fair", "Trust: low")) for text in texts["trust"])
    assert texts["origins"][0] == "Given as described"
    assert {"TDP 150 W", "chips 2"} <= set(texts["given"])
    assert "tdp_w: thermal design power" in texts["meanings"]
    for suite, (label, near) in zip(TITLES, texts["drawings"], strict=True):
        assert re.match(rf"{suite}: estimate [\d.]+, 90 % interval [\d.]+ to [\d.]+; nearest measured: ", label)
        assert near == 3
    assert len(texts["tables"]) == 4 + bool(texts["published"])
    assert "_" not in " ".join(text for text in texts["assumed"] if text.startswith("Assumed"))
    assert len(texts["varied"]) == 10
    assert all(re.fullmatch(r"[A-Z][^_]+", words) for words in texts["varied"])
    assert "Processors" in texts["varied"]
    assert all(is_said != is_zero for is_said, is_zero in texts["starts"]), "a scale starts at 0, or says where"
    assert texts["bad range"] == ['step: "x" is not a number. Type a number.']
    for name, (drawn, refused) in texts["ranges"].items():
        assert drawn and not refused, f"a proposed value of {name} is refused"
    assert all("runcpu --config=perfcast" in text for text in texts["basis"]) and len(texts["basis"]) == 4
    assert texts["no machines"] == ["machines: empty. Write one machine a line, such as 2 x EPYC 9654."]
    assert "first is higher" in texts["decisions"]["compare"]
    assert texts["compared"] == [8, ["price", "3000", "2000"]], "two machines in four suites"
    assert {"cost", "per score-year"} <= set(texts["decisions"]["rank"])
    assert texts["decisions"]["similar"][0].startswith("Nearest measured results")
    assert texts["measured"] != texts["suites"]
    decided, console = browse(f"{address}/{texts['decided']}", tmp_path / "third")
    assert decided["decision at first"] == texts["decisions"]["similar"][:1]
    check_sizing(texts)
    sized, console = browse(f"{address}/{texts['hash']}", tmp_path / "fourth")
    assert console == [] and sized["sized at first"] == texts["sized"]
    assert texts["curves"] == TITLES
    assert texts["points"] == [5, 5, 5, 5]
    assert texts["wide"] <= 0, "the page scrolls sideways"
    assert parse_qs(texts["link"][1:]) == {
        "m.processor": ["Xeon Gold 6148"],
        "m.chips": ["2"],
        "m.tdp": ["150 W"],
        "vary": ["tdp"],
        "from": ["100"],
        "to": ["200"],
        "step": ["25"],
    }
    shared, console = browse(f"{address}/{texts['link']}", tmp_path / "second")
    assert console == []
    assert shared["restored"] == ["Xeon Gold 6148", "2", "100"]
    assert shared["at first"] == texts["suites"]
    assert shared["curves at first"] == TITLES


def check_sizing(texts):
    """The page shows what Python answers to the table, and saves its CSV."""
    assert texts["no fleet"] == ["fleet: empty. Paste a table with a header, such as count, processor, chips."]
    assert texts["no target"] == ["onto: empty. Write one machine a line, such as 2 x EPYC 9755."]
    assert texts["bad headroom"] == ['headroom: "x" is not a number. Type one such as 0.3 or 30 %.']
    old = {"count": 1200, "processor": "Xeon Gold 6148", "chips": 1, "utilization": 0.45}
    new = {"processor": "Xeon Gold 6148", "chips": 2, "cores": 3}
    (target,) = perfcast.load_champion(project().folder).size(old, new, mix="int_rate", headroom=0.2).targets
    assert {"onto", "needed (90\xa0%)", "for each new one", target.name, "trust"} <= {*texts["sized"]}
    ((label, words, steps),) = texts["steps"]
    assert label.startswith(f"{target.name}: {target.needed} needed, interval {target.low} to {target.high}; ")
    assert {"wanted: 90 %", f"{target.needed} needed"} <= {*words}
    assert [int(step.split()[0]) for step in steps] == [each.count for each in target.counts]
    assert [text.partition(" must")[0] for text in texts["refused"]] == [
        "target 2: refused, processor",
        "line 3: refused, count",
    ]
    assert "carried to the answer unread: rack" in " ".join(texts["sizing notes"])
    rows = [row for row in csv.DictReader(io.StringIO(texts["csv"])) if row["status"] == "ok"]
    assert [(row["name"], row["needed"], float(row["suffices"])) for row in rows] == [
        (target.name, str(target.needed), pytest.approx(each.suffices, rel=1e-5)) for each in target.counts
    ]


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
@pytest.mark.parametrize("address", [bridged_pair], indirect=True)
@pytest.mark.parametrize("width", [1100, 500])
def test_page_of_two_datasets_shows_both_or_one(address, tmp_path, width):
    machine = "?m.processor=Xeon+Gold+6148&m.chips=2&vary=chips&from=1&to=2&step=1"
    texts, console = browse(f"{address}/{machine}", tmp_path / "both", f"--window-size={width},900")
    assert console == [] and "failed" not in texts
    assert [text.split()[0] for text in texts["at first"]] == [*LATER, *TITLES] == texts["curves at first"]
    assert re.fullmatch(
        r"SPEC CPU2026 bridged from SPEC CPU2017; \d+ results to 2026-0[56] SPEC CPU2017 [\d,]+ results to 20\d\d-\d\d",
        " ".join(texts["titles"]),
    )
    assert len(texts["ratios"]) == 4
    for text, title in zip(texts["ratios"], TITLES, strict=True):
        assert re.fullmatch(rf"Ratio to {title}: [\d.]+, [\d.]+ to [\d.]+", text)
    assert texts["published"][0].startswith("Published results")
    assert texts["chosen"] == ["both", "both", "spec_cpu2017"] and texts["wide"] <= 0
    texts, console = browse(f"{address}/{machine}&suite=spec_cpu2026", tmp_path / "one")
    assert console == []
    assert [text.split()[0] for text in texts["at first"]] == LATER == texts["curves at first"]
    assert texts["titles"] == texts["ratios"] == []


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_api_page_opens(address, tmp_path):
    command = [BROWSER, *QUIET, f"--user-data-dir={tmp_path}", "--dump-dom", f"{address}/docs"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert [line for line in process.stderr.splitlines() if "CONSOLE" in line] == []
    for words in ("POST /predict", "GET /cpu-models", 'id="PredictResponse"', f"curl {address}/predict"):
        assert words in process.stdout
    assert urlsplit(address).hostname == "127.0.0.1"
