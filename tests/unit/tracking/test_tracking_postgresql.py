"""Records in PostgreSQL: what sqlite holds, from several jobs. Needs Debian's postgresql and psycopg2."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest

from perfcast import tracking

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
pytest.importorskip("psycopg2", reason="needs the extra: pip install -e '.[postgresql]'")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PROGRAMS, reason="needs PostgreSQL: apt-get install postgresql")]
JOB = """
import os, sys
from pathlib import Path
from perfcast import tracking
from perfcast.tracking.run import start_run
folder, number = Path(sys.argv[1]), sys.argv[2]
store = tracking.store_from({"uri": "unused", "artifacts": "artifacts"}, folder, os.environ)
run = start_run(tracking.open_client(store), store, "perfcast/demo", f"job {number}", {"job": number})
run.log_params({"number": number, "epochs": 1})
for step in range(10):
    run.log_metrics({"loss": float(step), "other": 1.0}, step)
"""


@pytest.fixture(scope="module")
def server():
    """Start a server of its own in a temporary folder, reached by a socket there; give its SQLAlchemy URI."""
    # the folders of tests are closed to the user of the server
    folder = Path(mkdtemp(prefix="perfcast-postgresql-", dir="/tmp"))
    bin_folder, data = PROGRAMS[-1].parent, folder / "data"
    user = {}
    if os.getuid() == 0:  # the server refuses to run as root
        shutil.chown(folder, "postgres", "postgres")
        user = {"user": "postgres", "group": "postgres", "cwd": folder}

    def run(program, *options):
        subprocess.run([bin_folder / program, *options], check=True, stdout=subprocess.DEVNULL, timeout=120, **user)

    run("initdb", "-D", data, "--username=perfcast", "--auth=trust", "--no-sync")
    run("pg_ctl", "-D", data, "-l", folder / "log", "-w", "-o", f"-k {folder} -h '' -F", "start")
    try:
        run("createdb", "-h", folder, "-U", "perfcast", "record")
        yield f"postgresql+psycopg2://perfcast@/record?host={folder}"
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def recorded(uri, folder):
    """Run jobs at once against a store and return what it holds of them, in their order."""
    folder.mkdir()
    environment = {**os.environ, "MLFLOW_TRACKING_URI": uri, "PERFCAST_ARTIFACTS": "elsewhere"}
    command = [sys.executable, "-c", JOB, str(folder)]
    jobs = [subprocess.Popen([*command, str(number)], env=environment) for number in range(2)]
    assert [job.wait(timeout=300) for job in jobs] == [0] * 2
    client = tracking.open_client(tracking.store_from({"uri": "unused", "artifacts": "artifacts"}, folder, environment))
    experiment = client.get_experiment_by_name("perfcast/demo")
    assert experiment.artifact_location == (folder / "elsewhere" / "perfcast" / "demo").as_uri()
    runs = client.search_runs([experiment.experiment_id], "tags.job LIKE '%'")
    losses = {run.info.run_id: client.get_metric_history(run.info.run_id, "loss") for run in runs}
    return sorted(
        (run.info.run_name, run.info.status, run.data.params, [metric.value for metric in losses[run.info.run_id]])
        for run in runs
    )


def test_postgresql_records_equal_sqlite_records(server, tmp_path):
    there = recorded(server, tmp_path / "postgresql")
    assert len(there) == 2
    assert there == recorded(f"sqlite:///{tmp_path}/record.db", tmp_path / "sqlite")
