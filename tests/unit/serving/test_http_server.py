"""`perfcast serve` as processes: signals, and workers that die or stop."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from bridged_project import DATASET, bridged_results
from champion_project import project
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from serving_project import KNOWN, PLAIN, Reply, request

import perfcast
from perfcast.cli.main import main
from perfcast.serving.app import METRICS_FOLDER, ServerMetrics

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes as Linux has them")


class Server:
    """A running command."""

    def __init__(self, process, address):
        self.process, self.address = process, address

    @property
    def workers(self):
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return {int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()}

    def signal_workers(self, number, count=None):
        chosen = sorted(self.workers)[:count]
        for pid in chosen:
            os.kill(pid, number)
        return set(chosen)

    def metrics(self):
        try:
            return request(f"{self.address}/metrics").body.decode()
        except OSError:
            return ""

    def starts(self):
        counted = re.search(r"^perfcast_worker_starts_total (\d+)", self.metrics(), re.MULTILINE)
        return int(counted[1]) if counted else 0

    def answer_again(self):
        """Return the first answer within a minute; connections to a worker that died break."""
        until = time.monotonic() + 60
        while True:
            try:
                reply = request(f"{self.address}/predict{PLAIN}", KNOWN)
                if reply.status == 200 or time.monotonic() > until:
                    return reply
            except OSError:
                if time.monotonic() > until:
                    raise
            time.sleep(0.1)

    def end(self, number=signal.SIGTERM):
        """Return the seconds until the server ended, and what it wrote."""
        start = time.monotonic()
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return time.monotonic() - start, errors


@contextmanager
def command(*options, host="127.0.0.1", champion=None):
    words = [sys.executable, "-m", "perfcast", "serve", "--port", "0", "--host", host, *options]
    source = str(perfcast.__path__[0]).removesuffix("perfcast")
    process = subprocess.Popen(
        [*words, "--champion", str(champion or project().folder)],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        port = re.fullmatch(rf"perfcast on http://{re.escape(host)}:(\d+)\n", process.stdout.readline())[1]
        yield Server(process, f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait()


def test_command_serves_until_it_is_interrupted_and_says_that_it_is_open():
    with command("--max-batch", "2", "--workers", "1", host="0.0.0.0") as server:
        assert request(f"{server.address}/predict{PLAIN}", KNOWN).status == 200
        assert request(f"{server.address}/predict{PLAIN}", [KNOWN] * 3).status == 413
        seconds, errors = server.end(signal.SIGINT)
        assert (server.process.returncode, seconds < 10) == (0, True)
    assert "is open to other machines" in errors and "Traceback" not in errors


@pytest.mark.parametrize("exports", [False, True])
def test_exported_file_is_served_alone_and_a_folder_with_what_rests_on_it(tmp_path, exports):
    champion = bridged_results() / "champion" / "spec_cpu2017"
    if exports:
        file = tmp_path / "champion.zip"
        assert main(["champion", "export", "--champion", str(champion), "--out", str(file)]) == 0
        champion = file
    with command("--workers", "1", champion=champion) as server:
        suites = request(f"{server.address}/health").json()["suites"]
        assert [suite["basis"]["dataset"] for suite in suites] == [DATASET, "spec_cpu2017"][exports:]
        (machine,) = request(f"{server.address}/predict{PLAIN}", KNOWN).json()["machines"]
        assert len(machine["estimates"]) == 4 * len(suites)


def test_workers_that_die_or_stop_are_replaced_and_counted():
    with command("--workers", "2") as server:
        first: Reply = server.answer_again()
        _await(lambda: server.starts() >= 2)  # one that is killed before it counts itself is never counted
        for number, count in ((signal.SIGKILL, 1), (signal.SIGKILL, 2), (signal.SIGSTOP, 2)):
            expected = server.starts() + count
            gone = server.signal_workers(number, count)
            assert server.answer_again().body == first.body
            _await(lambda: server.starts() >= expected)  # noqa: B023  # a slow one may be replaced once more
            assert len(server.workers - gone) == 2
        seconds, errors = server.end()
        assert (server.process.returncode, seconds < 11) == (0, True)
    assert errors == ""


@pytest.mark.parametrize("wait", [0.0, 5.0])
def test_hung_workers_end_with_the_server_also_while_one_is_replaced(wait):
    """The supervisor asks for life after a moment, and waits ten seconds for an answer."""
    with command("--workers", "2") as server:
        server.answer_again()
        _await(lambda: server.starts() >= 2)
        hung = server.signal_workers(signal.SIGSTOP)
        time.sleep(wait)
        seconds, errors = server.end()
        assert (server.process.returncode, seconds < 11, errors) == (0, True, "")
    assert not any(is_running(pid) for pid in hung)


def test_workers_end_with_a_killed_supervisor():
    with command("--workers", "2") as server:
        server.answer_again()
        _await(lambda: server.starts() >= 2)
        workers = server.workers
        server.process.kill()
        server.process.wait()
        until = time.monotonic() + 15
        while any(map(is_running, workers)) and time.monotonic() < until:
            time.sleep(0.1)
        assert not any(map(is_running, workers))


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_metrics_do_without_the_empty_file_of_a_worker_that_was_killed_at_its_start(tmp_path, monkeypatch):
    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path))
    whole = MmapedDict(str(tmp_path / "counter_1.db"))
    whole.write_value(mmap_key("perfcast_demo", "perfcast_demo_total", [], [], ""), 2.0, 0.0)
    whole.close()
    (tmp_path / "counter_2.db").touch()
    assert b"perfcast_demo_total 2.0" in ServerMetrics().as_text()


def _await(condition):
    until = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)
