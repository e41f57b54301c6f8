"""The plots of dvc.yaml: templates that exist, columns that an evaluation writes, a page that needs no network."""

import csv
import json
import re
from pathlib import Path

import pytest
import yaml
from dvc_render.html import HTML
from generated_results import fake_table, write_in_domain, write_runs

from perfcast.evaluation import evaluate, write_evaluation

PROJECT = Path(__file__).parents[2]
TEMPLATES = PROJECT / ".dvc" / "plots"
PLOTS = {
    name: plot
    for entry in yaml.safe_load((PROJECT / "dvc.yaml").read_text())["plots"]
    if isinstance(entry, dict)
    for name, plot in entry.items()
}


@pytest.fixture(scope="module")
def columns(tmp_path_factory):
    """The columns of every table of an evaluation, by its file's name."""
    folder = tmp_path_factory.mktemp("plots")
    table = fake_table(rows=200, seed=0)
    runs = write_runs(table, folder / "runs", seed=0)
    in_domain = write_in_domain(table, folder / "in_domain_score", seed=0)
    write_evaluation(evaluate(runs, table, resamples=10, seed=0, in_domain=in_domain), folder / "evaluation")
    tables = {}
    for path in (folder / "evaluation").glob("*.csv"):
        with path.open() as file:
            tables[path.name] = next(csv.reader(file))
    return tables


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_reads_columns_that_an_evaluation_writes(name, columns):
    plot = PLOTS[name]
    template = (TEMPLATES / f"{plot['template']}.json").read_text()
    json.loads(template)
    for path, column in plot["y"].items():
        known = columns[Path(path).name]
        assert {column, plot["x"]} <= set(known)
        fields = set(re.findall(r"datum\.(\w+)", template)) | set(re.findall(r'"field": "(\w+)"', template))
        computed = set(re.findall(r'"as": "(\w+)"', template)) | {"curve", "value", "rev", "filename"}
        assert fields <= {*known, *computed}


def test_coverage_and_error_by_in_domain_score_are_plotted_beside_error_and_curves():
    assert set(PLOTS) == {"MAPE", "Learning curves", "Coverage", "Error by in-domain score"}


def test_the_page_loads_from_the_network_only_scripts_that_are_not_beside_the_environment():
    assert "html_template = plots/page.html" in (PROJECT / ".dvc" / "config").read_text()
    page = HTML((TEMPLATES / "page.html").read_text()).with_scripts("<script src='https://x'></script>")
    text = page.with_element("<div>drawn</div>").embed()
    assert "<div>drawn</div>" in text
    assert "https://x" not in text
    local = re.findall(r'<script src="(\.\./[^"]+)"></script>', text)
    assert [Path(path).name for path in local] == ["vega.js", "vega-lite.js", "vega-embed.js"]
    makefile = (PROJECT / "Makefile").read_text()
    assert {Path(path).parent.name for path in local} == {"vega"} and "$(VENV)/share/vega/vega.js:" in makefile
    for line in text.splitlines():
        assert "https://" not in line or "document.write" in line
