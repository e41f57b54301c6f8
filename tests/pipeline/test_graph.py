"""Whole graph on generated inputs: complete, idempotent, reproducible, with a list of missing sources."""

import json
import re

import pandas as pd
import pytest
import yaml
from small_project import REPOSITORY, call, change, digests, restored, rules_run, run_snakemake, small_project

from perfcast.report.plots.drawing import plot_entry
from perfcast.schema.table_files import read_declarations

PREDICTORS = ["nearest", "ridge", "ncpp"]
EVERYTHING = yaml.safe_load((REPOSITORY / "params.yaml").read_text())


def whole_project(folder, **changed):
    """Write the default experiment on generated inputs: every dataset, source, kind of split and plot."""
    defaults = {name: EVERYTHING[name] for name in ("sources", "datasets", "splits", "plots")}
    defaults["splits"] = [split for split in defaults["splits"] if split != "forward_2023"]  # forward_2024 is as good
    made = small_project(folder, tracking=True, **{**defaults, "predictors": PREDICTORS, **changed})
    conf = made / "conf" / "predictor" / "ncpp.yaml"
    values = yaml.safe_load(conf.read_text())
    values["quick"]["min_steps"] = 8  # tables this small need no more
    conf.write_text(yaml.safe_dump(values, sort_keys=False))
    return made


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = whole_project(tmp_path_factory.mktemp("mini") / "project")
    (folder / "printed.txt").write_text(call(folder, "snakemake"))
    return folder


def test_a_run_prints_few_short_lines(project):
    """A person reads few lines in a pipe; the logs have what jobs said."""
    lines = (project / "printed.txt").read_text().splitlines()
    assert len(lines) < 150
    assert max(map(len, lines)) <= 200
    assert {"ingest", "train", "report"} <= rules_run("\n".join(lines))
    assert re.fullmatch(r"(\d+) of \1 jobs done in .*", lines[-1])
    assert "MAPE" in (project / "results/logs/train/spec_cpu2017/random/ridge.log").read_text()


def test_every_stage_leaves_valid_outputs(project):
    results = project / "results"
    for name in ("spec_cpu2017", "perfcastdb", "host_gemm"):
        quality = json.loads((results / "standard" / f"{name}.quality.json").read_text())
        assert quality["rows_in"] == quality["rows_kept"] + sum(quality["merged"].values()) + sum(
            quality["rejected"].values()
        )
        rejected = pd.read_csv(results / "standard" / f"{name}.rejected.csv")
        assert len(rejected) == sum(quality["rejected"].values())
        standard = {c["name"] for c in read_declarations(results / "standard" / f"{name}.parquet")["columns"]}
        features = {c["name"] for c in read_declarations(results / "features" / f"{name}.parquet")["columns"]}
        assert standard < features or name == "perfcastdb"
        assert (results / "champion" / name / "about.json").exists()
        assert (results / "model_cards" / f"{name}.md").read_text().startswith("# Model card: ")
    for run in (results / "runs").glob("*/*/*"):
        predictions = pd.read_parquet(run / "predictions.parquet")
        assert (predictions["predicted"] > 0).all(), run
        assert len(predictions), run
    metrics = json.loads((results / "metrics.json").read_text())
    assert set(metrics["spec_cpu2017"]) == {
        "random",
        "unseen_cpu",
        "forward_2024",
        "forward_2025",
        "rolling_2024",
        "rolling_2025",
    }
    assert set(metrics["spec_cpu2017"]["random"]) == set(PREDICTORS)
    report = (results / "report.html").read_text()
    assert "estimate" in report
    assert str(project) not in report


def test_results_contain_no_absolute_path(project):
    for path in (project / "results").rglob("*"):
        if path.suffix in {".json", ".yaml", ".csv", ".html"} and "mlflow" not in path.parts:
            assert str(project) not in path.read_text(), path


def test_mlflow_has_one_finished_run_per_training(project):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{project}/results/mlflow/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("perfcast/spec_cpu2017").experiment_id])
    assert {run.info.status for run in runs} == {"FINISHED"}
    kinds = pd.Series([run.data.tags["perfcast.kind"] for run in runs]).value_counts()
    assert kinds.to_dict() == {
        "training": 6 * len(PREDICTORS),
        "champion": 1,
    }
    training = next(
        r for r in runs if r.data.tags.get("predictor") == "ncpp" and r.data.tags["perfcast.kind"] == "training"
    )
    assert training.data.metrics["mape"] > 0
    assert {"medape", "coverage", "width", "seconds", "memory_mib"} <= set(training.data.metrics)
    assert any(name.startswith("training/") for name in training.data.metrics)
    champion = client.get_model_version_by_alias("perfcast-spec_cpu2017", "champion")
    assert int(champion.version) == 1


def test_snakemake_report_shows_every_plot_with_its_caption(project, tmp_path):
    page = tmp_path / "report.html"
    call(project, "snakemake", "--report", str(page))
    shown = page.read_text()
    drawn = {path.stem for path in (project / "results" / "plots").rglob("*.svg")}
    assert {"headline", "coverage"} <= drawn
    for name in drawn:
        plot = plot_entry(name)
        assert json.dumps(plot.title) in shown
        assert json.dumps(plot.caption.split(".")[0])[1:-1] in shown.replace(r"\n", " "), name


def test_champion_predicts_with_and_without_mlflow(project):
    import mlflow

    import perfcast

    part = pd.read_parquet(project / "results" / "champion" / "spec_cpu2017" / "reference_data" / "measured.parquet")
    machines = pd.DataFrame({"processor": part["cpu_model"].dropna().unique()[:3], "chips": 1.0})
    direct = perfcast.predict(machines, project / "results" / "champion" / "spec_cpu2017", neighbors=0, explain=False)
    mlflow.set_tracking_uri(f"sqlite:///{project}/results/mlflow/mlflow.db")
    model = mlflow.pyfunc.load_model("models:/perfcast-spec_cpu2017@champion")
    served = model.predict(machines)
    assert len(served) == 12
    refused = model.predict(machines.assign(processor="Zeus 1"))
    assert len(refused) == 3
    assert set(refused["status"]) == {"refused"}
    assert refused["message"].str.startswith("processor must be a known CPU model").all()
    pd.testing.assert_frame_equal(served, direct.to_frame(), rtol=1e-6)


def test_second_run_does_nothing(project):
    output = call(project, "snakemake")
    assert "Nothing to be done" in output


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("raw/host_gemm/manifest.json", "ingest"),
        ("standard/host_gemm.quality.json", "standardize"),
        ("splits/host_gemm/random.parquet", "split"),
        ("runs/host_gemm/random/ridge/validation.json", "train"),
        ("described/spec_cpu2017.parquet", "described"),
        ("plots/host_gemm", "plots"),
        ("model_cards", "report"),
    ],
)
def test_removed_outputs_are_made_again(project, name, rule):
    path = project / "results" / name
    away = project / "away"
    path.rename(away)
    try:
        planned = rules_run(call(project, "snakemake", "--dry-run"))
    finally:
        away.rename(path)
    assert rule in planned


@pytest.mark.parametrize(
    ("values", "again", "untouched"),
    [
        ({"resamples": 60}, {"evaluate", "plots", "metrics", "report"}, {"train", "standardize", "ingest"}),
        ({"split_seed": 7}, {"split", "train", "evaluate"}, {"ingest", "standardize"}),
        ({"seeds": [5]}, {"train", "champion", "evaluate"}, {"standardize", "split"}),
    ],
)
def test_changed_parameter_reruns_its_dependents(project, values, again, untouched):
    with restored(project / "params.yaml"):
        change(project, **values)
        output = call(project, "snakemake", "--dry-run")
    planned = rules_run(output)
    assert again <= planned
    assert not untouched & planned
    # those of SPEC CPU2026 are of the champion of SPEC CPU2017, which may change
    made = re.findall(r"output: results/features/(\w+)\.", output)
    assert set(made) <= {"spec_cpu2026"}


def test_changed_predictor_reruns_its_trainings_only(project):
    path = project / "conf" / "predictor" / "ridge.yaml"
    with restored(path):
        path.write_text(path.read_text().replace("clip: 1.0", "clip: 2.0"))
        output = call(project, "snakemake", "--dry-run")
    trained = [line for line in output.splitlines() if "predictions.parquet" in line and "output:" in line]
    # those of SPEC CPU2026 read estimates of the champion of SPEC CPU2017, which may change
    trained = [line for line in trained if "/spec_cpu2026/" not in line]
    assert trained
    assert all("/ridge/" in line for line in trained)


def test_clean_runs_give_equal_bytes(project, tmp_path):
    other = whole_project(tmp_path / "again")
    runs = ["spec_cpu2017/forward_2024/ncpp", "perfcastdb/published/ridge"]
    # processes that start warm have one order of sets, others have orders of their own
    call(other, "snakemake", *[f"results/runs/{run}/predictions.parquet" for run in runs], cold=True)
    parts = ["raw", "standard", "features", *[f"runs/{run}" for run in runs]]
    second, first = digests(other, *parts), digests(project, *parts)
    assert len(second) > 20
    assert {name: first.get(name) for name in second} == second


def test_dry_run_of_an_empty_project_lists_the_jobs_of_every_dataset(tmp_path):
    folder = whole_project(tmp_path / "empty", mirrors=[], network=True, predictors=["nearest"])
    planned = call(folder, "snakemake", "--dry-run")
    for dataset in ("spec_cpu2017", "perfcastdb", "host_gemm"):
        assert f"output: results/champion/{dataset}\n" in planned
    # a rolling split alone needs the trainings of its forward split
    change(folder, splits=["random", "published", "rolling_2024", "forward_2026_05"])
    planned = call(folder, "snakemake", "--dry-run")
    assert "input: results/features/spec_cpu2017.parquet, results/splits/spec_cpu2017/forward_2024.parquet" in planned
    # what cannot be had without the network is not planned
    change(folder, network=False)
    planned = call(folder, "snakemake", "--dry-run")
    assert "output: results/champion/host_gemm\n" in planned
    assert "results/champion/spec_cpu2017" not in planned


def test_another_mirror_ingests_no_present_source_again(project):
    with restored(project / "params.yaml"):
        change(project, mirrors=["elsewhere"], network=True)
        planned = rules_run(call(project, "snakemake", "--dry-run"))
    assert planned <= {"report", "record", "all"}


def test_the_snakefile_of_the_workflow_catalog_runs_the_same_in_a_folder_with_a_space(tmp_path):
    folder = small_project(tmp_path / "a project")
    plans = [call(folder, "snakemake", "--dry-run", *which) for which in ([], ["-s", "workflow/Snakefile"])]
    assert rules_run(plans[0]) - {"all"} == rules_run(plans[1]) - {"default"}
    call(folder, "snakemake", "results/standard/host_gemm.parquet")
    assert "standardize" not in rules_run(call(folder, "snakemake", "--dry-run"))


def test_run_without_sources_uses_the_embedded_dataset_and_lists_the_missing(tmp_path):
    splits = ["random", "published", "forward_2026_05"]
    folder = whole_project(tmp_path / "alone", mirrors=[], predictors=["nearest"], splits=splits)
    output = call(folder, "snakemake")
    assert "dataset spec_cpu2017 is left out" in output
    assert "restore data/embedded of the repository" in output
    metrics = json.loads((folder / "results" / "metrics.json").read_text())
    assert set(metrics) == {"host_gemm"}
    assert "spec_cpu2017" in (folder / "results" / "report.html").read_text()
    # a mirror that appears later is noticed by a plain run
    change(folder, mirrors=["mirror"])
    assert "ingest" in rules_run(call(folder, "snakemake", "--dry-run"))


def test_strict_run_fails_on_a_missing_source(tmp_path):
    folder = whole_project(tmp_path / "strict", mirrors=[], strict=True, predictors=["nearest"])
    code, output = run_snakemake(folder)
    assert code != 0
    assert "must be there, but" in output
    assert "Traceback" not in output
    # what could be had is there whole, what could not left nothing behind
    for manifest in (folder / "results" / "raw").glob("*/manifest.json"):
        assert json.loads(manifest.read_text())["status"] == "present"
