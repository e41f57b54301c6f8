"""The documentation site: it builds without a warning, needs no network, and its generated pages come from files."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from perfcast.config.conf_files import conf_files

PROJECT = Path(__file__).parents[2]
SCRIPTS = PROJECT / "docs" / "_site"
PREDICTORS = sorted(conf_files(PROJECT / "conf", "predictor"))
DATASETS = sorted(conf_files(PROJECT / "conf", "dataset"))


@pytest.fixture(scope="module", name="load")
def fixture_load():
    """Give a loader of the modules that make the site."""
    sys.path.insert(0, str(SCRIPTS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "src"), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


class _Loaded(HTMLParser):
    """Collects the addresses that a browser loads with a page, beside links that a reader follows."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.headings = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.headings += tag == "h1"
        if tag in {"script", "img", "iframe", "source"}:
            self.addresses.append(values.get("src") or "")
        if tag == "link" and values.get("rel") not in {"canonical", "prev", "next"}:
            self.addresses.append(values.get("href") or "")


def read_page(path: Path) -> _Loaded:
    page = _Loaded()
    page.feed(path.read_text(encoding="utf-8"))
    return page


@pytest.mark.slow
def test_site_has_a_page_for_everything(site: Path) -> None:
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    assert {f"predictors/{name}.html" for name in PREDICTORS} <= pages
    assert {f"data/{name}.html" for name in DATASETS} <= pages
    assert {
        "index.html",
        "results/index.html",
        "contributing.html",
        "changelog.html",
        "reference/commands.html",
    } <= pages
    assert not any("_site" in page or "banned" in page for page in pages)


@pytest.mark.slow
def test_site_loads_nothing_from_the_network(site: Path) -> None:
    for path in site.rglob("*.html"):
        remote = [address for address in read_page(path).addresses if re.match(r"(https?:)?//", address)]
        assert remote == [], path
    for path in (PROJECT / "docs" / "assets").iterdir():
        assert not re.search(r"url\(|@import", path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_every_page_has_one_title(site: Path) -> None:
    wrong = [path.name for path in site.rglob("*.html") if path.name != "404.html" and read_page(path).headings != 1]
    assert wrong == []


@pytest.mark.slow
def test_no_part_is_left_to_generate(site: Path) -> None:
    assert not [path for path in site.rglob("*.html") if "generated: " in path.read_text(encoding="utf-8")]


@pytest.mark.slow
def test_public_functions_are_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "python.html").read_text(encoding="utf-8")
    for name in ("predict", "load_champion", "estimator"):
        assert re.search(rf'<h2 id="[\w.]+\.{name}"', text), name


def test_every_predictor_has_its_texts(load) -> None:
    families = load("predictor_pages").read_texts()
    texts = {name: text for family in families.values() for name, text in family.items()}
    assert sorted(texts) == PREDICTORS
    for name, text in texts.items():
        assert set(text) == {"idea", "use", "equation", "source"}, name
        assert all(text.values()), name


def board_row(**values: object) -> dict[str, object]:
    row = {
        "dataset": "host_gemm",
        "dataset_version": "0f0f",
        "split": "random",
        "predictor": "ridge",
        "preset": "full",
        "seeds": "0",
        "task": "average",
        "metric": "mape",
        "value": 5.432,
        "low": 5.0,
        "high": 6.0,
        "code_digest": "abcd",
    }
    return {**row, **values}


@pytest.fixture
def leaderboard(tmp_path: Path) -> Path:
    """A generated leaderboard of two predictors and two splits, in its folder."""
    rows = [
        board_row(),
        board_row(metric="coverage", value=91.26, low=None, high=None),
        board_row(predictor="nearest", value=3.21, low=3.0, high=4.0),
        board_row(task="f32", value=7.0, low=6.5, high=7.5),
        board_row(split="unseen_shape", value=8.0),
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "host_gemm.csv", index=False)
    return tmp_path


def test_results_come_from_the_leaderboard(load, leaderboard: Path) -> None:
    pages = load("result_pages").generate(leaderboard, PROJECT / "conf")
    assert set(pages) == {"results/index.md", "results/host_gemm.md"}
    text = pages["results/host_gemm.md"]
    lines = text.splitlines()
    assert "| `nearest` | full | 0 | 3.21<br><small>3 to 4</small> | not run |" in lines
    assert "| `ridge` | full | 0 | 5.43<br><small>5 to 6</small> | 91.3 |" in lines
    assert text.index("`nearest`") < text.index("`ridge`"), "the smallest error comes first"
    assert "## Unseen problem shapes: `unseen_shape`" in lines
    assert "    | `ridge` | full | 7<br><small>6.5 to 7.5</small> |" in lines
    assert "`0f0f`" in text
    assert "`abcd`" in text


def test_levels_of_description_are_on_the_page_of_the_dataset(load, leaderboard: Path) -> None:
    (leaderboard / "described").mkdir()
    line = {"split": "random", "facts": "all", "level": 4, "task": "average", "n": 1234, "mape": 5.123, "medape": 3.0}
    frame = pd.DataFrame([{**line, "coverage": 90.0, "width": 21.0, "interval_score": 30.0}])
    frame.to_csv(leaderboard / "described" / "host_gemm.csv", index=False)
    text = load("result_pages").generate(leaderboard, PROJECT / "conf")["results/host_gemm.md"]
    assert "| similar machines | all | 4 the data sheet | 1,234 | 5.12 | 3 | 90 | 21 |" in text.splitlines()


def test_published_values_stand_below_the_results_of_their_split(load) -> None:
    sections = load("published_values").sections(PROJECT / "conf", "gpperf")
    assert set(sections) == {"shuffled"}
    line = next(line for line in sections["shuffled"].splitlines() if "MedAPE" in line)
    assert "| MedAPE in % | power 5.42 |" in line
    assert load("published_values").sections(PROJECT / "conf", "absent") == {}


def test_chosen_layouts_are_on_the_page_of_the_dataset(load, leaderboard: Path) -> None:
    (leaderboard / "choices").mkdir()
    line = {"split": "random", "predictor": "ridge", "share": 75.0, "violated": 5.0, "median_loss": 2.0, "options": 5.0}
    rows = [{**line, "limit": 10.0, "questions": 20}, {**line, "limit": 50.0, "questions": 30, "share": 80.4}]
    rows += [{**row, "predictor": "nearest", "share": 50.0} for row in rows]
    pd.DataFrame(rows).to_csv(leaderboard / "choices" / "host_gemm.csv", index=False)
    lines = load("result_pages").generate(leaderboard, PROJECT / "conf")["results/host_gemm.md"].splitlines()
    assert "Questions: 20 within 10 ms, 30 within 50 ms." in lines
    first = lines.index("| predictor | good (loss) in %, 10 ms | good (loss) in %, 50 ms |") + 2
    assert lines[first : first + 2] == ["| `ridge` | 75 (2) | 80 (2) |", "| `nearest` | 50 (2) | 50 (2) |"]


def test_sources_of_error_have_a_page(load, leaderboard: Path) -> None:
    assert "No results yet" in load("limit_pages").generate(leaderboard)["limits.md"]
    (leaderboard / "error_sources").mkdir()
    line = {"split": "random", "task": "average", "step": 0, "known": "nothing", "medape": 1.0, "share": None}
    known = {"step": 1, "known": "CPU model", "share": 25.0}
    rows = [{**line, "predictor": "ridge", "mape": 8.0}, {**line, "predictor": "nearest", "mape": 4.0}]
    rows += [{**row, **known, "mape": row["mape"] * 0.75} for row in rows]
    pd.DataFrame(rows).to_csv(leaderboard / "error_sources" / "host_gemm.csv", index=False)
    lines = load("limit_pages").generate(leaderboard)["limits.md"].splitlines()
    assert lines[lines.index("| known: | nothing | CPU model |") + 2 :][:2] == [
        "| `nearest` | 4.00 | 3.00 (25\N{NO-BREAK SPACE}%) |",
        "| `ridge` | 8.00 | 6.00 (25\N{NO-BREAK SPACE}%) |",
    ]


def test_results_of_a_predictor_are_on_its_page(load, leaderboard: Path) -> None:
    pages = load("predictor_pages").generate(PROJECT / "conf", leaderboard)
    assert (
        "| [`host_gemm`](../results/host_gemm.md) | similar machines | full | 5.43 | 5 to 6 |"
        in pages["predictors/ridge.md"]
    )
    assert "No results yet" in pages["predictors/tabm.md"]


def test_without_a_leaderboard_there_are_no_results_yet(load, tmp_path: Path) -> None:
    pages = load("result_pages").generate(tmp_path / "absent", PROJECT / "conf")
    assert list(pages) == ["results/index.md"]
    assert "No results yet" in pages["results/index.md"]


def test_a_leaderboard_without_a_column_is_refused(load, leaderboard: Path) -> None:
    path = leaderboard / "host_gemm.csv"
    pd.read_csv(path).drop(columns="low").to_csv(path, index=False)
    with pytest.raises(ValueError, match="low are missing"):
        load("result_pages").generate(leaderboard, PROJECT / "conf")


def test_columns_of_a_dataset_are_on_its_page(load, tmp_path: Path) -> None:
    pages = load("data_pages")
    (tmp_path / "dataset").mkdir()
    shutil.copy(PROJECT / "conf" / "dataset" / "perfcastdb.yaml", tmp_path / "dataset")
    text = pages.generate(tmp_path)["data/perfcastdb.md"]
    assert "## Targets: the scores that are predicted" in text
    assert "## Features: the only columns that predictors learn from" in text


def test_sections_of_the_navigation(load) -> None:
    pages = {"a/index.md": load("markdown_text").page("A", "text")}
    pages |= {f"a/{name}.md": load("markdown_text").page(name, section="S") for name in ("b", "c")}
    assert load("hooks").nest(pages) == ["a/index.md", {"S": [{"b": "a/b.md"}, {"c": "a/c.md"}]}]
