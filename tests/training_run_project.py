"""Champion of generated training runs of language models, made once for all tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from perfcast.data.datasets.llm_scaling.ladder import build
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.uncertainty_fit import fit_uncertainty
from perfcast.inference.champion import build_features, save_champion
from perfcast.predictors.linear import Ridge
from perfcast.testing import olmo_ladder

DATASET, FEATURES = "llm_ladder", ("llm_scaling",)


@cache
def results() -> Path:
    """Return a folder of results with the champion."""
    folder = Path(mkdtemp(prefix="perfcast-training-runs-"))
    raw = {"olmo_ladder": folder / "raw" / "olmo_ladder"}
    olmo_ladder.write(raw["olmo_ladder"], rows=240, seed=3)
    standard = build(raw, {}).table
    table = build_features(DATASET, standard.frame, standard.columns, FEATURES)
    predictor, _ = fit_all_rows(table, {"params": lambda seed: Ridge()}, 0, None)
    calibrated = fit_uncertainty(table, lambda seed: Ridge(), 0, None, 1)
    about = {"dataset": DATASET, "predictor": "ridge", "preset": "quick", "features": list(FEATURES)}
    path = folder / "champion" / DATASET
    path.mkdir(parents=True)
    save_champion(path, predictor, calibrated, standard=standard, table=table, raw=raw, about=about)
    return folder
