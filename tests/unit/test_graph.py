"""Facts for the Snakemake rules: what they plan for a dataset, and what makes a job run again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfcast.config.conf_files import read_yaml
from perfcast.data.sources.locations import embedded_folder
from perfcast.experiment.workflow_graph import Graph, remove_unfinished
from perfcast.utils.errors import UserError
from perfcast.utils.io import atomic_path

ROOT = Path(__file__).parents[2]
EMBEDDED = embedded_folder(ROOT)


def graph(**values):
    return Graph.read(ROOT, {**read_yaml(ROOT / "params.yaml"), **values})


def test_a_dataset_has_the_splits_and_predictors_that_it_supports():
    plan = graph(
        datasets=["help_ofa", "host_gemm"],
        sources=["help", "host_gemm"],
        splits=["published", "random"],
        predictors=["nearest", "help_maml", "mlp"],
    )
    assert plan.splits_of("host_gemm") == ["random"]
    assert plan.splits_of("help_ofa") == ["published"]
    assert plan.predictors_of("help_ofa") == ["nearest", "help_maml"]
    assert plan.predictors_of("host_gemm") == ["nearest", "help_maml", "mlp"]
    assert plan.sources_of("host_gemm") == ["host_gemm"]


def test_only_predictors_with_randomness_train_once_per_seed():
    plan = graph(seeds=[0, 1], predictors=["ridge", "mlp"], preset="full")
    assert (plan.seeds_of("ridge"), plan.seeds_of("mlp")) == ([0], [0, 1])
    assert plan.minutes_of_training("mlp") == 2 * plan.minutes_of_training("ridge")
    assert graph(predictors=["mlp"], preset="quick").minutes_of_training("mlp") < plan.minutes_of_training("ridge")


def test_a_tuned_split_uses_its_values_and_a_learning_curve_split_those_of_its_base():
    plan = graph(predictors=["mac"], preset="full")
    (tuned,), hidden = plan.settings_of("spec_cpu2017", "forward_2023", "mac")
    assert set(tuned) == {"tuned"}
    assert hidden == []
    assert plan.settings_of("spec_cpu2017", "forward_2023_last_1_year", "mac")[0] == [tuned]
    assert set(plan.settings_of("spec_cpu2017", "random", "mac")[0]) == {"params"}


def test_options_of_stages_follow_from_the_experiment():
    assert graph(mirrors=["a", "b"], strict=True, network=False).ingest_options() == (
        "--mirror a --mirror b --strict --offline"
    )
    assert graph(mirrors=[], network=True).ingest_options() == ""
    plan = graph(published_until="2024-11")
    assert plan.standardize_options("spec_cpu2017") == "--published-until 2024-11"
    assert plan.standardize_options("host_gemm") == ""


def test_a_digest_of_code_depends_on_the_plug_ins_that_are_loaded():
    plan = graph()
    assert plan.code("train", plan.predictor_module("ridge")) == plan.code("train", "predictors.linear")
    assert plan.code("train", plan.predictor_module("ridge")) != plan.code("train", plan.predictor_module("mlp"))
    assert plan.conf_digest("predictor", "ridge") != plan.conf_digest("predictor", "lasso")
    assert plan.embedded_digest("spec_cpu2017", EMBEDDED) == ""
    assert len(plan.embedded_digest("host_gemm", EMBEDDED)) == 16


def test_available_datasets_are_those_of_the_experiment(tmp_path):
    path = tmp_path / "available.json"
    assert graph().read_available(path) == []
    path.write_text(json.dumps({"datasets": ["host_gemm", "gpperf"], "left_out": {}}))
    assert graph().read_available(path) == ["host_gemm"]


def test_a_source_is_at_hand_as_it_was_when_it_was_ingested(tmp_path):
    plan = graph(mirrors=[])
    manifest, origin = tmp_path / "manifest.json", tmp_path / "origin.json"
    assert plan.is_at_hand(manifest, origin, lambda: plan.is_local("host_gemm", {}))
    manifest.write_text('{"status": "present"}')
    origin.write_text('{"at_hand": false}')
    assert not plan.is_at_hand(manifest, origin, lambda: True)
    manifest.write_text('{"status": "missing"}')
    assert plan.is_at_hand(manifest, origin, lambda: True)


def test_temporary_files_of_killed_jobs_are_removed_and_others_stay(tmp_path):
    for name in (".a.abcdefgh.parquet", "runs/.b.12345678.csv", "mlflow/.c.abcdefgh.db"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with atomic_path(tmp_path / "mine.csv") as temporary:
        temporary.touch()
        removed = remove_unfinished(tmp_path)
        assert temporary.exists()
    assert sorted(path.name for path in removed) == [".a.abcdefgh.parquet", ".b.12345678.csv"]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [".c.abcdefgh.db", "mine.csv"]


def test_a_wrong_experiment_is_one_line():
    with pytest.raises(UserError, match="did you mean 'ridge'"):
        graph(predictors=["ridgee"])
