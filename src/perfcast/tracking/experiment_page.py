"""Page of an experiment in the UI: its description, and a saved view with the columns that matter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow import MlflowClient

VIEW = "perfcast"
"""Key of the saved view in the address of the page."""
_COLUMNS = {
    "tags": ("split", "predictor"),
    "metrics": ("mape", "medape", "coverage", "width", "interval_score", "p90", "seconds", "memory_mib"),
    "params": ("preset",),
}


def page_address(experiment_id: str) -> str:
    """Return the part of the address, behind the server's, that opens the trainings in the saved view."""
    return f"#/experiments/{experiment_id}/runs?viewStateShareKey={VIEW}&workflowType=machine_learning"


def page_addresses(client: MlflowClient) -> dict[str, str]:
    """Return the address of the saved view of every experiment that has one, by name."""
    tagged = [each for each in client.search_experiments() if f"mlflow.sharedViewState.{VIEW}" in each.tags]
    return {each.name: page_address(each.experiment_id) for each in sorted(tagged, key=lambda each: each.name)}


def describe_experiment(client: MlflowClient, experiment_id: str, title: str) -> None:
    """Set description and saved view, where they differ. The UI's button Share saves views in the same tag."""
    view = {
        "selectedColumns": [f"{kind}.`{name}`" for kind, names in _COLUMNS.items() for name in names],
        "searchFilter": "tags.`perfcast.kind` = 'training'",
        "orderByKey": "metrics.`mape`",
        "orderByAsc": True,
    }
    note = (
        f"**{title}**: one run per training. Metrics are those of the test rows: `mape`, `medape` and `p90` "
        "(90 % of the errors are smaller) in %, `coverage` and `width` of the prediction intervals in %, averaged over "
        "the suites; `mape/<suite>` is one of them. Runs of kind `summary` hold report and plots, those of kind "
        "`champion` the model of `perfcast predict`.\n\n"
        f"[Trainings by error, with these columns]({page_address(experiment_id)})"
    )
    tags = {"mlflow.note.content": note, f"mlflow.sharedViewState.{VIEW}": json.dumps(view)}
    present = client.get_experiment(experiment_id).tags
    for name, value in tags.items():
        if present.get(name) != value:
            client.set_experiment_tag(experiment_id, name, value)
