"""Full or read-only disks: one line per failing job, no partial file, and a continued run."""

import os
import re
import shutil
import subprocess
import time

import pytest
from killing import Run, assert_whole, finish, half_written, list_leftovers, tiny_project
from small_project import call

pytestmark = pytest.mark.faults
ROOM = (0, 100, 1_000, 2_500)  # KiB: the first job, one of the first, MLflow's store, a training


def read_failures(run):
    """Check that each failed job has one line of perfcast and no traceback; return the lines by command.

    Snakemake shows its own traceback where it may not remove an empty folder at the end.
    """
    assert run.process.returncode not in (0, None)
    output = run.output()
    assert all("in cleanup_workdir" in text for text in output.split("Traceback")[1:]), output[-3000:]
    failed = set(re.findall(r"^Error in rule (\w+):", run.details(), re.MULTILINE))
    assert failed, output[-3000:]
    messages = [line for line in output.splitlines() if line.startswith("perfcast ")]
    by_command = {re.match(r"perfcast (?:pipeline )?([\w-]+):", line)[1]: line for line in messages}
    # Snakemake's own files, such as benchmarks of jobs that ended well, need room too
    assert len(failed - set(by_command)) <= output.count("OSError: [Errno 28] No space left"), output[-3000:]
    assert set(by_command) <= failed
    assert all(", but " in line and "start again" in line for line in messages)
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
    # lazily: a process of the run that is just ending may still be in there
    subprocess.run(["umount", "--lazy", str(results)], check=True)


def leave(results, room):
    """Fill the disk but for `room` KiB."""
    ballast = results / "ballast"
    ballast.unlink(missing_ok=True)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(results).free - room * 1024)


def test_full_disk_fails_in_one_line_and_run_continues(small_disk, expected):
    seen: dict[str, str] = {}
    for room in ROOM:
        leave(small_disk / "results", room)
        run = Run(small_disk)
        run.wait()
        if run.process.returncode == 0:  # room for all results, and none for their record
            assert "tracking: NOT recorded: " in run.output() and "Traceback" not in run.output()
            assert "OSError in file" not in run.output()
        else:
            seen |= read_failures(run)
        assert not half_written(small_disk, expected)
        assert not [path for path in list_leftovers(small_disk) if path.startswith("results")]
    assert len(seen) > 1, "more than one kind of job met the full disk"
    assert all("must have room" in line for line in seen.values())
    (small_disk / "results" / "ballast").unlink()
    run = Run(small_disk)
    run.wait()
    call(small_disk, "perfcast", "pipeline", "record")
    assert_whole(small_disk, expected)


@pytest.fixture
def forbid():
    """Forbid new entries in a folder, and allow them again: root is held by the immutable flag alone."""
    forbidden = []

    def change(folder, allowed):
        if os.geteuid():
            folder.chmod(0o755 if allowed else 0o555)
            return
        command = ["chattr", "-i" if allowed else "+i", str(folder)]
        if not shutil.which("chattr") or subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("permissions do not bind this user, and folders cannot be made immutable here")
        forbidden[:] = [] if allowed else [folder]

    yield change
    for folder in forbidden:
        change(folder, True)


def test_removed_permission_fails_in_one_line_and_run_continues(tmp_path, expected, forbid):
    project = tiny_project(tmp_path / "project")
    run = Run(project)
    while run.poll() and not any("/mlp/" in job for job in run.jobs):
        time.sleep(0.02)
    folder = project / "results" / "runs" / "host_gemm" / "random"
    forbid(folder, False)
    run.wait()
    messages = read_failures(run)
    assert "this user must have access" in messages["train"]
    assert not half_written(project, expected)
    forbid(folder, True)
    finish(project, expected)
