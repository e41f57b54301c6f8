"""Two champions of generated results, side by side: that of SPEC CPU2026 reads the estimates of the other."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from champion_project import FEATURES, project

from perfcast.domains.servers.datasets.spec_cpu.cpu2026 import build
from perfcast.domains.servers.testing import spec_cpu2026
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.uncertainty_fit import fit_uncertainty
from perfcast.inference import load_champion
from perfcast.inference.bridge import Base
from perfcast.inference.bridged import BridgedPair
from perfcast.inference.champion import build_features, save_champion
from perfcast.predictors.linear import Ridge

DATASETS = ["spec_cpu2017", "spec_cpu2026"]
TASKS = {f"{suite}2026{mode}": f"{suite}2017{mode}" for suite in ("CINT", "CFP") for mode in ("rate", "speed")}


@cache
def bridged_results() -> Path:
    """Return a folder of results with the champion of `project`, and one of SPEC CPU2026 that rests on it."""
    results = Path(mkdtemp(prefix="perfcast-bridged-"))
    folder = results / "champion" / "spec_cpu2026"
    shutil.copytree(project().folder, results / "champion" / "spec_cpu2017")
    raw = {"spec_cpu2026": results / "raw" / "spec_cpu2026", "cpu_catalog": project().raw["cpu_catalog"]}
    raw["spec_cpu2026"].mkdir(parents=True)
    spec_cpu2026.write(raw["spec_cpu2026"], rows=160, seed=5)
    standard = build(raw, {}).table
    table = build_features("spec_cpu2026", standard.frame, standard.columns, FEATURES)
    table = Base(project().champion, "cpu2017", TASKS).add_estimates(table)
    predictor, _ = fit_all_rows(table, {"params": lambda seed: Ridge()}, 0, None)
    calibrated = fit_uncertainty(table, lambda seed: Ridge(), 0, None, 2)
    about = {"dataset": "spec_cpu2026", "predictor": "ridge", "preset": "quick", "features": list(FEATURES)}
    about |= {"bridge": {"dataset": "spec_cpu2017", "name": "cpu2017", "tasks": TASKS, "without": None}}
    folder.mkdir(parents=True)
    made = {"standard": standard, "table": table, "raw": raw, "about": about, "base": project().folder}
    save_champion(folder, predictor, calibrated, **made)
    return results


@cache
def bridged_pair() -> BridgedPair:
    """Return the champions of `bridged_results`."""
    return BridgedPair(*(load_champion(bridged_results() / "champion" / name, name) for name in DATASETS))
