"""Files of all stages for generated machines, made once for the tests of leakage checks, and the run of the checks."""

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
import yaml

from perfcast import splits
from perfcast.cli.main import main
from perfcast.config.predictor_conf import read_predictor
from perfcast.experiment.rolling import roll_run
from perfcast.experiment.selection import predictor_factory
from perfcast.experiment.training import fit_folds
from perfcast.schema.table import Column, Kind, Role, Tag, build_table
from perfcast.schema.table_files import read_table, write_table
from perfcast.utils.io import write_json

REPOSITORY = Path(__file__).parents[2]
SPLITS = ("random", "forward_2023", "rolling_2023")
PREDICTORS = {"nearest": (0,), "ridge": (0,), "random_forest": (0, 1)}
COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.ROW,)),
    Column("block", Kind.TEXT, Role.KEY, "provenance", tags=(Tag.BLOCK,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY, Tag.IDENTITY)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor", tags=(Tag.SCALING,)),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("memory_gb", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("os", Kind.CATEGORICAL, Role.FEATURE, "system"),
    Column("note", Kind.NUMERICAL, Role.FEATURE, "system"),
    Column("launched", Kind.DATE, Role.PROVENANCE, "processor"),
    Column("published", Kind.DATE, Role.PROVENANCE, "provenance", tags=(Tag.TIME,)),
    Column("peak", Kind.NUMERICAL, Role.PROVENANCE, "workload"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


def machines(rows=900):
    """Make results of ninety CPU models on two suites, with scores from cores, clock and a hidden factor."""
    rng = np.random.default_rng(0)
    block = np.arange(rows) // 3
    part = rng.integers(0, 90, rows // 3)[block]
    cores, mhz, hidden = (rng.choice(values, 90)[part] for values in ([8, 16, 32, 64], [2000, 2500, 3100], [1, 1.4]))
    month = pd.Timestamp("2019-01-01") + pd.to_timedelta((part // 15) * 365 + block % 300, unit="D")
    score = cores**0.8 * mhz * hidden * np.exp(rng.normal(0, 0.03, rows)) / 100
    frame = pd.DataFrame(
        {
            "id": [f"r{number:04d}" for number in range(rows)],
            "block": [f"b{number}" for number in block],
            "part": [f"p{number}" for number in part],
            "suite": np.where(np.arange(rows) % 2, "rate", "speed"),
            "cores": cores,
            "mhz": mhz,
            "memory_gb": rng.integers(1, 2000, rows),
            "os": rng.choice(["one", "two", None], rows),
            "note": rng.integers(0, 5, rows),
            "launched": pd.Series(month) - pd.DateOffset(months=3),
            "published": month,
            "peak": score * rng.uniform(1.0, 1.05, rows),
            "score": score,
        }
    )
    return build_table("generated", frame, COLUMNS)


@cache
def clean():
    """Return a temporary folder with the files of all stages for the generated machines."""
    folder, table = Path(mkdtemp(prefix="perfcast-leakage-")), machines()
    for stage in ("standard", "features"):
        write_table(table, folder / stage / "generated.parquet")
    for split in SPLITS:
        folds = splits.make(split, table, 0)
        path = folder / "splits" / f"{split}.parquet"
        path.parent.mkdir(exist_ok=True)
        folds.assign(id=table.frame["id"]).to_parquet(path, index=False)
        for predictor, seeds in PREDICTORS.items():
            if frozen := splits.frozen_split(split):
                _roll(folder / "runs" / frozen / predictor, folder / "runs" / split / predictor, table)
                continue
            conf = read_predictor(REPOSITORY / "conf", predictor)
            make = predictor_factory(conf, conf.arguments("quick"), {})
            run = folder / "runs" / split / predictor
            run.mkdir(parents=True)
            folds_of_run = list(fit_folds(table, folds, [make] * folds.shape[1], seeds, None, max_backtests=2))
            folds_of_run[0].predictor.save(run / "model")
            pd.concat([fold.test for fold in folds_of_run]).to_parquet(run / "predictions.parquet", index=False)
            folds_of_run[0].backtest.to_parquet(run / "backtest.parquet", index=False)
            about = {"dataset": {"name": "generated"}, "split": split, "predictor": {"name": predictor}}
            (run / "config.yaml").write_text(yaml.safe_dump(about))
            write_json(run / "validation.json", {"validation_mape": None})
            write_json(run / "record.json", {"split": split, "sha256": {}})
    return folder


def _roll(run, out, table):
    roll_run(run, out.parent.name, table, out)
    (out / "digests.sha256").unlink()  # leaks are planted in its files


def copied(folder):
    """Return a copy in which a leak may be planted."""
    return shutil.copytree(clean(), folder / "project")


def run_checks(project, capsys, predictors=tuple(PREDICTORS)):
    """Run the checks through the command line; return its exit code, its lines and what it wrote."""
    (project / "leakage.json").unlink(missing_ok=True)
    code = main(
        [
            "pipeline",
            "leakage",
            "generated",
            "--table",
            str(project / "features" / "generated.parquet"),
            "--standard",
            str(project / "standard" / "generated.parquet"),
            "--folds",
            str(project / "splits"),
            "--runs",
            str(project / "runs"),
            "--splits",
            *SPLITS,
            "--predictors",
            *predictors,
            "--out",
            str(project / "leakage.json"),
            "--project",
            str(REPOSITORY),
        ]
    )
    written = json.loads((project / "leakage.json").read_text()) if (project / "leakage.json").exists() else None
    return code, capsys.readouterr().err.splitlines(), written


def refused(project, capsys, *words_by_check):
    """Check for exit code 2, one line per finding, and the words of the named checks."""
    code, lines, written = run_checks(project, capsys)
    assert code == 2
    findings_by_check = {entry["check"]: entry["findings"] for entry in written["checks"]}
    assert len(lines) == sum(map(len, findings_by_check.values()))
    assert all(line.startswith("perfcast pipeline leakage: generated: ") for line in lines)
    for check, words in words_by_check:
        assert any(words in finding for finding in findings_by_check[check]), findings_by_check


def rewrite(path, change):
    frame = pd.read_parquet(path)
    changed = change(frame)
    (frame if changed is None else changed).to_parquet(path, index=False)


def change_table(project, change, stage="features"):
    path = project / stage / "generated.parquet"
    table = read_table(path)
    frame, columns = change(table.frame.copy(), list(table.columns))
    write_table(build_table("generated", frame, columns), path)


def as_feature(columns, name):
    return [replace(column, role=Role.FEATURE) if column.name == name else column for column in columns]
