"""The table of docs/performance.md."""

from __future__ import annotations

from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

MEASURED = """measure,before,now,goal,unit,reference_seconds
default run,930,450,500,CPU s,3.0
first paint,,1.6,1.5,s,
rows,,30,20,1/s,
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
    assert "missed" not in lines[4]


def test_the_files_of_the_project_have_the_columns_of_the_table(site) -> None:
    files = sorted((PROJECT / "results" / "performance").glob("*.csv"))
    assert files
    for path in files:
        assert path.read_text().splitlines()[0] == ",".join(site.COLUMNS)


def test_networks_of_two_devices_stand_in_one_line(site, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "performance" / "gpu"
    folder.mkdir(parents=True)
    head = "network,split,seed,device,alone,mape,epochs,epoch_seconds,fit_seconds,utilization,gpu_mib"
    runs = [
        *("mlp,random,0,cpu,False,8,15,2.0,40,,", "mlp,random,1,cpu,False,9,15,4.0,50,,"),
        *("mlp,random,0,cuda,True,8.5,15,0.5,10,13,75", "mlp,random,1,cuda,False,8.7,15,0.9,20,,75"),
    ]
    (folder / "training.csv").write_text("\n".join([head, *runs]) + "\n")
    lines = site.gpu_training_table(tmp_path / "conf").splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == [
        *("mlp", "8.5 ± 0.7", "8.6 ± 0.1", "2", "0.5", "40", "10", "13 %"),
    ]


def test_without_a_gpu_the_page_says_how_to_measure(site, tmp_path: Path) -> None:
    assert "gpu_training.py" in site.gpu_training_table(tmp_path / "conf")
