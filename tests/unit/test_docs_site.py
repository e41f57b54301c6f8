"""The documentation site: it builds without a warning, needs no network, and its generated pages come from files."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

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


@pytest.mark.slow
def test_site_has_a_whole_page_for_everything_and_loads_nothing_from_the_network(site: Path) -> None:
    pages = {str(path.relative_to(site)): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    expected = {f"predictors/{name}.html" for name in PREDICTORS} | {f"data/{name}.html" for name in DATASETS}
    expected |= {"index.html", "results/index.html", "contributing.html", "changelog.html", "reference/commands.html"}
    assert expected <= set(pages)
    assert not any("_site" in page or "banned" in page for page in pages)
    for name, text in pages.items():
        page = _Loaded()
        page.feed(text)
        assert [address for address in page.addresses if re.match(r"(https?:)?//", address)] == [], name
        assert name == "404.html" or page.headings == 1, name
        assert "generated: " not in text, name
    for path in (PROJECT / "docs" / "assets").iterdir():
        assert not re.search(r"url\(|@import", path.read_text(encoding="utf-8"))
    for title in ("Targets: the scores that are predicted", "Features: the only columns that predictors learn from"):
        assert title in pages["data/perfcastdb.html"]
    for name in ("predict", "load_champion", "estimator"):
        assert re.search(rf'<h2 id="[\w.]+\.{name}"', pages["reference/python.html"]), name


def test_every_predictor_has_its_texts(load) -> None:
    families = load("predictor_pages").read_texts()
    texts = {name: text for family in families.values() for name, text in family.items()}
    assert sorted(texts) == PREDICTORS
    for name, text in texts.items():
        assert set(text) == {"idea", "use", "equation", "source"}, name
        assert all(text.values()), name


FILES = {
    "host_gemm.csv": [
        "dataset,dataset_version,split,split_version,predictor,preset,backtests,seeds,task,metric,value,low,high,rows,code_digest",
        "host_gemm,0f0f,random,1,ridge,full,2,0,average,mape,5.432,5.0,6.0,100,abcd",
        "host_gemm,0f0f,random,1,ridge,full,2,0,average,coverage,91.26,,,100,abcd",
        "host_gemm,0f0f,random,1,nearest,full,2,0,average,mape,3.21,3.0,4.0,100,abcd",
        "host_gemm,0f0f,random,1,ridge,full,2,0,f32,mape,7.0,6.5,7.5,100,abcd",
        "host_gemm,0f0f,unseen_shape,1,ridge,full,2,0,average,mape,8.0,5.0,6.0,100,abcd",
    ],
    "described/host_gemm.csv": [
        "split,facts,level,task,n,mape,medape,coverage,width,interval_score",
        "random,all,4,average,1234,5.123,3.0,90.0,21.0,30.0",
    ],
    "choices/host_gemm.csv": [
        "split,predictor,share,violated,median_loss,options,limit,questions",
        "random,ridge,75.0,5.0,2.0,5.0,10.0,20",
        "random,ridge,80.4,5.0,2.0,5.0,50.0,30",
        "random,nearest,50.0,5.0,2.0,5.0,10.0,20",
        "random,nearest,50.0,5.0,2.0,5.0,50.0,30",
    ],
}


@pytest.fixture
def leaderboard(tmp_path: Path) -> Path:
    """A generated leaderboard of two predictors and two splits, in its folder."""
    folder = tmp_path / "leaderboard"
    for name, lines in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join([*lines, ""]))
    return folder


def test_results_come_from_the_leaderboard(load, leaderboard: Path) -> None:
    pages = load("result_pages").generate(leaderboard, PROJECT / "conf")
    assert set(pages) == {"results/index.md", "results/host_gemm.md"}
    text = pages["results/host_gemm.md"]
    lines = text.splitlines()
    for line in (
        "| `nearest` | full | 0 | 3.21<br><small>3 to 4</small> | not run |",
        "| `ridge` | full | 0 | 5.43<br><small>5 to 6</small> | 91.3 |",
        "## Unseen problem shapes: `unseen_shape`",
        "    | `ridge` | full | 7<br><small>6.5 to 7.5</small> |",
        "| similar machines | all | 4 the data sheet | 1,234 | 5.12 | 3 | 90 | 21 |",
        "Questions: 20 within 10 ms, 30 within 50 ms.",
    ):
        assert line in lines
    index = pages["results/index.md"].splitlines()
    assert "## Matrix products measured on one machine (embedded)" in index
    best, baseline = "`nearest` | 3.21 %<br><small>3 to 4</small>", "`nearest` 3.21 %<br><small>3 to 4</small>"
    line = next(line for line in index if "(host_gemm.md#similar-machines-random)" in line)
    assert line.replace("\N{NO-BREAK SPACE}", " ").endswith(f") | {best} | {baseline} |")
    assert "by the geometric mean over the splits" in text and "not a ranking" not in text
    order = [line.split("`")[1] for line in lines if line.startswith("| `") and "<small>" in line]
    assert order[:2] == ["nearest", "ridge"], "the smallest error comes first"
    assert "`0f0f`" in text and "`abcd`" in text
    first = lines.index("| predictor | good (loss) in %, 10 ms | good (loss) in %, 50 ms |") + 2
    assert lines[first : first + 2] == ["| `ridge` | 75 (2) | 80 (2) |", "| `nearest` | 50 (2) | 50 (2) |"]
    absent = load("result_pages").generate(leaderboard / "absent", PROJECT / "conf")
    assert list(absent) == ["results/index.md"] and "No results yet" in absent["results/index.md"]


def test_most_predictors_with_one_error_are_no_ranking(load, leaderboard: Path) -> None:
    names = ("ridge", "mlp", "nearest", "ncpp")
    rows = [f"host_gemm,0f0f,random,1,{name},full,2,0,average,mape,{5 + (name == 'ncpp')},,,100,abcd" for name in names]
    (leaderboard / "host_gemm.csv").write_text("\n".join([FILES["host_gemm.csv"][0], *rows, ""]))
    (leaderboard.parent / "headline" / "host_gemm").mkdir(parents=True, exist_ok=True)
    (leaderboard.parent / "headline" / "host_gemm" / "random.json").write_text('{"champion": "mlp"}')
    pages = load("result_pages").generate(leaderboard, PROJECT / "conf")
    assert "3 of 4 predictors have the same error, 5.00 %" in pages["results/host_gemm.md"]
    assert "On this dataset it is `mlp`." in pages["results/host_gemm.md"]
    assert "| no ranking |" in pages["results/index.md"]


def test_start_page_has_the_table_of_the_readme_and_citing_is_the_citation_file(load) -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert load("part_texts").headline(PROJECT / "conf") in readme
    pages = load("project_pages").generate(PROJECT)
    for words in ("author = {{perfcast contributors}}", "author = {Liu, Xiaoman}", "arXiv:2407.03385"):
        assert words in pages["citing.md"]
    assert (PROJECT / "CITATION.cff").read_text(encoding="utf-8").strip() in pages["citing.md"]


def test_published_values_stand_below_the_results_of_their_split(load) -> None:
    sections = load("published_values").sections(PROJECT / "conf", "gpperf")
    assert set(sections) == {"shuffled"}
    assert "| MedAPE in % | power 5.42 |" in sections["shuffled"]
    assert load("published_values").sections(PROJECT / "conf", "absent") == {}


def test_results_of_a_predictor_are_on_its_page(load, leaderboard: Path) -> None:
    pages = load("predictor_pages").generate(PROJECT / "conf", leaderboard)
    assert (
        "| [`host_gemm`](../results/host_gemm.md) | similar machines | full | 5.43 | 5 to 6 |"
        in pages["predictors/ridge.md"]
    )
    assert "No results yet" in pages["predictors/tabm.md"]


PAGE = """```bash
echo 1 | tee kept
```

```text
0
```

```text
no output
```

```bash
cat kept; {last}
```

```text
```
"""


def test_outputs_of_commands_are_pasted_in_their_order(load, tmp_path: Path) -> None:
    outputs = load("example_outputs")
    pasted = outputs.paste(PAGE.format(last="echo 2"), outputs.run_in(tmp_path))
    assert pasted == PAGE.format(last="echo 2").replace("text\n0", "text\n1").replace("text\n```", "text\n1\n2\n```")
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(last="false"))
    with pytest.raises(subprocess.CalledProcessError):
        outputs.main([str(page)])
    assert page.read_text() == PAGE.format(last="false")
