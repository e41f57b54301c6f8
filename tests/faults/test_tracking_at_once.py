"""Eight live records at once in one sqlite store."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.faults
RECORDER = """
import sys
from pathlib import Path
from perfcast import tracking
from perfcast.tracking.run import start_run
folder, number = Path(sys.argv[1]), sys.argv[2]
store = tracking.Store(f"sqlite:///{folder}/mlflow.db", folder / "artifacts", "now")
run = start_run(tracking.open_client(store), store, "perfcast/demo", f"job {number}", {"job": number})
for step in range(200):
    run.log_metrics({"loss": step + int(number) / 10, "other": 1.0}, step)
"""


def test_parallel_recording_loses_no_value(tmp_path):
    from mlflow import MlflowClient

    jobs = [
        subprocess.Popen([sys.executable, "-c", RECORDER, str(tmp_path), str(n)], stderr=subprocess.PIPE, text=True)
        for n in range(8)
    ]
    output = "".join(job.communicate(timeout=900)[1] for job in jobs)
    assert [job.returncode for job in jobs] == [0] * 8, output
    client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.get_experiment_by_name("perfcast/demo").experiment_id
    runs = client.search_runs([experiment], "tags.job LIKE '%'")
    assert len(runs) == 8
    for run in runs:
        values = [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, "loss")]
        assert sorted(values) == [(step, step + int(run.data.tags["job"]) / 10) for step in range(200)]
