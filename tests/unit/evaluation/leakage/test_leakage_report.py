"""The leakage check of written files: a clean project passes, and every planted leak is refused in one line."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from leakage_project import (
    COLUMNS,
    REPOSITORY,
    SPLITS,
    clean,
    copied,
    run_checks,
)

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
from perfcast.experiment.selection import predictor_factories
from perfcast.predictors.linear import Ridge
from perfcast.predictors.predictor import Predictor
from perfcast.schema.table import Column, Kind, Role, build_table
from perfcast.schema.table_files import read_table
from perfcast.utils.errors import UserError


@pytest.fixture
def project(tmp_path):
    return copied(tmp_path)


def test_check_leakage_passes_a_clean_project(capsys):
    code, lines, written = run_checks(clean(), capsys)
    assert (code, lines) == (0, [])
    checks = {entry["check"].replace(" ", "_"): entry for entry in written["checks"]}
    assert sorted(checks) == sorted(check.name.replace(" ", "_") for check in list_checks(DOMAIN))
    for entry in checks.values():
        assert entry["findings"] == []
        assert entry["meaning"]
        assert entry["looked_at"]
    assert "too few" not in checks["encoded_target"]["looked_at"]
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

    artifacts = Artifacts(
        table=table,
        standard=table.columns,
        splits={name: pd.read_parquet(clean() / "splits" / f"{name}.parquet") for name in SPLITS},
        runs=(Run("random", "ridge", clean() / "runs" / "random" / "ridge"),),
        stochastic=frozenset(),
        control=Control("oracle", make, 10),
        seed=0,
    )
    errors = leakage_errors(check_leakage(artifacts))
    assert len(errors) == 1
    assert "oracle, trained on shuffled scores of random, is better than the median in all 10 shuffles" in str(
        errors[0]
    )


def small_artifacts(table, make, shuffles=10):
    folds = splits.make("random", table, 0)
    return Artifacts(
        table=table,
        standard=table.columns,
        splits={"random": folds},
        runs=(),
        stochastic=frozenset(),
        control=Control("ridge", make, shuffles),
        seed=0,
    )


def clean_table(seed):
    """Return scores that are products of powers of four numbers, with noise and a tail; rows without a leak."""
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([120, 240]))
    numbers = {f"x{index}": np.exp(rng.normal(0, 1, rows)) for index in range(4)}
    logs = sum(rng.normal(0, 1) * np.log(values) for values in numbers.values())
    noise = rng.exponential(rng.uniform(0.01, 2), rows) * rng.choice([-1, 1])
    machine = [f"p{number}" for number in rng.integers(0, rows // 2, rows)]
    frame = pd.DataFrame(
        {
            "id": [f"r{row}" for row in range(rows)],
            "part": machine,
            "suite": "one",
            **numbers,
            "score": np.exp(logs + noise),
        }
    )
    columns = [column for column in COLUMNS if column.name in ("id", "part", "suite", "score")]
    columns += [Column(name, Kind.NUMERICAL, Role.FEATURE, "machine") for name in numbers]
    return build_table("clean", frame, columns)


def test_clean_small_tables_pass():
    """No false alarm in tables of 120 and 240 rows whose scores are skewed."""
    make = next(iter(predictor_factories(read_predictor(REPOSITORY / "conf", "ridge"), "quick", {}).values()))
    reports = [shuffled_target.check_shuffled_target(small_artifacts(clean_table(seed), make)) for seed in range(60)]
    assert [report.findings for report in reports if report.findings] == []
    assert 15 < sum("fewer than 200 rows" in report.scope for report in reports) < 45
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

    findings = 0
    for seed in range(20):
        table = clean_table(seed)
        truth = dict(zip(table.frame["id"], table.frame["score"], strict=True))
        findings += bool(shuffled_target.check_shuffled_target(small_artifacts(table, lambda seed: Leaking())).findings)
    large = sum(len(clean_table(seed).frame) >= shuffled_target.MIN_ROWS for seed in range(20))
    assert findings >= 0.9 * large


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
    check = shuffled_target.check_shuffled_target(
        Artifacts(
            table=renamed,
            standard=table.columns,
            splits={"random": pd.DataFrame({"fold_0": parts})},
            runs=(),
            stochastic=frozenset(),
            control=Control(
                "ridge",
                next(iter(predictor_factories(read_predictor(REPOSITORY / "conf", "ridge"), "quick", {}).values())),
                2,
            ),
            seed=1,
        )
    )
    assert words in (check.numbers or check.scope)


def test_missing_table_gets_one_line(project, capsys):
    (project / "runs" / "random" / "ridge" / "predictions.parquet").unlink()
    code, lines, written = run_checks(project, capsys)
    assert (code, written) == (2, None)
    assert len(lines) == 1
    assert "run snakemake" in lines[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("control: rigde\nshuffles: 10", "did you mean 'ridge'"),
        ("control: ridge", "'shuffles'"),
        ("control: ridge\nshuffles: 9", "'shuffles'"),
    ],
)
def test_invalid_control_gets_one_line_before_planning(tmp_path, text, words):
    (tmp_path / "predictor").mkdir()
    (tmp_path / "predictor" / "ridge.yaml").touch()
    (tmp_path / "leakage").mkdir()
    (tmp_path / "leakage" / "default.yaml").write_text(text)
    with pytest.raises(UserError, match=words):
        read_leakage_conf(tmp_path)


def test_configured_control_is_a_fast_predictor():
    assert read_leakage_conf(REPOSITORY / "conf").control in {"ridge", "lightgbm"}
