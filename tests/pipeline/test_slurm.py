"""The profile for Slurm: jobs on the cluster of this machine give the bytes of a local run."""

import shutil
import subprocess

import pytest
from small_project import environment, expect_results_of_a_local_run, small_project

pytest.importorskip("snakemake_executor_plugin_slurm", reason="needs the extra: pip install -e '.[slurm]'")
pytestmark = pytest.mark.slurm


def has_cluster():
    """Return whether a cluster answers on this machine."""
    return bool(shutil.which("sinfo")) and subprocess.run(["sinfo"], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not has_cluster(), reason="needs a Slurm cluster: apt-get install slurm-wlm munge")
def test_slurm_results_equal_local_results(tmp_path):
    project = small_project(tmp_path / "slurm" / "project")
    done = subprocess.run(
        ["snakemake", "--profile", "workflow/profiles/slurm", "--retries", "0"],
        check=False,
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "has been submitted with SLURM jobid" in done.stdout + done.stderr
    expect_results_of_a_local_run(project, tmp_path / "project")
