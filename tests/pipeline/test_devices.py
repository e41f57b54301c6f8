"""`perfcast pipeline train` on two devices, of one node and of two: predictions of one device, recorded once."""

import subprocess

import numpy as np
import pandas as pd
import pytest
from small_project import call, environment, located, small_project

pytestmark = pytest.mark.slow
TABLES = ("results/features/host_gemm.parquet", "results/splits/host_gemm/random.parquet")
PATIENCE = 1800  # seconds


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = small_project(tmp_path_factory.mktemp("devices") / "project", tracking=True, predictors=["nearest", "mlp"])
    call(folder, "snakemake", *TABLES)
    return folder


def train(project, out, trainer, *environments, cold=False):
    """Start one training command for each environment and wait for all of them."""
    # processes have noise of their own, so that only a network without any compares
    quiet = {"+predictor.params.dropout": 0.0, "+predictor.params.mask_rate": 0.0, "predictor.quick.min_steps": 20}
    settings = {**quiet, "trainer.accelerator": "cpu", "tracking.live": "true", **trainer}
    command = [
        "perfcast", "pipeline", "train", "dataset=host_gemm", "split=random", "predictor=mlp", f"out=results/{out}/mlp",
        "preset=quick", *(f"{key}={value}" for key, value in settings.items()),
    ]  # fmt: skip
    variables = {**environment(project, cold=cold), "MLFLOW_TRACKING_URI": f"sqlite:///{project}/{out}.db"}
    started = [
        subprocess.Popen(
            located(command, variables), cwd=project, env={**variables, **more}, stderr=subprocess.PIPE, text=True
        )
        for more in environments or ({},)
    ]
    outputs = [process.communicate(timeout=PATIENCE)[1] for process in started]
    assert [process.returncode for process in started] == [0] * len(started), "\n".join(outputs)
    return outputs


def read_predictions(project, out):
    return pd.read_parquet(project / "results" / out / "mlp" / "predictions.parquet")["predicted"].to_numpy()


def recorded(project, out):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{project}/{out}.db")
    experiment = client.get_experiment_by_name("perfcast/host_gemm").experiment_id
    return client.search_runs([experiment], "tags.`perfcast.kind` = 'training'")


@pytest.fixture(scope="module")
def alone(project):
    train(project, "alone", {})
    return read_predictions(project, "alone")


def test_two_devices_predict_as_one(project, alone):
    (output,) = train(project, "devices", {"trainer.devices": 2, "trainer.strategy": "ddp"}, cold=True)
    np.testing.assert_allclose(read_predictions(project, "devices"), alone, rtol=1e-3)
    assert output.count("test MAPE") == 1
    assert "distributed" not in output
    assert len(recorded(project, "devices")) == 1
