"""A disk that is full or takes no more: one line for each failing job, nothing half-written, and on from there."""

import os
import re
import shutil
import subprocess
import time

import pytest
from killing import Run, assert_whole, half_written, tiny_project, undisturbed, unexplained

pytestmark = pytest.mark.faults
ROOM = (0, 100, 1_000, 2_500)  # KiB: the first job, one of the first, MLflow's store, a training
NOBODY = 65534


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return undisturbed(tiny_project(tmp_path_factory.mktemp("undisturbed") / "project"))[1]


def assert_told(run):
    """Every job that failed says so in one line of perfcast, without a traceback."""
    assert run.process.returncode not in (0, None)
    said = run.said()
    assert "Traceback" not in said
    failed = set(re.findall(r"^Error in rule (\w+):", said, re.MULTILINE))
    assert failed, said[-3000:]
    told = [line for line in said.splitlines() if line.startswith("perfcast ")]
    by_command = {re.match(r"perfcast (\w+):", line)[1]: line for line in told}
    assert set(by_command) == failed, said[-3000:]
    assert all("however" in line and "start again" in line for line in told)
    return by_command


@pytest.fixture
def small_disk(tmp_path):
    """A project whose results lie on a disk of their own, and a file that takes its room."""
    project = tiny_project(tmp_path / "project")
    results = project / "results"
    results.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(results)], check=False, capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"this user may not mount a small disk: {mounted.stderr.strip()}")
    yield project
    subprocess.run(["umount", str(results)], check=True)


def leave(results, room):
    """Fill the disk but for `room` KiB."""
    ballast = results / "ballast"
    ballast.unlink(missing_ok=True)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(results).free - room * 1024)


def test_a_full_disk_is_told_and_survived(small_disk, expected):
    seen = {}
    for room in ROOM:
        leave(small_disk / "results", room)
        run = Run(small_disk)
        run.wait()
        seen |= assert_told(run)
        assert not half_written(small_disk, expected)
        assert not [path for path in unexplained(small_disk) if path.startswith("results")]
    assert len(seen) > 1, "more than one kind of job met the full disk"
    assert all("must have room" in line for line in seen.values())
    (small_disk / "results" / "ballast").unlink()
    run = Run(small_disk)
    run.wait()
    assert_whole(small_disk, expected)


@pytest.fixture
def own_project(tmp_path_factory):
    """A project of a user whom permissions bind, and how to become one."""
    folder = tmp_path_factory.mktemp("own")
    project = tiny_project(folder / "project")
    if os.geteuid():
        return project, []
    if not shutil.which("setpriv"):
        pytest.skip("permissions do not bind this user, and there is no setpriv to become another")
    for path in (folder, *folder.parents):
        if path.stat().st_uid == 0 and path != path.parent:
            path.chmod(path.stat().st_mode | 0o055)
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(folder)], check=True)
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env", f"HOME={folder}"]
    tried = subprocess.run([*become, shutil.which("snakemake"), "--version"], check=False, capture_output=True)
    if tried.returncode:
        pytest.skip("another user cannot run what is installed here")
    return project, become


def test_a_removed_permission_is_told_and_survived(own_project, expected):
    project, become = own_project
    run = Run(project, become=become)
    while run.look() and not any("/mlp/" in job for job in run.jobs):
        time.sleep(0.02)
    folder = project / "results" / "runs" / "host_gemm" / "random"
    mode = folder.stat().st_mode
    folder.chmod(0o555)
    run.wait()
    told = assert_told(run)
    assert "this user must have access" in told["train"]
    assert not half_written(project, expected)
    folder.chmod(mode)
    run = Run(project, become=become)
    run.wait()
    assert_whole(project, expected, become=become)
