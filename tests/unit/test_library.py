"""perfcast as a library: the notebook, the estimators, and the wheel outside the repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from champion_project import project
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import perfcast
from perfcast.utils.errors import UserError

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "predict.ipynb"


def cells():
    return [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]


def test_notebook_is_stored_without_outputs():
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells())


def test_notebook_runs(tmp_path, monkeypatch):
    import matplotlib as mpl

    mpl.use("Agg")
    (tmp_path / "results").symlink_to(project().results)
    (tmp_path / "examples").mkdir()
    monkeypatch.chdir(tmp_path / "examples")
    names = {}
    for cell in cells():
        source = "".join(cell["source"])
        exec(compile(source, NOTEBOOK.name, "exec"), names)
    assert names["after"].machines[0].estimates[2].median > names["rate"].median
    assert len(names["curve"]) == len(names["counts"])
    assert set(names["errors"]) == {"Ridge", "LightgbmPredictor"}


def test_estimators_follow_scikit_learn():
    X = pd.DataFrame({"cores": np.arange(1.0, 61), "kind": ["a", "b", "c"] * 20})
    y = 3.0 * X["cores"]
    search = GridSearchCV(perfcast.estimator("Ridge"), {"clip": [1.0, 2.0]}, cv=3)
    search.fit(X, y)
    assert search.predict(X).shape == (60,)
    assert clone(perfcast.estimator("Ridge", clip=2.0)).get_params()["clip"] == 2.0


@pytest.mark.parametrize(
    ("name", "parameters", "kind", "words"),
    [("RigdePredictor", {}, UserError, "Ridge"), ("Ridge", {"clap": 1}, TypeError, "'clip' or 'alphas'")],
)
def test_estimator_refuses_unknown_names(name, parameters, kind, words):
    with pytest.raises(kind) as error:
        perfcast.estimator(name, **parameters)
    assert words in str(error.value)


def test_package_exports_its_names():
    assert {"load_champion", "predict", "estimator"} <= set(dir(perfcast))
    with pytest.raises(AttributeError, match="no attribute 'predict_all'"):
        _ = perfcast.predict_all


def test_inference_imports_no_learning_library():
    # their import takes longer than a prediction; the predictor of the champion imports what it needs
    heavy = ["sklearn", "scipy", "torch", "mlflow", "pytorch_lightning", "matplotlib", "rich"]
    code = (
        "import sys, perfcast.inference, perfcast.domains.servers.predictors.shift_weights, perfcast.predictors.trees\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert call([sys.executable, "-c", code], ROOT) == "[]\n"


def call(command, folder, **environment):
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
