"""The leakage check of written files: a clean project passes, and every planted leak is refused in one line."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from leakage_project import COLUMNS, REPOSITORY, SPLITS, clean, copied, run_checks

from perfcast import splits
from perfcast.config.predictor_conf import read_predictor
from perfcast.domains.servers import DOMAIN
from perfcast.evaluation.leakage import (
    Artifacts,
    Control,
    Run,
    check_leakage,
    leakage_errors,
    list_checks,
    shuffled_target,
)
from perfcast.experiment.leakage_control import read_leakage_conf
from perfcast.experiment.selection import predictor_factory
from perfcast.predictors.linear import Ridge
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Column, Kind, Role, build_table
from perfcast.schema.table_files import read_table
from perfcast.utils.errors import UserError
from perfcast.utils.io import write_text


def ridge():
    """Return the control of conf/leakage."""
    conf = read_predictor(REPOSITORY / "conf", "ridge")
    return predictor_factory(conf, conf.arguments("quick"), {})


def artifacts(table, folds, make, *, shuffles=10, runs=(), name="ridge", seed=0):
    given = {"table": table, "standard": table.columns, "splits": folds, "runs": runs}
    return Artifacts(**given, control=Control(name, make, shuffles), seed=seed)


def test_check_leakage_passes_a_clean_project(capsys):
    code, lines, written = run_checks(clean(), capsys)
    assert (code, lines) == (0, [])
    checks = {entry["check"].replace(" ", "_"): entry for entry in written["checks"]}
    assert sorted(checks) == sorted(check.name.replace(" ", "_") for check in list_checks(DOMAIN))
    for entry in checks.values():
        assert entry["findings"] == []
        assert entry["meaning"]
        assert entry["looked_at"]
    control = checks["shuffled_target"]["numbers"]
    assert control["control_error"] > 0.9 * control["chance_error"]
    assert control["better"] < control["shuffles"] == 10
    before = (clean() / "leakage.json").read_bytes()
    run_checks(clean(), capsys)
    assert (clean() / "leakage.json").read_bytes() == before


class Oracle(Predictor):
    """Predictor of the true score of every row: a leak in the control."""

    truth: dict

    def _fit(self, X, log_y, validation):
        pass

    def _predict(self, X):
        return np.log(X["id"].map(self.truth).to_numpy(dtype=float))[:, None]

    def _save(self, folder): ...

    def _load(self, folder): ...


def test_control_with_leaked_scores_is_reported():
    table = read_table(clean() / "features" / "generated.parquet")

    def make(seed):
        oracle = Oracle()
        oracle.truth = dict(zip(table.frame["id"], table.frame["score"], strict=True))
        return oracle

    folds = {name: pd.read_parquet(clean() / "splits" / f"{name}.parquet") for name in SPLITS}
    runs = (Run("random", "ridge", clean() / "runs" / "random" / "ridge"),)
    (error,) = leakage_errors(check_leakage(artifacts(table, folds, make, runs=runs, name="oracle")))
    words = "oracle, trained on shuffled scores of random, is better than the median in all 10 shuffles"
    assert words in str(error)


def check_small(table, make):
    return shuffled_target.check_shuffled_target(artifacts(table, {"random": splits.make("random", table, 0)}, make))


def clean_table(seed):
    """Return scores that are products of powers of four numbers, with noise and a tail; rows without a leak."""
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([120, 240]))
    numbers = {f"x{index}": np.exp(rng.normal(0, 1, rows)) for index in range(4)}
    logs = sum(rng.normal(0, 1) * np.log(values) for values in numbers.values())
    noise = rng.exponential(rng.uniform(0.01, 2), rows) * rng.choice([-1, 1])
    machine = [f"p{number}" for number in rng.integers(0, rows // 2, rows)]
    ids = [f"r{row}" for row in range(rows)]
    frame = pd.DataFrame({"id": ids, "part": machine, "suite": "one", **numbers, "score": np.exp(logs + noise)})
    columns = [column for column in COLUMNS if column.name in ("id", "part", "suite", "score")]
    columns += [Column(name, Kind.NUMERICAL, Role.FEATURE, "machine") for name in numbers]
    return build_table("clean", frame, columns)


def test_clean_small_tables_pass():
    """No false alarm in tables of 120 and 240 rows whose scores are skewed."""
    reports = [check_small(clean_table(seed), ridge()) for seed in range(12)]
    assert [report.findings for report in reports if report.findings] == []
    assert 2 < sum("fewer than 200 rows" in report.scope for report in reports) < 10
    better = [report.numbers["better"] for report in reports if report.numbers]
    assert max(better) >= 5, "a shuffle resembles the truth by chance, all ten do not"


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_leaks_into_small_tables_are_found(share):
    """Scores of a fifth of the rows reach the predictions of a ridge regression."""

    class Leaking(Ridge):
        def _predict(self, X):
            rng = np.random.default_rng(0)
            logs = super()._predict(X)
            leaked = rng.random(len(X)) < share
            return np.where(leaked[:, None], np.log(X["id"].map(truth).to_numpy(dtype=float))[:, None], logs)

    tables = [clean_table(seed) for seed in range(12)]
    findings = large = 0
    for table in [table for table in tables if len(table.frame) >= shuffled_target.MIN_ROWS]:
        truth = dict(zip(table.frame["id"], table.frame["score"], strict=True))
        findings, large = findings + bool(check_small(table, lambda seed: Leaking()).findings), large + 1
    assert findings >= 0.9 * large > 3


@pytest.mark.parametrize(
    ("known", "words"), [(10, "control_error"), (0, "no task of the test rows of random has training rows")]
)
def test_control_accepts_a_task_with_few_training_rows(monkeypatch, known, words):
    """As of a new device: drawn from all rows alike, its ten would be missing from the training rows."""
    monkeypatch.setattr(shuffled_target, "MAX_ROWS", 20)
    table = read_table(clean() / "features" / "generated.parquet")
    rows = len(table.frame)
    tasks, parts = np.array(["rate"] * rows, dtype=object), np.array(["train"] * rows, dtype=object)
    tasks[-100:], parts[-100 + known :] = "speed", "test"
    renamed = replace(table, frame=table.frame.assign(suite=tasks))
    folds = {"random": pd.DataFrame({"fold_0": parts})}
    check = shuffled_target.check_shuffled_target(artifacts(renamed, folds, ridge(), shuffles=2, seed=1))
    assert words in (check.numbers or check.scope)


def test_missing_table_gets_one_line(tmp_path, capsys):
    project = copied(tmp_path)
    (project / "runs" / "random" / "ridge" / "predictions.parquet").unlink()
    code, (line,), written = run_checks(project, capsys)
    assert (code, written) == (2, None)
    assert "run snakemake" in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("control: rigde\nshuffles: 10", "did you mean 'ridge'"),
        ("control: ridge", "'shuffles'"),
        ("control: ridge\nshuffles: 9", "'shuffles'"),
    ],
)
def test_invalid_control_gets_one_line_before_planning(tmp_path, text, words):
    write_text(tmp_path / "predictor" / "ridge.yaml", "")
    write_text(tmp_path / "leakage" / "default.yaml", text)
    with pytest.raises(UserError, match=words):
        read_leakage_conf(tmp_path)
    assert read_leakage_conf(REPOSITORY / "conf").control in {"ridge", "lightgbm"}, "a fast predictor"
