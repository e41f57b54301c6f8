"""Facts for the Snakemake rules: what they plan for a dataset, and what makes a job run again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from perfcast import code_hash
from perfcast.cli.pipeline import STAGES
from perfcast.config.conf_files import read_yaml
from perfcast.experiment.workflow_graph import Graph, Means, SourceStatus, plan_source
from perfcast.ops.jobs import remove_unfinished
from perfcast.utils.io import atomic_path

ROOT = Path(__file__).parents[2]


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


def test_only_predictors_with_randomness_train_once_per_seed():
    only = {"datasets": ["host_gemm"]}
    plan = graph(**only, seeds=[0, 1], predictors=["ridge", "mlp"], preset="full")
    assert (plan.seeds_of("ridge"), plan.seeds_of("mlp")) == ([0], [0, 1])
    assert plan.minutes_of_training("mlp") == 2 * plan.minutes_of_training("ridge")
    assert graph(**only, predictors=["mlp"], preset="quick").minutes_of_training("mlp") < plan.minutes_of_training(
        "ridge"
    )


def test_options_of_stages_follow_from_the_experiment():
    assert graph(mirrors=["a", "b"], strict=True, network=False).ingest_options() == (
        "--mirror a --mirror b --strict --offline"
    )
    assert graph(mirrors=[], network=True).ingest_options() == ""
    plan = graph(split_seed=7)
    files = {"split": "random", "table": "t.parquet", "out": "s.parquet"}
    words = [STAGES["split"].words({**plan.arguments(name), **files}) for name in ("spec_cpu2017", "host_gemm")]
    common = ["random", "--table", "t.parquet", "--out", "s.parquet", "--seed", "7"]
    assert words == [[*common, "--until", "2026-03"], common]
    assert "seeds=[0]" in plan.training("host_gemm", "random", "ridge")


def test_a_digest_of_code_depends_on_the_plug_ins_that_are_loaded():
    plan = graph()
    assert plan.code("train", *plan.modules_of("ridge")) == plan.code("train", "perfcast.predictors.linear")
    assert plan.code("train", *plan.modules_of("ridge")) != plan.code("train", *plan.modules_of("mlp"))
    assert plan.conf_digest("predictor", "ridge") != plan.conf_digest("predictor", "lightgbm")
    assert plan.embedded_digest("help") == "" and len(plan.embedded_digest("spec_cpu2017")) == 16
    assert len(plan.embedded_digest("host_gemm")) == 16


def code_of_stages(dataset, *sources):
    """Return the digests of code of every stage of an experiment with one dataset, by stage."""
    plan = graph(datasets=[dataset], sources=list(sources))
    names = ("in_domain", "split", "evaluate", "plots", "available", "metrics", "headline", "report", "record")
    predictors = plan.predictor_modules(dataset)
    return {
        **{name: plan.code(name) for name in names},
        **{name: plan.code(name, *predictors) for name in ("train", "leakage", "champion", "described")},
        "standardize": plan.code("standardize", plan.datasets[dataset].module),
        "features": plan.code("features", *plan.feature_modules(dataset)),
    }


def forget_code():
    """Look at the files again, as the next process does."""
    for function in (code_hash.module_path, code_hash._parse, code_hash._stored):
        function.cache_clear()


def test_an_edit_runs_the_stages_that_import_it_and_no_other(tmp_path, monkeypatch):
    root = shutil.copytree(ROOT / "src" / "perfcast", tmp_path / "perfcast")
    monkeypatch.setattr(code_hash, "_ROOT", root)
    monkeypatch.setattr(code_hash, "_folders", lambda: {"perfcast": root})
    names = ("hybrid_trees", "composition_ensemble", "random_forest", "ridge")

    def training_code():
        forget_code()
        plan = graph()
        return {(name, plan.code("train", *plan.modules_of(name), datasets=[])) for name in names}

    before = training_code()
    for module, trained_again in {
        "predictors/trees.py": {"hybrid_trees", "composition_ensemble", "random_forest"},
        "predictors/residual_stack.py": {"hybrid_trees", "composition_ensemble"},
        "predictors/roofline.py": {"composition_ensemble"},
        "domains/servers/predictors/shift_weights.py": {"hybrid_trees"},
    }.items():
        text = (root / module).read_text()
        (root / module).write_text(f"{text}\nEDITED = True\n")
        assert {name for name, _ in training_code() - before} == trained_again, module
        (root / module).write_text(text)
    servers = ("spec_cpu2017", "spec_cpu2017")
    llm = ("llm_serving", "aiconfigurator", "aiconfigurator_operators")
    forget_code()
    of_servers, of_llm = code_of_stages(*servers), code_of_stages(*llm)
    for path in (root / "domains" / "llm").rglob("*.py"):
        path.write_text(f"{path.read_text()}\nEDITED = True\n")
    forget_code()
    assert code_of_stages(*servers) == of_servers
    assert dict(of_llm.items() & code_of_stages(*llm).items()).keys() == {"available"}
    forget_code()


def test_available_datasets_are_those_of_the_experiment(tmp_path):
    path = tmp_path / "available.json"
    assert graph().read_available(path) == []
    path.write_text(json.dumps({"datasets": ["host_gemm", "gpperf"], "left_out": {}}))
    assert graph().read_available(path) == ["host_gemm"]


@pytest.mark.parametrize(
    ("status", "recorded", "means", "planned"),
    [
        (None, None, (True, False, False), "PRESENT"),
        (None, None, (False, True, False), "UNKNOWN"),
        (None, None, (False, False, False), "MISSING"),
        (None, None, (False, False, True), "PRESENT"),  # the run stops at its ingestion
        ("present", (False, True, False), (False, False, False), "PRESENT"),
        ("missing", (False, True, False), (False, True, False), "MISSING"),
        ("missing", (False, False, False), (False, True, False), "UNKNOWN"),
        ("missing", (False, True, False), (True, True, False), "PRESENT"),
        ("missing", (True, True, False), (True, True, False), "MISSING"),  # files with another checksum
    ],
)
def test_the_status_of_a_source_follows_from_its_manifest_and_its_means(tmp_path, status, recorded, means, planned):
    manifest, origin = tmp_path / "manifest.json", tmp_path / "origin.json"
    if status:
        manifest.write_text(json.dumps({"status": status}))
        origin.write_text(json.dumps(dict(zip(("at_hand", "network", "strict"), recorded, strict=True))))
    plan = plan_source(manifest, origin, lambda: means[0], network=means[1], strict=means[2])
    assert plan.status is SourceStatus[planned]
    # an ingestion that is current is not repeated, one that may end otherwise is
    again = plan.means != Means(*recorded) if status else True
    assert again == (status is None or (status == "missing" and recorded != means))


def test_a_source_that_was_pulled_is_present_with_the_same_means_everywhere(tmp_path):
    (tmp_path / "manifest.json").write_text('{"status": "present"}')
    files = (tmp_path / "manifest.json", tmp_path / "none.json")
    plans = [plan_source(*files, lambda: True, network=network, strict=False) for network in (True, False)]
    assert plans[0] == plans[1] and plans[0].status is SourceStatus.PRESENT


def test_a_dataset_is_available_unless_a_required_source_is_missing():
    plan = graph()
    status = dict.fromkeys(plan.params.sources, SourceStatus.PRESENT)
    assert plan.available(status) == plan.params.datasets
    status |= {"perfcastdb": SourceStatus.MISSING, "spec_cpu2017": SourceStatus.UNKNOWN}
    assert plan.available(status) == ["spec_cpu2017", "spec_cpu2026", "host_gemm"]


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
