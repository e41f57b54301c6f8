"""Every source with generated files, one of which is replaced, in a project whose checksums accept it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import yaml

from perfcast import plugins
from perfcast.config import read_conf
from perfcast.io import sha256

ROWS = 60
DATASETS = {
    "spec_cpu2017": "spec_cpu2017",
    "spec_cpu2006": "spec_cpu2006",
    "spec_cpu2017_detail": "spec_cpu2017_detail",
    "spec_power": "spec_power",
    "spec_jbb2015": "spec_jbb2015",
    "perfcastdb": "perfcastdb",
    "gpperf": "gpperf",
    "help": "help_nasbench201",
    "host_gemm": "host_gemm",
    "host_suite": "host_suite",
    "cpu_catalog": "spec_cpu2017",
}
"""Source -> a data set that is made of it."""


@cache
def generated(source: str) -> Path:
    """Return a folder with a source's generated files."""
    folder = Path(mkdtemp(prefix=f"perfcast-{source}-"))
    plugins.load("fake", source).write(folder, rows=ROWS, seed=3)
    return folder


def planted(repository: Path, project: Path, source: str, file: str, content: bytes | None) -> None:
    """Write a project: the source with one file replaced (None: a folder in its place), accepted by its checksum."""
    conf = read_conf(repository / "conf", "source", source)
    mirror = project / ("data/embedded" if conf.get("embedded") else "mirror")
    files = [path.relative_to(generated(source)).as_posix() for path in generated(source).rglob("*") if path.is_file()]
    for name in files:
        for place in (mirror / name, project / "raw" / source / name):
            place.parent.mkdir(parents=True, exist_ok=True)
            if name == file and content is None:
                place.mkdir()
            else:
                place.write_bytes(
                    content if name == file and content is not None else (generated(source) / name).read_bytes()
                )
    (project / "raw" / source / "manifest.json").write_text(json.dumps({"status": "present", "source": source}))
    if not conf.get("embedded"):
        conf.pop("snapshots", None)
        conf["files"] = [_declared(name, mirror / name) for name in files]
    (project / "conf" / "source").mkdir(parents=True)
    (project / "conf" / "source" / f"{source}.yaml").write_text(yaml.safe_dump(conf))
    dataset = DATASETS[source]
    own = read_conf(repository / "conf", "dataset", dataset)
    required = ["spec_cpu2017", "cpu_catalog"] if source == "cpu_catalog" else own["sources"]["required"]
    own["sources"] = {"required": required, "optional": []}
    for other in required:
        if other != source:
            plugins.load("fake", other).write(project / "raw" / other, rows=ROWS, seed=3)
            (project / "raw" / other / "manifest.json").write_text(json.dumps({"status": "present"}))
    (project / "conf" / "dataset").mkdir(parents=True)
    (project / "conf" / "dataset" / f"{dataset}.yaml").write_text(yaml.safe_dump(own))


def _declared(name: str, path: Path) -> dict[str, object]:
    whole = path.is_file()
    digest, size = (sha256(path), path.stat().st_size) if whole else ("0" * 64, 1)
    # an empty file cannot be declared by its size
    bound = {"bytes": size} if size else {"max_bytes": 1}
    return {"name": name, "mirror": name, "url": "https://example.org/x", "sha256": digest, **bound}


def ingestion(project: Path, source: str) -> list[str]:
    """Return the command that ingests."""
    command = [
        "pipeline",
        "ingest",
        source,
        "--out",
        str(project / "out" / "raw"),
        "--project",
        str(project),
        "--offline",
    ]
    return [*command, "--mirror", str(project / "mirror"), "--strict"]


def standardisation(project: Path, source: str) -> list[str]:
    """Return the command that makes a table."""
    out = project / "out"
    outputs = ["--table", out / "t.parquet", "--rejected", out / "r.csv", "--quality", out / "q.json"]
    command = ["pipeline", "standardize", DATASETS[source], "--raw", project / "raw", "--project", project]
    return [str(one) for one in (*command, *outputs)]
