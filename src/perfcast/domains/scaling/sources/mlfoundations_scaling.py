"""open_lm models trained at several lengths: one JSON file of losses per model, one of accuracies, and the tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfcast.sources.bounded_files import FETCH_AGAIN
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_json_text

TASKS = "eval_metadata.csv"
TASK_COLUMNS = ("Eval Task", "#datapoints", "Random baseline")
MAX_BYTES = 1 << 20
"""Largest file of a model; the published ones have at most 10 kB."""

_EVALUATION = "evaluation_"


def list_models(folder: Path) -> list[str]:
    """Return the names of the models whose losses are in the source's folder."""
    names = {path.stem for path in folder.glob("*.json")} - {"manifest"}
    return sorted(name for name in names if not name.startswith(_EVALUATION))


def model_file(name: str) -> str:
    """Return the path of a model's losses in the source's folder."""
    return f"{name}.json"


def evaluation_file(name: str) -> str:
    """Return the path of a model's accuracies in the source's folder."""
    return f"{_EVALUATION}{name}_heavy.json"


def read_model(folder: Path, name: str) -> dict[str, Any]:
    """Return the content of a model's file of losses. Raises: UserError."""
    path = folder / model_file(name)
    content = _read_object(path, ("dataset_name", "hyperparameters", "results"))
    _require(isinstance(content["hyperparameters"], dict), path, "'hyperparameters' is no object")
    results = content["results"]
    is_sound = isinstance(results, list) and all(isinstance(entry, dict) for entry in results)
    _require(is_sound, path, "'results' is no list of objects")
    return content


def read_accuracies(folder: Path, name: str) -> tuple[str, dict[str, Any]]:
    """Return the date of a model's evaluation and its accuracy by task. Raises: UserError."""
    path = folder / evaluation_file(name)
    content = _read_object(path, ("creation_date", "eval_metrics"))
    metrics = content["eval_metrics"]
    is_sound = isinstance(metrics, dict) and isinstance(metrics.get("icl"), dict)
    _require(is_sound, path, "'eval_metrics' has no object 'icl'")
    return str(content["creation_date"]), metrics["icl"]


def _read_object(path: Path, keys: tuple[str, ...]) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError:
        raise UserError(f"{path.name} must exist", "there is no such file", FETCH_AGAIN) from None
    _require(len(text) <= MAX_BYTES, path, f"it has more than {MAX_BYTES} bytes")
    content = read_json_text(text, path.name)
    missing = keys if not isinstance(content, dict) else [key for key in keys if key not in content]
    _require(not missing, path, f"it lacks {', '.join(missing)}")
    assert isinstance(content, dict)
    return content


def _require(condition: bool, path: Path, fact: str) -> None:
    if not condition:
        raise UserError(f"{path.name} must have the published structure", fact, FETCH_AGAIN)
