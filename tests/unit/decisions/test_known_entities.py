"""The page of every CPU model: its table agrees with single answers and with the measured rows; a browser uses it."""

import json
import re
import subprocess

import pandas as pd
import pytest
from browser import BROWSER, QUIET
from champion_project import SUITES, TITLES, predict, project

from perfcast.cli.main import main
from perfcast.decisions.known_entities import render_entities, tabulate_entities
from perfcast.inference.predict import make_options

SOURCE = {
    "source": "spec",
    "title": "<i>SPEC</i>",
    "license": "SPEC Fair Use",
    "terms": "Cite it",
    "citation": "spec.org",
}
HOSTILE = "</script><b>x & 'y'</b>"


@pytest.fixture(scope="module")
def table():
    return tabulate_entities(project().champion)


def render(table, champion=None):
    return render_entities(champion or project().champion, table, "<u>Results</u>", [SOURCE], "models.csv")


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page)[1])


def test_every_known_cpu_model_is_answered_as_alone(table):
    champion = project().champion
    assert set(table["cpu_model"]) == set(champion.entity_names.keys)
    assert set(table["chips"]) == {1, 2}
    assert not table.duplicated(["cpu_model", "chips", "task"]).any()
    assert list(table["task"].unique()) == TITLES
    by_task = table[(table["cpu_model"] == "xeon gold 6148") & (table["chips"] == 2)].set_index("task")
    alone = predict({"processor": "Xeon Gold 6148", "chips": 2}, options=make_options(neighbors=0, explain=False))
    for each in alone.machines[0].estimates:
        row = by_task.loc[champion.rules.task_titles[each.task]]
        assert [row["estimate"], row["low"], row["high"]] == pytest.approx([each.median, each.low, each.high])
        assert row["trust"] == each.trust


def test_published_results_are_counted_as_they_are(table):
    frame = project().champion.reference_data.measured.frame
    row = table[table["published"] > 1].iloc[0]
    same = {"cpu_model": row["cpu_model"], "chips": row["chips"], "suite": SUITES[TITLES.index(row["task"])]}
    rows = frame[(frame[list(same)].astype(object) == pd.Series(same)).all(axis=1)]
    assert len(rows) == row["published"]
    quartiles = rows["base_score"].quantile([0.25, 0.5, 0.75]).tolist()
    assert row[["published_q1", "published_median", "published_q3"]].tolist() == pytest.approx(quartiles)
    months = rows["published_month"].dt.strftime("%Y-%m")
    assert (row["published_from"], row["published_to"]) == (months.min(), months.max())
    without = table[table["published"] == 0]
    assert len(without) and without.filter(like="published_").isna().all(axis=None)


def test_page_escapes_every_text_loads_nothing_and_names_the_trademark(table):
    first = table["cpu_model"].iloc[0]
    page = render(table.assign(cpu_model=table["cpu_model"].replace(first, HOSTILE)))
    data = data_of(page)
    assert data["names"][0][0] == HOSTILE and HOSTILE not in page
    assert "<i>SPEC" not in page and "<u>Results" not in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//(?!www\.spec\.org)""", page) and "url(" not in page
    assert "registered trademarks" in page and "estimates, not official results" in page
    assert len(data["rows"]) == len(table) and {row[2] for row in data["rows"]} == {0, 1, 2, 3}
    assert render(table) == render(table)


def test_command_writes_the_page_and_its_table(tmp_path, capsys):
    assert main(["champion", "models", "--champion", str(project().folder), "--out", str(tmp_path / "site")]) == 0
    table = pd.read_csv(tmp_path / "site" / "models.csv")
    page = (tmp_path / "site" / "models.html").read_text(encoding="utf-8")
    assert len(data_of(page)["rows"]) == len(table) and "Published SPEC CPU2017 results" in page
    assert f"{table['cpu_model'].nunique():,} CPU models" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["champion", "models", "--champion", str(project().folder), "--out", str(tmp_path / "file")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_browser_searches_filters_and_sorts(table, tmp_path):
    page = tmp_path / "models.html"
    page.write_text(render(table), encoding="utf-8")

    def browse(state):
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        command = [str(BROWSER), *QUIET, profile, "--dump-dom", f"{page.as_uri()}#{state}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert "CONSOLE" not in done.stderr
        body = done.stdout.partition("<tbody>")[2].partition("</tbody>")[0]
        lines = [re.sub("<[^>]+>", "|", line).split("|") for line in body.split("</tr>")[:-1]]
        return [[cell for cell in line if cell] for line in lines]

    assert [line[0] for line in browse("q=gold+6148&output=2&units=2")] == ["xeon gold 6148"]
    rows = table[(table["task"] == TITLES[2]) & (table["published"] > 0)]
    shown = browse("output=2&published=1&sort=-median")
    assert shown[0][0] == rows.loc[rows["published_median"].idxmax(), "cpu_model"]
    assert len(shown) == min(200, len(rows))
    assert browse("q=nothing") == []
