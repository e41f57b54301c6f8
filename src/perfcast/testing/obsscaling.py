"""Generated scores of language models in benchmarks and abilities, shaped like the published files, with defects.

The numbers are made up: scores are sigmoids of an ability to which compute adds, and describe no real model.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from perfcast.data.datasets.llm_scaling.observed_models import ABILITIES, ABILITY_FILE, BENCHMARK_FILE, BENCHMARKS
from perfcast.utils.io import atomic_path

FAMILIES = ("Alder", "Birch", "Cedar", "Dogwood", "Elm")
_NOISE = 0.15


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write both files: about `rows` measured abilities, models without compute, and broken cells."""
    random = np.random.default_rng(seed)
    models, abilities = [], []
    for place in range(max(rows // len(ABILITIES), 12)):
        family = place % len(FAMILIES)
        size, length = float(np.exp(random.uniform(-1, 5))), float(np.exp(random.uniform(-1, 2.5)))
        skill = 0.5 * np.log(size * length) + 0.3 * family
        name = f"{FAMILIES[family].lower()}/{FAMILIES[family]}-{place}"
        benchmarks = [_share(skill - 2 - 0.2 * j, 0.1, random) for j in range(len(BENCHMARKS))]
        shares: list[object] = [
            round(_share(3 * skill - 7 - 0.4 * j, chance, random) * questions) / questions
            for j, (_, chance, questions) in enumerate(ABILITIES.values())
        ]
        models.append([name, FAMILIES[family], size, length, 6 * size * length, *benchmarks])
        abilities.append([name, *shares])
    models[3][4:6] = ["", ""]
    models[3][3] = ""
    models[5][6] = ""
    abilities[6][1] = ""
    abilities[7][2] = "none"
    abilities[8][2] = 1.5
    folder.mkdir(parents=True, exist_ok=True)
    facts = ["Model", "Model Family", "Model Size (B)", "Pretraining Data Size (T)", "FLOPs (1E21)"]
    _write(folder / BENCHMARK_FILE, [*facts, *BENCHMARKS], models)
    _write(folder / ABILITY_FILE, ["Model", *ABILITIES], abilities)
    (folder / "LICENSE").write_text("Generated.\n", encoding="utf-8")


def _share(score: float, chance: float, random: np.random.Generator) -> float:
    return float(chance + (1 - chance) / (1 + np.exp(-score - random.normal(0, _NOISE))))


def _write(path: Path, heading: Sequence[str], records: Sequence[Sequence[object]]) -> None:
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heading)
        writer.writerows(records)
