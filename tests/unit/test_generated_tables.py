"""Tables of the documentation that are generated from files below results/."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
METRICS = ("mape", "medape", "coverage")
SERVED = {"nearest": (40, 30, 80), "roofline_trees": (20.04, 13, 91)}
BOARD = "split,predictor,task,metric,value"
SERVED_ROWS = [
    f"unseen_gpu,{name},average,{metric},{value}"
    for name, values in SERVED.items()
    for metric, value in zip(METRICS, values, strict=True)
]
KINDS = "split,kind,predictor,mean,low,high,r2,coverage,median,signed,rows,runs,slice,value,unit"
INTERFERENCE = [
    "unseen_victim,throughput,resource_shares_trees,4.04,3,5,0.8,91,2,-0.5,1200,30,,,",
    "unseen_victim,throughput,schedstat,3.9,3,5,0.8,91,2,-0.5,1200,30,,,",
    "unseen_victim,throughput,resource_shares_trees,6,3,5,0.8,91,2,-0.5,1200,30,scenario,dynamic,",
]
KNOWN = [line.replace("resource_shares_trees", "work_of_alone_trees") for line in INTERFERENCE if "stat" not in line]
INTERFERENCE_FILES = {
    "leaderboard/kinds/host_interference.csv": [KINDS, *INTERFERENCE],
    "leaderboard/kinds/host_interference_known.csv": [KINDS, *KNOWN],
}
TABLES = {
    "performance": (
        "performance_table.performance_table",
        {
            "performance/some.csv": [
                "measure,before,now,goal,unit,reference_seconds",
                "default run,930,450,500,CPU s,3.0",
                "first paint,,1.6,1.5,s,",
                "rows,,30,20,1/s,",
            ]
        },
        ["|default run|930|450|500|CPU s|0.48|150|", "|first paint||1.6|1.5 (missed)|s|||", "|rows||30|20|1/s|||"],
        None,
    ),
    "GPUs": (
        "gpu_tables.gpu_table",
        {"leaderboard/llm_serving.csv": [BOARD, *SERVED_ROWS]},
        ["|`roofline_trees`|20.0 / 13.0|91|40.0|-|-|"],
        "No results yet",
    ),
    "interference": (
        "interference_tables.interference_table",
        INTERFERENCE_FILES,
        ["|throughput|4.0|", "|**3.9**|", "|3.0 to 5.0|0.80|91|"],
        "No results yet",
    ),
}
"""Function, files with their lines, fragments of lines, and what the page says without the files."""


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROJECT / "docs" / "_site"))


def write(results: Path, files: dict[str, list[str]]) -> None:
    for name, lines in files.items():
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_text("\n".join([*lines, ""]))


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_values_of_its_files(tmp_path: Path, name: str) -> None:
    path, files, fragments, nothing = TABLES[name]
    module, _, function = path.partition(".")
    table = getattr(importlib.import_module(module), function)
    assert not nothing or nothing in table(tmp_path / "conf")
    write(tmp_path / "results", files)
    text = re.sub(" *\\| *", "|", table(tmp_path / "conf"))
    assert [fragment for fragment in fragments if fragment not in text] == []


def test_the_files_of_the_project_have_the_columns_of_the_table_of_performance() -> None:
    columns = importlib.import_module("performance_table").COLUMNS
    files = sorted((PROJECT / "results" / "performance").glob("*.csv"))
    assert files
    assert {path.read_text().splitlines()[0] for path in files} == {",".join(columns)}


def test_a_part_of_a_page_is_filled_by_its_name(tmp_path: Path) -> None:
    fill = importlib.import_module("part_texts").fill
    with pytest.raises(KeyError):
        fill("<!-- generated: nothing -->", PROJECT / "conf")
    assert "No results yet" in fill("<!-- generated: sensitivity -->", tmp_path / "conf")
    lines = [
        "choice,variant,split,predictor,mape,medape,backtest_mape,rows",
        "excluded rows,counted,random,ridge,7.125,,,1205",
        "excluded rows,left out,random,ridge,6.5,,,1200",
    ]
    write(tmp_path / "results", {"leaderboard/sensitivity/demo.csv": lines})
    text = fill("<!-- generated: sensitivity -->", tmp_path / "conf")
    assert "| **left out** | `random` | 1,200 | 6.50 |" in text
    assert "| counted | `random` | 1,205 | 7.12 |" in text
