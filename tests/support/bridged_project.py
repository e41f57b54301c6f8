"""Results with the champion of the generated SPEC CPU2017, and one of SPEC CPU2026 that rests on it."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from champion_project import FEATURES, SUITES, TITLES, project

from perfcast.domains.servers.datasets.spec_cpu.cpu2026 import build
from perfcast.domains.servers.testing import spec_cpu2026
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.uncertainty_fit import fit_uncertainty
from perfcast.inference.bridge import Bridge
from perfcast.inference.champion import build_features
from perfcast.inference.champion_files import load_champion, save_champion
from perfcast.inference.suites import Suites
from perfcast.predictors.linear import Ridge

DATASET = "spec_cpu2026"
LATER = [title.replace("2017", "2026") for title in TITLES]


@cache
def bridged_results() -> Path:
    """Return the folder of results, a temporary one."""
    folder = Path(mkdtemp(prefix="perfcast-bridged-"))
    shutil.copytree(project().folder, folder / "champion" / "spec_cpu2017")
    raw = {DATASET: folder / "raw" / DATASET}
    spec_cpu2026.write(raw[DATASET], rows=200, seed=5)
    standard = build(raw, {}).table
    tasks = {suite.replace("2017", "2026"): suite for suite in SUITES}
    table = build_features(DATASET, standard.frame, standard.columns, FEATURES)
    table = Bridge(project().champion, "cpu2017", tasks).add_estimates(table)
    predictor = fit_all_rows(table, lambda seed: Ridge(), 0, None)
    calibrated = fit_uncertainty(table, lambda seed: Ridge(), 0, None, 2)
    about = {"dataset": DATASET, "predictor": "ridge", "preset": "quick", "features": list(FEATURES)}
    about |= {"bridge": {"dataset": "spec_cpu2017", "name": "cpu2017", "tasks": tasks, "without": None}}
    about |= {"source": "https://www.spec.org/cpu2026/results/", "retrieved": "2026-06-19"}
    later, parts = folder / "champion" / DATASET, {"standard": standard, "table": table, "raw": raw, "about": about}
    save_champion(later, predictor, calibrated, **parts, base=project().folder)
    return folder


@cache
def bridged_pair() -> Suites:
    """Return both champions."""
    return Suites(project().champion, load_champion(bridged_results() / "champion" / DATASET))
