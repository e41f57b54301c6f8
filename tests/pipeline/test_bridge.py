"""Whole graph with a bridge on generated inputs: the champion of one dataset estimates the rows of another."""

import json
import shutil

from small_project import call, change, restored, rules_run, small_project

from perfcast import plugins
from perfcast.schema.table_files import read_table
from perfcast.utils.io import sha256
from perfcast.utils.safe_yaml import read_yaml_text, yaml_text

SOURCES = ["spec_cpu2017", "spec_cpu2026"]
SPLITS = ["unseen_cpu", "unseen_core_family", "forward_2026_05"]


def make(folder):
    made = small_project(folder, sources=SOURCES, datasets=["spec_cpu2017", "spec_cpu2026"], splits=SPLITS)
    source = made / "conf" / "source" / "spec_cpu2026.yaml"
    mirror = made / "mirror" / "spec_cpu2026"
    shutil.rmtree(mirror, ignore_errors=True)
    mirror.mkdir(parents=True)
    plugins.load("testing", "spec_cpu2026").write(mirror, rows=150, seed=1)
    content = read_yaml_text(source.read_text(), str(source))
    (file,) = mirror.iterdir()
    content["files"] = [{"name": file.name, "sha256": sha256(file), "bytes": file.stat().st_size}]
    content["files"][0]["mirror"] = f"spec_cpu2026/{file.name}"
    source.write_text(yaml_text(content))
    return made


def test_estimates_follow_the_champion_and_nothing_else_runs_again(tmp_path):
    project = make(tmp_path / "project")
    assert {"bridge", "champion", "leakage", "report"} <= rules_run(call(project, "snakemake"))
    results = project / "results"
    table = read_table(results / "features" / "spec_cpu2026.parquet")
    assert table.frame["cpu2017_estimate"].notna().mean() > 0.9
    checks = json.loads((results / "leakage" / "spec_cpu2026.json").read_text())["checks"]
    (check,) = (each for each in checks if each["check"] == "bridge")
    assert check["findings"] == [] and check["numbers"]["rows_of_known_entities"] > 0
    model = json.loads(
        (results / "runs" / "spec_cpu2026" / "unseen_core_family" / "ridge" / "model" / "predictor.json").read_text()
    )
    assert "cpu2017_estimate" in {column["name"] for column in model["columns"]}
    assert (results / "champion" / "spec_cpu2026" / "about.json").is_file()
    assert rules_run(call(project, "snakemake")) <= {"all", "record"}
    conf = project / "conf" / "dataset" / "spec_cpu2026.yaml"
    with restored(conf):
        conf.write_text(conf.read_text().replace("name: cpu2017", "name: other"))
        again = rules_run(call(project, "snakemake", "-n"))
    assert {"bridge", "features", "train"} <= again
    assert "standardize" not in again
    change(project, predictors=["nearest"])
    assert "bridge" in rules_run(call(project, "snakemake", "-n"))
