"""Generated points of a figure of losses, shaped like the published file, with possible defects.

The numbers are made up: they follow a scaling law with noise, and describe no real model.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from perfcast.testing.olmo_ladder import law_of
from perfcast.utils.io import atomic_path

FILE = "svg_extracted_data.csv"
HEADER = ("x", "y", "color", "Model Size", "Training FLOP", "hex_color", "loss")


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write the file with `rows` sound points, one whose loss is no number and one of no size."""
    random = np.random.default_rng(seed)
    params = np.exp(random.uniform(np.log(5e7), np.log(1.6e10), rows))
    tokens = params * np.exp(random.uniform(np.log(1), np.log(300), rows))
    records: list[tuple[object, ...]] = [
        (1.0, 1.0, "#000000", size, 6 * size * length, "#000000", law_of(size, length) * np.exp(random.normal(0, 3e-3)))
        for size, length in zip(params, tokens, strict=True)
    ]
    records += [(1.0, 1.0, "#000000", 1e9, 1e20, "#000000", "none"), (1.0, 1.0, "#000000", 0, 1e20, "#000000", 3.0)]
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_path(folder / FILE) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(records)
