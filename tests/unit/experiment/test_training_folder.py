"""The folder of a training appears whole: whatever stops it leaves the old one, and nothing beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from leakage_project import machines

from perfcast import splits
from perfcast.experiment import training
from perfcast.experiment.training import TrainingJob, train_predictor
from perfcast.nn.embedding import TokenBatch
from perfcast.schema.table import Table
from perfcast.schema.table_files import write_table
from perfcast.tracking import RECORD
from perfcast.training.lightning_modules import Regression
from perfcast.utils.io import file_digests, sha256, write_text

REPOSITORY = Path(__file__).parents[3]


@cache
def inputs() -> tuple[Table, Path]:
    """Return a table and the folder of its files."""
    folder, table = Path(mkdtemp(prefix="perfcast-training-")), machines(300)
    write_table(table, folder / "table.parquet")
    split = splits.make("random", table, 0)
    split.assign(id=table.frame["id"]).to_parquet(folder / "folds.parquet", index=False)
    return table, folder


def train(out: Path, predictor: str = "nearest", **options: Any) -> Mapping[str, str]:
    """Train, and return the digests of the files of the run."""
    table, folder = inputs()
    job = TrainingJob("demo", "random", predictor, folder / "table.parquet", folder / "folds.parquet", out, **options)
    conf = yaml.safe_load((REPOSITORY / "conf" / "predictor" / f"{predictor}.yaml").read_text())
    conf["quick"] = {"epochs": 2, "min_steps": 0} if predictor == "mlp" else conf.get("quick", {})
    config: dict[str, Any] = {
        "dataset": {"name": "demo"},
        "split": "random",
        "predictor": conf,
        "preset": "quick",
        "seeds": [0],
        "trainer": {},
    }
    train_predictor(job, table, config)
    return file_digests(out)


STEPS = ["predict_rows", "write_explanation", "_report_progress", "write_text", "write_json"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("old", [True, False], ids=["again", "first"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["disk", "key"])
def test_a_training_that_stops_leaves_the_old_run_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, old: bool, error: BaseException
) -> None:
    if old:
        write_text(tmp_path / "run" / RECORD, "old")
    before = file_digests(tmp_path)

    def stop(*_: object, **__: object) -> None:
        assert {name: digest for name, digest in file_digests(tmp_path).items() if name.startswith("run/")} == before
        raise error

    monkeypatch.setattr(training, step, stop)
    with pytest.raises(type(error)):
        train(tmp_path / "run")
    assert file_digests(tmp_path) == before
    assert len(list(tmp_path.iterdir())) == old


def test_a_training_replaces_the_whole_run_by_equal_bytes(tmp_path: Path) -> None:
    first = train(tmp_path / "run")
    (tmp_path / "run" / "stale.txt").write_text("of an earlier version")
    shutil.rmtree(tmp_path / "run" / "model")
    assert train(tmp_path / "run") == first
    record = json.loads((tmp_path / "run" / RECORD).read_text())
    assert record["sha256"]["predictions"] == sha256(tmp_path / "run" / "predictions.parquet")
    assert record["sha256"]["table"] == sha256(inputs()[1] / "table.parquet")


def test_a_training_that_stopped_continues_from_its_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = train(tmp_path / "uninterrupted", "mlp")
    steps: list[int] = []
    step = Regression.training_step

    def count(self: Regression, batch: TokenBatch, index: int) -> Any:
        steps.append(index)
        return step(self, batch, index)

    monkeypatch.setattr(Regression, "training_step", count)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(training, "write_explanation", Mock(side_effect=KeyboardInterrupt))
        train(tmp_path / "run", "mlp", checkpoints=tmp_path / "checkpoints")
    assert steps and list((tmp_path / "checkpoints").glob("*/*.ckpt"))
    steps.clear()
    assert train(tmp_path / "run", "mlp", checkpoints=tmp_path / "checkpoints") == expected
    assert not steps
    assert not (tmp_path / "checkpoints").exists()
