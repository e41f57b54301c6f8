"""Two runs start at once in two clones with a shared cache."""

import hashlib
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from killing import Run, results_of, tiny_project
from loopback import Loopback, Page
from small_project import change

from perfcast.config.conf_files import read_conf

pytestmark = pytest.mark.faults


def test_runs_in_two_clones_share_a_cache(tmp_path, monkeypatch, expected):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    first, second = tiny_project(tmp_path / "first"), tmp_path / "second"
    embedded = first / "data" / "embedded"
    with Loopback() as server:
        path = first / "conf" / "source" / "host_gemm.yaml"
        conf = read_conf(first / "conf", "source", "host_gemm")
        conf["embedded"] = False
        for file in conf["files"]:
            body = (embedded / file["name"]).read_bytes()
            server.pages[f"/{file['name']}"] = Page(body, wait_between_chunks=0.05)
            file |= {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}
            file |= {"url": server.url(f"/{file['name']}"), "mirror": f"host_gemm/{file['name']}"}
        path.write_text(yaml.safe_dump(conf, sort_keys=False))
        shutil.rmtree(embedded)
        change(first, network=True)
        shutil.copytree(first, second, symlinks=True)
        shared = {"PERFCAST_CACHE": str(tmp_path / "cache"), "PERFCAST_MIRROR": str(tmp_path / "mirror")}
        both = [Run(project, environment=shared) for project in (first, second)]
        with ThreadPoolExecutor() as pool:
            list(pool.map(Run.wait, both))
        requested = sorted(path for path, _ in server.requests)
    assert [run.process.returncode for run in both] == [0, 0], both[0].output()[-3000:] + both[1].output()[-3000:]
    assert requested == sorted(set(requested)), "each file is downloaded once for both"
    results = results_of(first)
    assert results == results_of(second)
    untold = {name: digest for name, digest in expected.items() if name.startswith(("standard/", "runs/"))}
    assert untold.items() <= results.items()
