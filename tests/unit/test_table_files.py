"""Damaged files, absurd numbers and other schema versions of tables, models and champions are refused."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from champion_project import project
from generated_results import fake_table

from perfcast.cli.main import main
from perfcast.inference import load_champion
from perfcast.predictors.linear import Ridge
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Column, Kind, Role, outside
from perfcast.schema.table_files import SCHEMA_VERSION, read_parquet, read_table, write_table
from perfcast.utils.errors import UserError
from perfcast.utils.result_digests import FOLDER_RECORD, record_digests


def pages(path):
    """Return the first and the last byte of all pages of a file: the rest is its metadata."""
    groups = pq.read_metadata(path).row_group(0)
    chunks = [groups.column(number) for number in range(groups.num_columns)]
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    ends = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
    return min(starts), max(ends)


@pytest.mark.parametrize("read", [lambda path: read_table(path).frame, read_parquet], ids=["table", "frame"])
def test_no_flipped_bit_is_read_as_other_data(tmp_path, read):
    path = tmp_path / "table.parquet"
    write_table(fake_table(rows=60, seed=0), path)
    whole, sound = path.read_bytes(), read(path)
    first, last = pages(path)
    refused = 0
    for place in range(first, last, max(1, (last - first) // 150)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 8]) + whole[place + 1 :])
        try:
            frame = read(path)
        except UserError as error:
            assert str(error).startswith(f"{path} must")
            refused += 1
        else:  # a byte that no reader uses, such as a statistic of a page
            assert frame.equals(sound)
    assert refused > 75


@pytest.mark.parametrize(("value", "role"), [(np.inf, "feature"), (-1e300, "target"), (1.1e18, "feature")])
def test_a_number_that_no_machine_has_is_refused_where_a_table_is_written_and_read(tmp_path, value, role):
    table, path = fake_table(rows=40, seed=0), tmp_path / "table.parquet"
    name = table.select(role=Role(role), kind=Kind.NUMERICAL)[0]
    table.frame.loc[6, name] = value
    with pytest.raises(UserError, match=rf"finite and at most 1e\+18, but {name} is .* in row 7; correct or remove"):
        write_table(table, path)
    assert not path.exists()
    sound = fake_table(rows=40, seed=0)
    write_table(sound, path)
    arrow = pq.read_table(path)
    cells = arrow.column(name).to_pandas().where(lambda column: column.index != 6, value)
    pq.write_table(arrow.set_column(arrow.column_names.index(name), arrow.field(name), [cells]), path)
    with pytest.raises(UserError, match=f"{name} is .* in row 7"):
        read_table(path)


def test_a_column_and_a_predictor_without_bounds_have_those_of_numbers():
    table = fake_table(rows=60, seed=0)
    name = table.select(role=Role.FEATURE, kind=Kind.NUMERICAL)[0]
    column = Column("cache", Kind.NUMERICAL, Role.FEATURE, "processor")
    for value in (np.inf, 1e300):
        assert outside(pd.Series([1.0, value, -value, np.nan]), column).tolist() == [False, True, True, False]
        table.frame.loc[6, name] = value
        with pytest.raises(UserError, match=f"numbers in the training rows must be finite .* {name} is"):
            Ridge().fit(table.frame, table.frame[table.select(role=Role.TARGET)], columns=table.columns)


def change_table(path, change):
    stored = pq.read_table(path)
    about = change(json.loads(stored.schema.metadata[b"perfcast"]))
    pq.write_table(stored.replace_schema_metadata({b"perfcast": json.dumps(about).encode()}), path)


def change_json(path, change):
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


@pytest.mark.parametrize("version", [1, None])
def test_a_table_a_champion_and_a_model(tmp_path, version):
    def change(content):
        assert content.pop("schema_version") == SCHEMA_VERSION
        return content if version is None else {**content, "schema_version": version}

    shutil.copytree(project().folder, tmp_path / "champion")
    shutil.copytree(project().folder / "model", tmp_path / "model")
    write_table(fake_table(rows=20, seed=0), tmp_path / "table.parquet")
    for read, place, name, rewrite in (
        (read_table, "table.parquet", "", change_table),
        (load_champion, "champion", "about.json", change_json),
        (load_predictor, "model", "predictor.json", change_json),
    ):
        rewrite(tmp_path / place / name, change)
        record_digests(tmp_path / place)
        with pytest.raises(UserError) as raised:
            read(tmp_path / place)
        fact = f"{tmp_path / place / name} must have schema version {SCHEMA_VERSION}, but it has {version or 'none'}"
        assert str(raised.value).startswith(fact)
        assert str(raised.value).endswith("run snakemake to make it again")


def test_an_evaluation(tmp_path, capsys):
    folder = tmp_path / "results" / "evaluation" / "fake"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps({"dataset": "fake"}))
    assert main(["pipeline", "metrics", str(folder), "--out", str(tmp_path / "metrics.json")]) == 2
    message = capsys.readouterr().err
    assert f"summary.json must have schema version {SCHEMA_VERSION}, but it has none" in message
    assert message.count("\n") == 1


FILES = (
    "about.json",
    "model/predictor.json",
    "intervals/calibration.json",
    "reference_data/measured.parquet",
    FOLDER_RECORD,
)


@pytest.mark.parametrize("name", FILES)
def test_load_champion_refuses_a_changed_and_a_missing_file(tmp_path, name):
    folder = shutil.copytree(project().folder, tmp_path / "champion")
    whole = (folder / name).read_bytes()
    for planted in (whole[: len(whole) // 2], b"[]", None):
        if planted is None and name == FOLDER_RECORD:  # a folder without a record is read as it is
            continue
        (folder / name).unlink() if planted is None else (folder / name).write_bytes(planted)
        with pytest.raises(UserError) as raised:
            load_champion(folder)
        assert "\n" not in str(raised.value)
