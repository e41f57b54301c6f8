"""The audit of written files: a clean project passes, and every planted leak is refused in one line."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from perfcast import plugins, splits
from perfcast.audit import Control, Evidence, Run, audit, complaints, shuffled_target
from perfcast.cli.audit import read_audit
from perfcast.cli.main import main
from perfcast.config import read_predictor
from perfcast.errors import UserError
from perfcast.experiment import makers, run_folds
from perfcast.io import write_json
from perfcast.predictors.base import Predictor
from perfcast.processors.cores import announced_index
from perfcast.schema import Column, Kind, Role, Tag, build_table
from perfcast.table_files import read_table, write_table

REPOSITORY = Path(__file__).parents[2]
SPLITS = ("random", "forward_2023")
PREDICTORS = {"lookup": (0,), "ridge": (0,), "random_forest": (0, 1)}
COLUMNS = (
    Column("id", Kind.TEXT, Role.KEY, "audit", tags=(Tag.ROW,)),
    Column("block", Kind.TEXT, Role.KEY, "audit", tags=(Tag.BLOCK,)),
    Column("part", Kind.CATEGORICAL, Role.KEY, "processor", tags=(Tag.ENTITY, Tag.IDENTITY)),
    Column("suite", Kind.CATEGORICAL, Role.FEATURE, "workload", tags=(Tag.TASK,)),
    Column("cores", Kind.NUMERICAL, Role.FEATURE, "processor", tags=(Tag.SCALING,)),
    Column("mhz", Kind.NUMERICAL, Role.FEATURE, "processor"),
    Column("memory_gb", Kind.NUMERICAL, Role.FEATURE, "memory"),
    Column("os", Kind.CATEGORICAL, Role.FEATURE, "system"),
    Column("note", Kind.NUMERICAL, Role.FEATURE, "system"),
    Column("launched", Kind.DATE, Role.PROVENANCE, "processor"),
    Column("published", Kind.DATE, Role.PROVENANCE, "audit", tags=(Tag.TIME,)),
    Column("peak", Kind.NUMERICAL, Role.PROVENANCE, "workload"),
    Column("score", Kind.NUMERICAL, Role.TARGET, "workload"),
)


def machines(rows=900):
    """Ninety parts on two suites: scores follow cores, clock and something nobody states; forty blocks a year."""
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


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """What the stages leave of the generated machines."""
    folder, table = tmp_path_factory.mktemp("clean"), machines()
    for stage in ("standard", "features"):
        write_table(table, folder / stage / "generated.parquet")
    for split in SPLITS:
        folds = splits.make(split, table, 0)
        path = folder / "splits" / f"{split}.parquet"
        path.parent.mkdir(exist_ok=True)
        folds.assign(id=table.frame["id"]).to_parquet(path, index=False)
        for predictor, seeds in PREDICTORS.items():
            conf = read_predictor(REPOSITORY / "conf", predictor)
            candidates = makers(conf, "quick", {})
            run = folder / "runs" / split / predictor
            run.mkdir(parents=True)
            told = list(run_folds(table, folds, lambda fold, own=candidates: own, seeds, None, most_rehearsals=2))
            told[0].predictor.save(run / "model")
            pd.concat([one.test for one in told]).to_parquet(run / "predictions.parquet", index=False)
            told[0].rehearsed.to_parquet(run / "rehearsals.parquet", index=False)
            about = {"dataset": {"name": "generated"}, "split": split, "predictor": {"name": predictor}}
            (run / "config.yaml").write_text(yaml.safe_dump(about))
    return folder


@pytest.fixture
def project(clean, tmp_path):
    """A copy in which a leak may be planted."""
    return shutil.copytree(clean, tmp_path / "project")


def look(project, capsys, predictors=tuple(PREDICTORS)):
    """Audit through the command line; return its exit code, its lines and what it wrote."""
    (project / "audit.json").unlink(missing_ok=True)
    code = main(
        [
            *("audit", "generated", "--table", str(project / "features" / "generated.parquet")),
            *("--standard", str(project / "standard" / "generated.parquet"), "--folds", str(project / "splits")),
            *("--runs", str(project / "runs"), "--splits", *SPLITS, "--predictors", *predictors),
            *("--resamples", "200", "--out", str(project / "audit.json"), "--project", str(REPOSITORY)),
        ]
    )
    written = json.loads((project / "audit.json").read_text()) if (project / "audit.json").exists() else None
    return code, capsys.readouterr().err.splitlines(), written


def refused(project, capsys, check, *words):
    """The audit ends with 2, each finding is one line, and the named check's own says what is wrong."""
    code, lines, written = look(project, capsys)
    assert code == 2
    found = {entry["check"]: entry["findings"] for entry in written["checks"]}
    assert len(lines) == sum(map(len, found.values()))
    assert all(line.startswith("perfcast audit: generated: ") and ", however: " in line for line in lines)
    said = " | ".join(found[check])
    for word in words:
        assert word in said, said
    return found


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
    return [
        Column(one.name, one.kind, Role.FEATURE if one.name == name else one.role, one.group, tags=one.tags)
        for one in columns
    ]


def test_a_clean_project_passes_and_every_check_tells_what_it_looked_at(clean, capsys):
    code, lines, written = look(clean, capsys)
    assert (code, lines) == (0, [])
    checks = {entry["check"].replace(" ", "_"): entry for entry in written["checks"]}
    assert sorted(checks) == plugins.names("audit")
    for entry in checks.values():
        assert entry["findings"] == []
        assert entry["meaning"]
        assert entry["looked_at"]
    assert "too few" not in checks["encoded_target"]["looked_at"]
    control = checks["shuffled_target"]["numbers"]
    assert control["control_mape"] > 0.9 * control["chance_mape"]
    assert control["difference_high"] > 0
    before = (clean / "audit.json").read_bytes()
    look(clean, capsys)
    assert (clean / "audit.json").read_bytes() == before


def test_a_block_on_both_sides(project, capsys):
    path = project / "splits" / "random.parquet"
    first = machines().frame

    def move(frame):
        blocks = first["block"].to_numpy()
        tested = np.flatnonzero((frame["fold_0"] == "test") & pd.Series(blocks).duplicated(keep=False).to_numpy())
        frame.loc[tested[0], "fold_0"] = "train"

    rewrite(path, move)
    refused(project, capsys, "split rules", "random: fold_0: 1 blocks both in train or valid and in test")


def test_equal_configurations_on_both_sides(project, capsys):
    parts = pd.read_parquet(project / "splits" / "random.parquet")["fold_0"]
    features = [column.name for column in COLUMNS if column.role is Role.FEATURE]

    def copy(frame, columns):
        one, other = np.flatnonzero(parts == "test")[0], np.flatnonzero(parts == "train")[0]
        frame.loc[one, features] = frame.loc[other, features]
        return frame, columns

    change_table(project, copy)
    refused(project, capsys, "split rules", "1 feature vectors both in train or valid and in test")


def test_a_split_whose_rows_are_in_another_order(project, capsys):
    rewrite(project / "splits" / "random.parquet", lambda frame: frame.iloc[::-1])
    code, lines, _ = look(project, capsys)
    assert code == 2
    assert any("the rows of the split random are not those of the features table" in line for line in lines)


def test_training_rows_from_the_future(project, capsys):
    def learn(frame):
        tested = machines().frame["published"].where(frame["fold_0"] == "test")
        frame.loc[tested.nlargest(6).index, "fold_0"] = "train"

    rewrite(project / "splits" / "forward_2023.parquet", learn)
    found = refused(project, capsys, "future dates", "6 training rows have published in or after 2023-")
    assert any("not known before 2023-01" in one for one in found["split rules"])


def test_facts_dated_after_the_cut(project, capsys):
    def late(frame, columns):
        frame["launched"] = pd.Timestamp("2024-07-01")
        return frame, columns

    change_table(project, late)
    refused(project, capsys, "future dates", "forward_2023 fold_0", "training rows have launched in or after")


def test_a_few_mistyped_dates_are_counted_and_no_leak(project, capsys):
    trained = pd.read_parquet(project / "splits" / "forward_2023.parquet")["fold_0"] == "train"

    def late(frame, columns):
        frame.loc[np.flatnonzero(trained)[:3], "launched"] = pd.Timestamp("2024-07-01")
        return frame, columns

    change_table(project, late)
    code, _, written = look(project, capsys)
    assert code == 0
    assert next(one for one in written["checks"] if one["check"] == "future dates")["numbers"]["late_facts"] == 3


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("note", lambda score: score),
        ("note", lambda score: -np.sqrt(score)),
        ("note", lambda score: (np.log(score) - 5.0) ** 2 + 1e-3 * score),
        ("os", lambda score: score.round(1).astype(str)),
    ],
    ids=["copy", "falling", "neither rising nor falling", "text"],
)
def test_a_feature_that_encodes_the_score(project, capsys, name, encode):
    def plant(frame, columns):
        frame[name] = encode(frame["score"])
        return frame, columns

    change_table(project, plant)
    refused(project, capsys, "encoded target", f"{name} leaves", "of a constant's error in")


def test_two_features_that_give_the_score_together(project, capsys):
    def plant(frame, columns):
        frame["note"] = frame["memory_gb"] ** 2 / frame["score"]
        return frame, columns

    change_table(project, plant)
    refused(project, capsys, "encoded target", "memory_gb with note leaves 0.0 %")


def test_a_provenance_that_became_a_feature(project, capsys):
    change_table(project, lambda frame, columns: (frame, as_feature(columns, "peak")))
    refused(project, capsys, "column roles", "peak is provenance in the standard table and a feature")


def test_a_model_that_reads_a_provenance(project, capsys):
    path = project / "runs" / "random" / "ridge" / "model" / "predictor.json"
    about = json.loads(path.read_text())
    about["columns"] = [{**one, "role": "feature"} if one["name"] == "peak" else one for one in about["columns"]]
    path.write_text(json.dumps(about))
    refused(project, capsys, "column roles", "ridge on random reads peak, which the table declares provenance")


def test_gains_announced_after_training_ended(project, capsys):
    model = project / "runs" / "forward_2023" / "ridge" / "model" / "law" / "law.json"
    write_json(model, {"terms": {"index": announced_index(pd.Timestamp("2021-12-01"))}})
    assert look(project, capsys)[0] == 0
    write_json(model, {"terms": {"index": announced_index(pd.Timestamp("2024-12-01"))}})
    refused(project, capsys, "announcements", "ridge on forward_2023: ", "gains that were not announced by 2022-")


def test_predicted_rows_that_are_no_test_rows(project, capsys):
    parts = pd.read_parquet(project / "splits" / "random.parquet")
    trained = parts.loc[parts["fold_0"] == "train", "id"].iloc[0]

    def swap(frame):
        frame.loc[0, "row"] = trained

    rewrite(project / "runs" / "random" / "ridge" / "predictions.parquet", swap)
    words = ("1 predictions of rows that are not in the fold's test part", "1 measured scores are not those")
    refused(project, capsys, "tested rows", *words)


def test_a_row_predicted_twice(project, capsys):
    path = project / "runs" / "random" / "ridge" / "predictions.parquet"
    rewrite(path, lambda frame: pd.concat([frame, frame.head(2)]))
    refused(project, capsys, "tested rows", "ridge on random: 2 rows are predicted twice")


def test_rehearsals_on_test_rows(project, capsys):
    tested = pd.read_parquet(project / "splits" / "forward_2023.parquet").query("fold_0 == 'test'")["id"].iloc[:4]

    def swap(frame):
        frame.loc[:3, "row"] = tested.to_numpy()

    rewrite(project / "runs" / "forward_2023" / "lookup" / "rehearsals.parquet", swap)
    refused(
        project, capsys, "rehearsed rows", "lookup on forward_2023: 4 rehearsed rows are test rows of the same fold"
    )


def test_one_predictors_forecasts_under_another_name(project, capsys):
    runs = project / "runs" / "random"
    shutil.copy(runs / "ridge" / "predictions.parquet", runs / "lookup" / "predictions.parquet")
    refused(project, capsys, "repeated runs", "lookup and ridge have equal predictions on random")


def test_a_run_folder_under_another_name(project, capsys):
    runs = project / "runs" / "random"
    shutil.copy(runs / "ridge" / "config.yaml", runs / "lookup" / "config.yaml")
    refused(project, capsys, "repeated runs", "says in its config.yaml that it is generated/random/ridge")


def test_seeds_that_make_no_difference(project, capsys):
    for split in SPLITS:
        path = project / "runs" / split / "random_forest" / "predictions.parquet"
        rewrite(path, lambda frame: pd.concat([frame[frame["seed"] == 0].assign(seed=seed) for seed in (0, 1)]))
    refused(project, capsys, "repeated runs", "random_forest has equal predictions under the seeds 0 and 1")


class Remembering(Predictor):
    """Answers with the true score of every row it can name: what no honest training could teach it."""

    truth: dict

    def _fit(self, X, log_y, valid):
        pass

    def _predict(self, X):
        return np.log(X["id"].map(self.truth).to_numpy(dtype=float))[:, None]


def test_a_control_that_knows_test_scores_past_training_is_noticed(clean):
    table = read_table(clean / "features" / "generated.parquet")

    def make(seed):
        one = Remembering()
        one.truth = dict(zip(table.frame["id"], table.frame["score"], strict=True))
        return one

    evidence = Evidence(
        table=table,
        standard=table.columns,
        splits={name: pd.read_parquet(clean / "splits" / f"{name}.parquet") for name in SPLITS},
        runs=(Run("random", "ridge", clean / "runs" / "random" / "ridge"),),
        stochastic=frozenset(),
        control=Control("remembering", make, 3),
        resamples=200,
        seed=0,
    )
    told = complaints(audit(evidence))
    assert len(told) == 1
    assert "remembering, trained on shuffled scores of random, is off by" in str(told[0])


@pytest.mark.parametrize(
    ("known", "words"), [(10, "control_mape"), (0, "no task that random asks about has training rows")]
)
def test_the_control_of_a_task_with_few_training_rows(clean, monkeypatch, known, words):
    """As of a new device: drawn from all rows alike, its ten would be missing from the training rows."""
    monkeypatch.setattr(shuffled_target, "MOST_ROWS", 20)
    table = read_table(clean / "features" / "generated.parquet")
    rows = len(table.frame)
    tasks, parts = np.array(["rate"] * rows, dtype=object), np.array(["train"] * rows, dtype=object)
    tasks[-100:], parts[-100 + known :] = "speed", "test"
    renamed = replace(table, frame=table.frame.assign(suite=tasks))
    found = shuffled_target.look(
        Evidence(
            table=renamed,
            standard=table.columns,
            splits={"random": pd.DataFrame({"fold_0": parts})},
            runs=(),
            stochastic=frozenset(),
            control=Control(
                "ridge", next(iter(makers(read_predictor(REPOSITORY / "conf", "ridge"), "quick", {}).values())), 2
            ),
            resamples=50,
            seed=1,
        )
    )
    assert words in (found.numbers or found.at)


def test_a_missing_table_is_told_in_one_line(project, capsys):
    (project / "runs" / "random" / "ridge" / "predictions.parquet").unlink()
    code, lines, written = look(project, capsys)
    assert (code, written) == (2, None)
    assert len(lines) == 1
    assert "run snakemake" in lines[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("control: rigde\nshuffles: 5", "did you mean 'ridge'"),
        ("control: ridge", "'shuffles'"),
        ("control: ridge\nshuffles: 0", "'shuffles'"),
    ],
)
def test_a_wrong_control_is_told_before_anything_is_planned(tmp_path, text, words):
    (tmp_path / "predictor").mkdir()
    (tmp_path / "predictor" / "ridge.yaml").touch()
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "default.yaml").write_text(text)
    with pytest.raises(UserError, match=words):
        read_audit(tmp_path)


def test_the_projects_own_control_is_known_and_fast():
    assert read_audit(REPOSITORY / "conf").control in {"ridge", "lightgbm"}
