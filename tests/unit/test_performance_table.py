"""The table of docs/performance.md."""

from __future__ import annotations

from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

MEASURED = """measure,before,now,goal,unit,reference_seconds
default run,930,450,500,CPU s,3.0
first paint,,1.6,1.5,s,
"""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(PROJECT / "docs" / "_site"))
    import performance_table

    return performance_table


def test_measures_stand_beside_their_goals_and_the_reference(site, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "performance"
    folder.mkdir(parents=True)
    (folder / "some.csv").write_text(MEASURED)
    lines = site.performance_table(tmp_path / "conf").splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == [
        *("default run", "930", "450", "500", "CPU s", "0.48", "150"),
    ]
    assert [cell.strip() for cell in lines[3].strip("|").split("|")] == [
        *("first paint", "", "1.6", "1.5 (missed)", "s", "", ""),
    ]


def test_the_files_of_the_project_have_the_columns_of_the_table(site) -> None:
    files = sorted((PROJECT / "results" / "performance").glob("*.csv"))
    assert files
    for path in files:
        assert path.read_text().splitlines()[0] == ",".join(site.COLUMNS)
