"""Results, models and champions of another schema version are refused in one line that says to run again."""

import json
import shutil

import pyarrow.parquet as pq
import pytest
from champion_project import project
from generated_results import fake_table

from perfcast.cli.main import main
from perfcast.inference import load_champion
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.schema_version import SCHEMA_VERSION
from perfcast.schema.table_files import read_table, write_table
from perfcast.utils.errors import UserError
from perfcast.utils.result_digests import record_digests

OTHERS = [1, None]


def set_version(path, version):
    """Replace the schema version of a JSON file; None removes it."""
    content = json.loads(path.read_text())
    assert content.pop("schema_version") == SCHEMA_VERSION
    path.write_text(json.dumps(content if version is None else {**content, "schema_version": version}))


def expect_refusal(call, path, version):
    with pytest.raises(UserError) as raised:
        call()
    text = str(raised.value)
    assert text.startswith(f"{path} must have schema version {SCHEMA_VERSION}, but it has {version or 'none'}")
    assert text.endswith("run snakemake to make it again")


@pytest.mark.parametrize("version", OTHERS)
def test_a_table(tmp_path, version):
    path = tmp_path / "table.parquet"
    write_table(fake_table(rows=20, seed=0), path)
    stored = pq.read_table(path)
    about = json.loads(stored.schema.metadata[b"perfcast"])
    del about["schema_version"]
    changed = about if version is None else {**about, "schema_version": version}
    pq.write_table(stored.replace_schema_metadata({b"perfcast": json.dumps(changed).encode()}), path)
    expect_refusal(lambda: read_table(path), path, version)


@pytest.mark.parametrize("version", OTHERS)
def test_a_champion(tmp_path, version):
    shutil.copytree(project().folder, tmp_path / "champion")
    path = tmp_path / "champion" / "about.json"
    set_version(path, version)
    record_digests(tmp_path / "champion")
    expect_refusal(lambda: load_champion(tmp_path / "champion"), path, version)


@pytest.mark.parametrize("version", OTHERS)
def test_a_model(tmp_path, version):
    shutil.copytree(project().folder / "model", tmp_path / "model")
    path = tmp_path / "model" / "predictor.json"
    set_version(path, version)
    record_digests(tmp_path / "model")
    expect_refusal(lambda: load_predictor(tmp_path / "model"), path, version)


def test_an_evaluation(tmp_path, capsys):
    folder = tmp_path / "results" / "evaluation" / "fake"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps({"dataset": "fake"}))
    assert main(["pipeline", "metrics", str(folder), "--out", str(tmp_path / "metrics.json")]) == 2
    message = capsys.readouterr().err
    assert f"summary.json must have schema version {SCHEMA_VERSION}, but it has none" in message
    assert message.count("\n") == 1
