"""Project with a champion of generated results, made once for all tests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd

from perfcast.domains.servers.datasets.spec_cpu.cpu2017 import build
from perfcast.domains.servers.server_rules import SPEC_CPU2017 as RULES
from perfcast.domains.servers.testing import spec_cpu2017
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.uncertainty_fit import fit_uncertainty
from perfcast.inference import (
    Champion,
    Predictions,
    PredictOptions,
    load_champion,
    read_machines,
)
from perfcast.inference.cells import Cells, read_column
from perfcast.inference.champion import build_features
from perfcast.inference.champion_files import save_champion
from perfcast.inference.parse import ParsedMachine, ParsedMachines, parse_machine, stack_machines
from perfcast.inference.predict import answer_machines
from perfcast.inference.suites import Measured, Suites
from perfcast.predictors.linear import Ridge
from perfcast.schema.table import Role, Table, build_table, select

FEATURES = ("processor", "memory", "system", "workload")
SUITES = ["CFP2017rate", "CFP2017speed", "CINT2017rate", "CINT2017speed"]
TITLES = ["SPECrate2017_fp_base", "SPECspeed2017_fp_base", "SPECrate2017_int_base", "SPECspeed2017_int_base"]
"""The names of the suites in answers."""
NOTICE = "SPEC CPU2017 retires on 2026-11-03"
KNOWN = {"processor": "Xeon Gold 6148", "chips": 2}
PLAIN = PredictOptions(assume=False, neighbors=0, explain=False)


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
    results = Path(mkdtemp(prefix="perfcast-champion-"))
    raw = {"spec_cpu2017": results / "raw" / "spec_cpu2017"}
    raw["spec_cpu2017"].mkdir(parents=True)
    spec_cpu2017.write(raw["spec_cpu2017"], rows=400, seed=5)
    standard = build(raw, {}).table
    table = build_features("spec_cpu2017", standard.frame, standard.columns, FEATURES)
    predictor = fit_all_rows(table, lambda seed: Ridge(), 0, None)
    calibrated = fit_uncertainty(table, lambda seed: Ridge(), 0, None, 2)
    about = {"dataset": "spec_cpu2017", "predictor": "ridge", "preset": "quick", "features": list(FEATURES)}
    about |= {"seed": 0, "notice": NOTICE}
    about |= {"source": "https://www.spec.org/cpu2017/results/", "retrieved": "2026-03"}
    folder = results / "champion" / "spec_cpu2017"
    folder.mkdir(parents=True)
    save_champion(folder, predictor, calibrated, standard=standard, table=table, raw=raw, about=about)
    return Project(results, standard, load_champion(folder, "spec_cpu2017"), raw)


def predict(machines: object, champion: Champion | None = None, options: PredictOptions = PLAIN) -> Predictions:
    """Return the predictions of described machines by a champion, by default the project's."""
    known = champion or project().champion
    parsed = [parse_machine(entry, known) for entry in read_machines(machines)]
    return predict_parsed(_stack(parsed, known), known, options)


def predict_parsed(
    machines: ParsedMachines, champion: Champion, options: PredictOptions = PLAIN, measured: Measured = ()
) -> Predictions:
    """Return the predictions of parsed machines; tasks have their own names."""
    batches = answer_machines([machines], Suites(champion), options, measured)
    predictions = [each for answers in batches for each in answers.predictions.values()]
    features = select(champion.predictor.columns_, role=Role.FEATURE)
    return Predictions(*champion.identity, tuple(predictions), len(features))


def _stack(parsed: list[ParsedMachine], champion: Champion) -> ParsedMachines:
    """Return machines once each, also those without the enumerated column. Raises: the first error of one."""
    machines = stack_machines(parsed, champion, expand=False)
    for error in machines.refusals.values():
        raise error
    return machines


def make_machines(frame: pd.DataFrame) -> ParsedMachines:
    """Return the machines of a frame, one per row, with its index as their lines."""
    rows = zip(frame.index.tolist(), frame.astype(object).to_dict("records"), strict=True)
    return _stack([ParsedMachine(line, cells) for line, cells in rows], project().champion)


def read_cells(frame: pd.DataFrame) -> Cells:
    """Return a frame as cells of machines."""
    return Cells({str(name): read_column(values) for name, values in frame.items()}, frame.index.to_numpy())


def make_cells(**cells: object) -> Cells:
    """Return one machine of every standard column, missing but for the given cells, as imputation takes it."""
    columns = project().standard.columns
    full = pd.DataFrame({name: [value] for name, value in cells.items()}).reindex(
        columns=[each.name for each in columns]
    )
    return read_cells(build_table("spec_cpu2017", full, columns).frame)


def is_possible(row: pd.DataFrame) -> bool:
    """Check that a machine of standard columns breaks no limit."""
    return not any(RULES.limits.find_violations(read_cells(row)))
