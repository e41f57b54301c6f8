"""A CSV file as a dataset: what its conf may say, which rows are rejected, and one line for every mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from own_table import own_table

from perfcast.cli.main import main
from perfcast.config.conf_files import read_yaml
from perfcast.data.csv_dataset import build
from perfcast.data.standardized import Standardized
from perfcast.schema.table import Tag
from perfcast.utils.errors import UserError

OPTIONS: dict[str, Any] = {
    "csv": "mine.csv",
    "target": {"Score": "ops/s"},
    "entity": "Machine",
    "task": "Suite",
    "date": "Tested",
    "features": {"processor": {"Cores": "", "Clock (GHz)": "GHz", "Vendor": "category"}, "memory": {"Memory GB": "GB"}},
}


def built(folder: Path, table: pd.DataFrame, **changed: Any) -> Standardized:
    table.to_csv(folder / "mine.csv", index=False)
    options = {key: value for key, value in {**OPTIONS, **changed}.items() if value is not None}
    return build({"mine": folder}, options)


def test_columns_have_the_groups_units_and_tags_of_the_conf(tmp_path: Path) -> None:
    table = built(tmp_path, own_table()).table
    declared = {column.name: (column.group, column.unit) for column in table.columns}
    assert declared["clock_ghz"] == ("processor", "GHz")
    assert declared["memory_gb"] == ("memory", "GB")
    assert declared["score"] == ("problem", "ops/s")
    tagged = {tag: table.column_of(tag) for tag in (Tag.ROW, Tag.ENTITY, Tag.TASK, Tag.TIME)}
    assert list(tagged.values()) == ["csv_line", "machine", "suite", "tested"]
    assert table.select(tag=Tag.SCALING) == ["cores", "clock_ghz", "memory_gb"]


def test_without_entity_and_task_equal_machines_are_one_and_all_rows_are_of_one_task(tmp_path: Path) -> None:
    table = built(tmp_path, own_table().drop(columns="Machine"), entity=None, task=None, date=None).table
    same = own_table().groupby(["Cores", "Clock (GHz)", "Vendor", "Memory GB"]).ngroups
    assert table.frame["entity"].nunique() == same
    assert table.frame["task"].unique().tolist() == ["Score"]


@pytest.mark.parametrize(
    ("heading", "cell", "reason"),
    [
        ("Score", "0", "bad_number"),
        ("Score", "", "no_target"),
        ("Cores", "many", "bad_number"),
        ("Tested", "2024-02-30", "bad_date"),
        ("Tested", "", "no_date"),
        ("Machine", " ", "no_entity"),
        ("Suite", "", "no_task"),
    ],
)
def test_a_row_that_cannot_be_used_is_rejected_with_its_line(
    tmp_path: Path, heading: str, cell: str, reason: str
) -> None:
    table = own_table().astype(object)
    table.loc[3, heading] = cell
    result = built(tmp_path, table)
    assert result.rejected[["line", "reason"]].to_numpy().tolist() == [[5, reason]]
    assert result.rows_in == len(result.table.frame) + 1


def test_a_missing_feature_stays_missing(tmp_path: Path) -> None:
    table = built(tmp_path, own_table().assign(Vendor="", Cores=pd.NA)).table
    assert table.frame[["vendor", "cores"]].isna().all(axis=None)
    assert len(table.frame) == 120


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"entity": "Machin"}, "entity in options of conf/dataset/mine.yaml must be one of .*did you mean 'Machine'"),
        ({"target": {"Suite": ""}, "task": None}, "all 120 are rejected, 120 of them as bad_number; .*`category`"),
        ({"target": {"Cores": ""}}, "features.processor.Cores .* has the name of target.Cores; rename"),
        ({"task": None, "features": {"x": {"Task": ""}}}, "it has the name of the task, which is not named"),
        ({"csv": None}, "must have the key 'csv'"),
        ({"taks": "Suite"}, "did you mean 'task'"),
    ],
)
def test_a_conf_that_does_not_fit_is_one_line_that_names_the_key(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as raised:
        built(tmp_path, own_table(), **changed)
    assert "\n" not in str(raised.value)


class TestNewDataset:
    """`perfcast new dataset`: what it chooses, and what it refuses."""

    @pytest.fixture(autouse=True)
    def _project(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "conf" / "dataset").mkdir(parents=True)
        monkeypatch.chdir(tmp_path)

    def test_numbers_alone_have_a_target_by_name_and_no_entity(self, tmp_path: Path) -> None:
        table = own_table()[["Score", "Cores", "Clock (GHz)"]].rename(columns={"Score": "Time [ms]"})
        table.to_csv("four numbers.csv", index=False)
        assert main(["new", "dataset", "four numbers.csv"]) == 0
        conf = read_yaml(tmp_path / "conf" / "dataset" / "four_numbers.yaml")
        assert conf["options"]["target"] == {"Time [ms]": "ms"}
        assert conf["options"]["lower_is_better"] is True
        assert conf["options"]["features"] == {"machine": {"Cores": "", "Clock (GHz)": "GHz"}}
        assert conf["splits"] == ["random", "unseen_entity"]
        assert (tmp_path / "data" / "embedded" / "four_numbers.csv").is_file()

    def test_given_columns_are_taken(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        own_table().to_csv("mine.csv", index=False)
        assert main(["new", "dataset", "mine.csv", "--target", "Cores", "--entity", "Vendor"]) == 0
        options = read_yaml(tmp_path / "conf" / "dataset" / "mine.yaml")["options"]
        assert (options["target"], options["entity"], options["task"]) == ({"Cores": ""}, "Vendor", "Suite")
        assert "mine.yaml (target: Cores, date: Tested, task: Suite, entity: Vendor)\n" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("words", "text", "message"),
        [
            (["absent.csv"], "a,b\n1,2\n", "FILE must be a CSV file with a header, but absent.csv is no file"),
            (["mine.csv"], "a,b\nx,y\n", "must have a column of positive numbers"),
            (["mine.csv"], "a,b\n1,2\n1,-2\n", ""),
            (["mine.csv"], "a,b\n1,\n2,\n", "must have a column that describes"),
            (["mine.csv"], "a;b\n1;2\n", "must have two columns or more, with commas between, but its header is 'a;b'"),
            (["mine.csv"], "a,b\n", "must have rows"),
            (["mine.csv"], "Ab,ab,c\n1,2,3\n", "must have a name of its own"),
            (["mine.csv", "--target", "tim"], "time,b\n1,2\n", "--target must be one of b, time, but found 'tim'; did"),
        ],
    )
    def test_a_file_that_cannot_be_used_is_one_line(
        self, words: list[str], text: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        (tmp_path / "mine.csv").write_text(text)
        assert main(["new", "dataset", *words]) == (2 if message else 0)
        error = capsys.readouterr().err
        assert message in error
        assert len(error.splitlines()) == bool(message)
        assert (tmp_path / "conf" / "dataset" / "mine.yaml").exists() == (not message)

    def test_nothing_is_overwritten(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        own_table().to_csv("mine.csv", index=False)
        assert main(["new", "dataset", "mine.csv"]) == 0
        assert main(["new", "dataset", "mine.csv"]) == 2
        assert "NAME must be new" in capsys.readouterr().err
        assert main(["new", "domain", "bikes"]) == 0
        assert main(["new", "domain", "bikes"]) == 2
        assert main(["new", "predictor", "Mean"]) == 2
