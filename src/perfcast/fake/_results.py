"""Generated results folder, in its state before the report is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfcast.evaluation import evaluate, write_evaluation
from perfcast.fake._runs import PUBLISHED, fake_table, write_folds, write_runs, write_support
from perfcast.io import write_json
from perfcast.report.plots.svg_output import draw_all
from perfcast.table_files import write_table

FAKE_PARAMS: dict[str, Any] = {
    "datasets": ["fake"],
    "figures": ["learning_curves", "headline"],
    "schedule": "quick",
    "seeds": [0],
    "published_until": "2024-12",
}


def write_results(folder: Path, *, rows: int, seed: int) -> None:
    """Write tables, runs, evaluation, two plots, quality, and the manifests of a present and a missing source."""
    table = fake_table(rows=rows, seed=seed)
    for stage in ("standard", "features"):
        write_table(table, folder / stage / "fake.parquet")
    write_folds(table, folder / "splits" / "fake", seed=seed)
    runs = write_runs(table, folder / "runs" / "fake", seed=seed)
    support = write_support(table, folder / "support" / "fake", seed=seed)
    evaluation = evaluate(runs, table, resamples=200, seed=seed, published=PUBLISHED, support=support)
    write_evaluation(evaluation, folder / "evaluation" / "fake")
    draw_all(evaluation, folder / "figures" / "fake", FAKE_PARAMS["figures"])
    write_json(folder / "champion" / "fake" / "about.json", {"predictor": "network"})
    write_json(folder / "standard" / "fake.quality.json", _make_quality(rows))
    write_json(folder / "raw" / "available.json", {"datasets": ["fake"], "left_out": {"other": ["absent"]}})
    for manifest in _make_manifests():
        write_json(folder / "raw" / manifest["source"] / "manifest.json", manifest)


def _make_quality(rows: int) -> dict[str, Any]:
    return {
        "dataset": "fake",
        "rows_in": rows + 12,
        "rows_kept": rows,
        "merged": {"same_result": 2},
        "rejected": {"not_a_score": 7, "<script>alert(1)</script>": 3},
        "columns": {
            "chips": {"missing": 0.25, "unique": 3, "unit": "", "group": "system", "min": 1.0, "max": 4.0},
            "part": {"missing": 0.0, "unique": 40, "unit": "", "group": "processor"},
        },
        "details": {
            "after_published_until": 5,
            "parse_coverage": {"chips": 0.75, "part": 1.0},
            "join_coverage": {"share_of_rows": 0.9, "by_table": {"first": {"parts": 3}}},
        },
    }


def _make_manifests() -> list[dict[str, Any]]:
    shared = {"terms": "Cite the source; estimates are no results.", "homepage": "https://www.spec.org/"}
    present: dict[str, Any] = {
        "source": "fake",
        "title": "Generated results",
        "status": "present",
        "snapshot": "to_2024_12",
        "files": [{"name": "fake.csv.gz", "sha256": "0" * 64, "bytes": 123456}],
        "licence": "SPEC Fair Use",
        "citation": "Generated, not published",
        "reason": "",
        "remedy": "",
    }
    absent: dict[str, Any] = {
        "source": "absent",
        "title": "An absent source",
        "status": "missing",
        "snapshot": None,
        "files": [],
        "licence": "none stated",
        "citation": "Nobody & Co.",
        "reason": "no mirror has it",
        "remedy": "run make retry with a network",
    }
    return [{**shared, **present}, {**shared, **absent}]
