"""Generated cups, the last of them without a pressure; the file of this domain has 18 rows of seed 0."""

from pathlib import Path

import numpy as np
import pandas as pd


def write(folder: Path, *, rows: int, seed: int) -> None:
    """Write brews.csv: times are the puck's resistance, times the habit of the machine, with 3 % noise."""
    rng, machine = np.random.default_rng(seed), np.arange(rows) // 3
    dose, grind = rng.integers(14, 22, rows), rng.integers(200, 400, rows)
    bar = rng.choice([6.0, 9.0, 12.0], rows)[machine]
    seconds = 1e6 * dose / grind**2 / bar * np.exp(rng.normal(0, 0.1, rows)[machine] + rng.normal(0, 0.03, rows))
    bar[-1] = np.nan
    columns = {"machine": [f"machine {number + 1}" for number in machine], "dose_g": dose, "grind_um": grind}
    columns |= {"pressure_bar": bar, "espresso": seconds.round(1), "lungo": (2.1 * seconds).round(1)}
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(columns).to_csv(folder / "brews.csv", index=False, lineterminator="\n")
