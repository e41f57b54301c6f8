"""Project in which one generated file of a source is replaced and the checksums accept it."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import yaml

from perfcast import plugins
from perfcast.config.conf_files import read_conf
from perfcast.utils.io import sha256

ROWS = 60
DATASETS = {
    "spec_cpu2017": "spec_cpu2017",
    "spec_cpu2006": "spec_cpu2006",
    "spec_cpu2017_detail": "spec_cpu2017_detail",
    "spec_power": "spec_power",
    "spec_jbb2015": "spec_jbb2015",
    "perfcastdb": "perfcastdb",
    "gpperf": "gpperf",
    "aiconfigurator": "llm_serving",
    "aiconfigurator_operators": "gpu_operators",
    "help": "help_nasbench201",
    "host_gemm": "host_gemm",
    "cpu_catalog": "spec_cpu2017",
}
"""Source -> a dataset built from it."""


@cache
def generate_files(source: str) -> Path:
    """Return a folder with the generated files of a source."""
    folder = Path(mkdtemp(prefix=f"perfcast-{source}-"))
    plugins.load("testing", source).write(folder, rows=ROWS, seed=3)
    return folder


def write_project(repository: Path, project: Path, source: str, file: str, content: bytes | None) -> None:
    """Write a project with one file of the source replaced; None puts a folder in its place."""
    conf = read_conf(repository / "conf", "source", source)
    mirror = project / ("data/embedded" if conf.get("embedded") else "mirror")
    generated = generate_files(source)
    files = [path.relative_to(generated).as_posix() for path in generated.rglob("*") if path.is_file()]
    for name in files:
        for path in (mirror / name, project / "raw" / source / name):
            path.parent.mkdir(parents=True, exist_ok=True)
            if name == file and content is None:
                path.mkdir()
            else:
                path.write_bytes(content if name == file and content is not None else (generated / name).read_bytes())
    (project / "raw" / source / "manifest.json").write_text(json.dumps({"status": "present", "source": source}))
    if not conf.get("embedded"):
        conf.pop("snapshots", None)
        conf["files"] = [_file_conf(name, mirror / name) for name in files]
    (project / "conf" / "source").mkdir(parents=True)
    (project / "conf" / "source" / f"{source}.yaml").write_text(yaml.safe_dump(conf))
    dataset = DATASETS[source]
    dataset_conf = read_conf(repository / "conf", "dataset", dataset)
    required = ["spec_cpu2017", "cpu_catalog"] if source == "cpu_catalog" else dataset_conf["sources"]["required"]
    dataset_conf["sources"] = {"required": required, "optional": []}
    for other in required:
        if other != source:
            shutil.copytree(generate_files(other), project / "raw" / other)
            (project / "raw" / other / "manifest.json").write_text(json.dumps({"status": "present"}))
    (project / "conf" / "dataset").mkdir(parents=True)
    (project / "conf" / "dataset" / f"{dataset}.yaml").write_text(yaml.safe_dump(dataset_conf))


def _file_conf(name: str, path: Path) -> dict[str, object]:
    is_file = path.is_file()
    digest, size = (sha256(path), path.stat().st_size) if is_file else ("0" * 64, 1)
    # an empty file cannot be declared by its size
    bound = {"bytes": size} if size else {"max_bytes": 1}
    return {"name": name, "mirror": name, "url": "https://example.org/x", "sha256": digest, **bound}


def ingest_command(project: Path, source: str) -> list[str]:
    """Return the command that ingests."""
    command = ["pipeline", "ingest", source, "--out", project / "out" / "raw", "--project", project]
    return [str(word) for word in (*command, "--offline", "--mirror", project / "mirror", "--strict")]


def standardize_command(project: Path, source: str) -> list[str]:
    """Return the command that makes a table."""
    out = project / "out"
    outputs = ["--table", out / "t.parquet", "--rejected", out / "r.csv", "--quality", out / "q.json"]
    command = ["pipeline", "standardize", DATASETS[source], "--raw", project / "raw", "--project", project]
    return [str(word) for word in (*command, *outputs)]
