"""Dependencies point downward only: read off the imports, lazy ones included."""

from pathlib import Path

import pytest

from perfcast.utils.code_hash import closure, imports

ROOT = Path(__file__).parents[2] / "src" / "perfcast"
MODULES = sorted(".".join(("perfcast", *path.relative_to(ROOT).with_suffix("").parts)) for path in ROOT.rglob("*.py"))
# package -> packages of this project it must never reach, directly or not
FORBIDDEN = {
    "schema": {"cli", "config", "tracking", "datasets", "sources", "predictors", "evaluation", "features"},
    "sources": {"cli", "config", "tracking", "datasets", "predictors", "evaluation", "features", "splits"},
    "parsing": {"cli", "config", "tracking", "datasets", "sources", "predictors", "evaluation"},
    "processors": {"cli", "config", "tracking", "datasets", "predictors", "evaluation"},
    "datasets": {"cli", "config", "tracking", "predictors", "evaluation", "features", "splits"},
    "features": {"cli", "config", "tracking", "sources", "predictors", "evaluation", "splits"},
    "splits": {"cli", "config", "tracking", "sources", "datasets", "predictors", "evaluation"},
    "encoding": {"cli", "config", "tracking", "datasets", "sources", "predictors", "evaluation"},
    "training": {"cli", "config", "tracking", "datasets", "sources", "predictors", "evaluation"},
    "uncertainty": {"cli", "config", "tracking", "datasets", "sources", "predictors", "evaluation", "splits"},
    "predictors": {"cli", "config", "tracking", "datasets", "sources", "evaluation", "splits"},
    "evaluation": {"cli", "config", "tracking", "datasets", "sources", "predictors", "training", "plots", "report"},
    "leakage": {"cli", "config", "tracking", "datasets", "sources", "training", "plots", "report"},
    "plots": {"cli", "config", "tracking", "datasets", "sources", "predictors", "report"},
    "report": {"cli", "config", "tracking", "sources", "predictors", "training"},
    "describing": {"cli", "config", "tracking", "sources", "predictors", "evaluation", "splits", "forecasting"},
    "microbench": {"cli", "config", "tracking", "sources", "predictors", "evaluation", "splits", "forecasting"},
    "completion": {"cli", "config", "tracking", "predictors", "evaluation", "splits", "forecasting"},
    "forecasting": {"cli", "config", "tracking", "evaluation", "splits", "training", "plots", "report"},
    "choosing": {"cli", "config", "tracking", "training", "report", "results_diff"},
    "serving": {"cli", "config", "tracking", "evaluation", "splits", "training", "plots", "report", "sources"},
    "results_diff": {"cli", "config", "tracking", "datasets", "sources", "predictors", "training"},
}
# third-party package -> the only places that may import it
KEEPERS = {
    "hydra": {"config"},
    "omegaconf": {"config"},
    "mlflow": {"tracking"},
    "requests": {"sources"},
    "pooch": {"sources"},
    "urllib3": {"sources"},
    "pytorch_lightning": {"training"},
    "tabm": {"nn"},
    "rtdl_num_embeddings": {"nn"},
    "rtdl_revisiting_models": {"nn"},
    "snakemake": set(),
    "pickle": set(),
    "joblib": set(),
    "optuna": {"tuning"},
    "fastapi": {"serving"},
    "uvicorn": {"serving"},
    "starlette": {"serving"},
    "dvc": {"results_diff"},
    "dvc_data": {"results_diff"},
}


# packages inside another one, with dependencies of their own
INNER = {"plots": "report", "leakage": "evaluation", "results_diff": "evaluation"}


def package_of(module):
    parts = module.replace("perfcast.data.", "perfcast.", 1).split(".")
    if len(parts) > 2 and INNER.get(parts[2]) == parts[1]:
        return parts[2]
    return parts[1] if len(parts) > 1 else ""


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_dependencies_point_downward(package):
    members = [module for module in MODULES if package_of(module) == package]
    assert members
    reached = {package_of(module) for module in closure(*members)}
    assert not reached & FORBIDDEN[package]


@pytest.mark.parametrize("library", sorted(KEEPERS))
def test_a_library_is_known_to_one_place_only(library):
    users = set()
    for module in MODULES:
        path = ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py")
        for line in path.read_text().splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"]) and words[1].split(".")[0] == library:
                users.add(package_of(module))
    assert users <= KEEPERS[library]


def test_the_reader_of_imports_sees_lazy_ones():
    assert "perfcast.data.sources.ingestion" in imports("perfcast.cli.pipeline.ingest")
