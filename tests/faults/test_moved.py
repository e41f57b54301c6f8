"""A whole project that was moved: current as it was, its models and artifacts found, and able to go on."""

from pathlib import Path

import pytest
from killing import list_leftovers, results_of, tiny_project, undisturbed, unfinished_records
from small_project import call, change, rules_run

pytestmark = pytest.mark.faults


def test_moved_project_is_current_and_continues(tmp_path):
    first = tiny_project(tmp_path / "first place")
    _, expected = undisturbed(first)
    moved = tmp_path / "second place"
    first.rename(moved)
    assert "Nothing to be done" in call(moved, "snakemake", "--dry-run")
    assert results_of(moved) == expected
    # the next run finds every artifact of MLflow again, and needs none of it
    change(moved, resamples=21)
    assert not {"ingest", "standardize", "train"} & rules_run(call(moved, "snakemake"))
    assert not first.exists()
    assert list_leftovers(moved) == []
    assert unfinished_records(moved) == []

    import mlflow
    from mlflow import MlflowClient

    address = f"sqlite:///{moved}/results/mlflow/mlflow.db"
    client = MlflowClient(address)
    (experiment,) = [
        listed.experiment_id for listed in client.search_experiments() if listed.name == "perfcast/host_gemm"
    ]
    runs = client.search_runs([experiment], "tags.`perfcast.kind` = 'training'")
    assert len(runs) == 2
    for run in runs:
        names = [artifact.path for artifact in client.list_artifacts(run.info.run_id)]
        assert {"config.yaml", "predictions.parquet"} <= set(names)
        expected_file = moved / "results" / "runs" / "host_gemm" / "random" / run.data.tags["predictor"] / "config.yaml"
        downloaded = Path(client.download_artifacts(run.info.run_id, "config.yaml"))
        assert downloaded.read_bytes() == expected_file.read_bytes()
    mlflow.set_tracking_uri(address)
    mlflow.set_registry_uri(address)
    assert mlflow.pyfunc.load_model("models:/perfcast-host_gemm@champion")
