"""Champions of generated results: fitted and saved as the pipeline does, with a linear predictor by default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

from perfcast import plugins
from perfcast.data.standardized import Standardized
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.uncertainty_fit import fit_uncertainty
from perfcast.inference.champion import build_features
from perfcast.inference.champion_files import save_champion
from perfcast.predictors.linear import Ridge
from perfcast.predictors.predictor import Predictor


def write_champion(
    dataset: str,
    features: tuple[str, ...],
    build: Callable[..., Standardized],
    source: str,
    rows: int,
    make: Callable[[], Predictor] = Ridge,
) -> Path:
    """Write the champion of a dataset made of one generated source, and return its folder of results."""
    folder = Path(mkdtemp(prefix=f"perfcast-{dataset}-"))
    raw = {source: folder / "raw" / source}
    plugins.load("testing", source).write(raw[source], rows=rows, seed=3)
    standard = build(raw, {}).table
    table = build_features(dataset, standard.frame, standard.columns, features)
    predictor = fit_all_rows(table, lambda seed: make(), 0, None)
    calibrated = fit_uncertainty(table, lambda seed: make(), 0, None, 1)
    about = {"dataset": dataset, "predictor": "ridge", "preset": "quick", "features": list(features)}
    path = folder / "champion" / dataset
    path.mkdir(parents=True)
    save_champion(path, predictor, calibrated, standard=standard, table=table, raw=raw, about=about)
    return folder
