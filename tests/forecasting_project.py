"""A champion of generated results, made once for all tests that ask one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from perfcast import experiment
from perfcast.calibrating import calibrate
from perfcast.datasets.spec_cpu2017 import build
from perfcast.fake import cpu_catalog, spec_cpu2017
from perfcast.forecasting import Champion, load_champion
from perfcast.forecasting.featuring import featured
from perfcast.forecasting.saving import save_champion
from perfcast.predictors.ridge import RidgePredictor
from perfcast.schema import Table

FEATURES = ("processor", "memory", "system", "workload")
SUITES = ["CFP2017rate", "CFP2017speed", "CINT2017rate", "CINT2017speed"]


@dataclass(frozen=True)
class Project:
    """A folder of results with a champion, and what it was made from."""

    results: Path
    standard: Table
    champion: Champion
    raw: dict[str, Path]

    @property
    def folder(self) -> Path:
        return self.results / "champion" / "spec_cpu2017"


@cache
def project() -> Project:
    """Return the project, in a temporary folder of its own."""
    results = Path(mkdtemp(prefix="perfcast-forecasting-"))
    raw = {name: results / "raw" / name for name in ("spec_cpu2017", "cpu_catalog")}
    for (_, folder), fake in zip(raw.items(), (spec_cpu2017, cpu_catalog), strict=True):
        folder.mkdir(parents=True)
        fake.write(folder, rows=400, seed=5)
    standard = build(raw, {"published_until": None}).table
    table = featured("spec_cpu2017", standard.frame, standard.columns, FEATURES)
    predictor, _ = experiment.fit_all(table, {"params": lambda seed: RidgePredictor()}, 0, None)
    calibrated = calibrate(table, lambda seed: RidgePredictor(), 0, None, 2)
    about = {"dataset": "spec_cpu2017", "predictor": "ridge", "schedule": "quick", "features": list(FEATURES)}
    folder = results / "champion" / "spec_cpu2017"
    folder.mkdir(parents=True)
    save_champion(folder, predictor, calibrated, standard=standard, table=table, raw=raw, about=about)
    return Project(results, standard, load_champion(folder, "spec_cpu2017"), raw)
