"""A Slurm cluster of one node on this machine: daemons, ports and folders of its own, gone when its block ends."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

DAEMONS = ("munged", "slurmctld", "slurmd")
PATIENCE = 120  # seconds
CONFIGURATION = """
ClusterName=miniature
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
MinJobAge=3600
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} RealMemory={megabytes} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Return what this machine lacks to run a cluster, empty when it lacks nothing."""
    absent = [name for name in DAEMONS if shutil.which(name, path=_path()) is None]
    if absent:
        return f"needs {', '.join(absent)}: apt-get install slurm-wlm munge"
    return "" if os.getuid() == 0 else "needs root: slurmd starts jobs in the name of others"


@contextmanager
def cluster() -> Iterator[dict[str, str]]:
    """Start a cluster; give the environment variables by which Slurm's programs find it."""
    # the folders of tests are closed to the other users of the daemons
    folder = Path(mkdtemp(prefix="perfcast-slurm-", dir="/tmp"))
    folder.chmod(0o755)
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    # Jobs lose every variable of Slurm's but its own, so that the steps in them would look for the system's cluster.
    step = folder / "bin" / "srun"
    step.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n')
    step.chmod(0o755)
    controller_port, node_port = free_ports(2)
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 * 9 // 10
    values = {
        "host": socket.gethostname().partition(".")[0],
        "folder": folder,
        "controller_port": controller_port,
        "node_port": node_port,
        "processors": os.cpu_count(),
        "megabytes": megabytes,
    }
    (folder / "slurm.conf").write_text(CONFIGURATION.format(**values))
    environment = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"{folder / 'bin'}{os.pathsep}{_path()}"}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes += [_munged(folder)]
        for name in ("slurmctld", "slurmd"):
            processes += [_start(folder, environment, name, "-D", "-f", str(folder / "slurm.conf"))]
        _wait_until_idle(environment, folder)
        yield environment
    finally:
        subprocess.run(["scancel", "--user=root"], check=False, env={**os.environ, **environment}, timeout=60)
        for process in reversed(processes):
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder)


def _munged(folder: Path) -> subprocess.Popen[bytes]:
    private = folder / "munge"
    private.mkdir(mode=0o700)
    (private / "key").write_bytes(secrets.token_bytes(1024))
    (private / "key").chmod(0o400)
    files = {"key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    options = [f"--{option}={private / name}" for option, name in files.items()]
    started = _start(folder, {}, "munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *options)
    deadline = time.monotonic() + PATIENCE
    while not (folder / "munge.socket").exists() and started.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return started


def _start(folder: Path, environment: dict[str, str], name: str, *options: str) -> subprocess.Popen[bytes]:
    program = shutil.which(name, path=_path())
    assert program is not None
    with (folder / f"{name}.out").open("w") as log:
        return subprocess.Popen([program, *options], env={**os.environ, **environment}, stdout=log, stderr=log)


def _wait_until_idle(environment: dict[str, str], folder: Path) -> None:
    deadline, output = time.monotonic() + PATIENCE, ""
    while time.monotonic() < deadline:
        done = subprocess.run(
            ["sinfo", "-h", "-o", "%T"], check=False, env={**os.environ, **environment}, capture_output=True, text=True
        )
        output = done.stdout + done.stderr
        if output.strip() == "idle":
            return
        time.sleep(0.5)
    logs = "\n".join(path.read_text()[-2000:] for path in sorted(folder.glob("*.out")))
    raise AssertionError(f"the node must become idle, but {output}\n{logs}")


def free_ports(count: int) -> list[int]:
    """Return free ports of the loopback address."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def _path() -> str:
    """Return the search path with this environment's programs, and the daemons, which a person's own often lacks."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"))
