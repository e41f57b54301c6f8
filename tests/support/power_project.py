"""Champion of power of generated results, made once for all tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from perfcast.domains.servers.datasets.spec_java.power import build
from perfcast.domains.servers.testing import spec_power
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.uncertainty_fit import fit_uncertainty
from perfcast.inference.champion import build_features
from perfcast.inference.champion_files import save_champion
from perfcast.predictors.linear import Ridge

FEATURES = ("processor", "memory", "system", "node_power")


@cache
def power_folder() -> Path:
    """Return the folder of the champion, in a temporary one."""
    results = Path(mkdtemp(prefix="perfcast-power-"))
    raw = {"spec_power": results / "raw" / "spec_power"}
    raw["spec_power"].mkdir(parents=True)
    spec_power.write(raw["spec_power"], rows=300, seed=5)
    standard = build(raw, {}).table
    table = build_features("spec_power", standard.frame, standard.columns, FEATURES)
    predictor = fit_all_rows(table, lambda seed: Ridge(), 0, None)
    calibrated = fit_uncertainty(table, lambda seed: Ridge(), 0, None, 2)
    about = {"dataset": "spec_power", "predictor": "ridge", "preset": "quick", "features": list(FEATURES)}
    about |= {"seed": 0, "candidate": {"candidate": "quick"}}
    folder = results / "champion" / "spec_power"
    folder.mkdir(parents=True)
    save_champion(folder, predictor, calibrated, standard=standard, table=table, raw=raw, about=about)
    return folder
