"""Summary of a folder of results as text: the errors of each dataset, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfcast.evaluation import headline, read_evaluation
from perfcast.utils.errors import UserError
from perfcast.utils.io import read_object


def summarize_results(results: Path, titles: Mapping[str, str], preset: str) -> str:
    """Return the summary of a folder of results as text. Raises: UserError when it has none."""
    available = results / "raw" / "available.json"
    if not available.exists():
        remedy = "`make run` makes them; `make demo` makes a champion alone"
        raise UserError("there must be results to summarize", f"{results} has none", remedy)
    datasets = read_object(available, "datasets", "left_out")
    lines = []
    for name in datasets["datasets"]:
        folder = results / "evaluation" / name
        if folder.is_dir():
            lines += [f"\n== {titles.get(name, name)} ({name}) ==", headline(read_evaluation(folder))]
    lines.append(
        "\nMAPE / MedAPE in %, average over the tests of the dataset; predictions are estimates, not official results."
    )
    if preset == "quick" and results.name == "results":
        lines.append("Preset: quick (one seed, short training). `make full` runs the full experiment.")
    for manifest in sorted((results / "raw").glob("*/manifest.json")):
        about = read_object(manifest, "status", "source", "reason", "remedy")
        if about["status"] != "present":
            lines.append(f"left out: source {about['source']}: {about['reason']}; {about['remedy']}")
    for name, absent in datasets["left_out"].items():
        lines.append(f"left out: dataset {name} (needs {', '.join(absent)})")
    return "\n".join(lines)
