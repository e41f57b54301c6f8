"""Is every run the run that it says to be, and not another one's forecasts once more?"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from perfcast.audit.base import Evidence, Looked, Run
from perfcast.io import read_object
from perfcast.predictors.base import Predictor

MEANING = "runs of different predictors, and of different seeds of a predictor with randomness, must differ"
REMEDY = "delete the run's folder and train it again"
LEAST_ROWS = 20
LEAST_VALUES = 10
"""Rows, and different predictions among them, below which two predictors may well agree to the last bit."""


def look(evidence: Evidence) -> Looked:
    """Compare the bytes of all predictions of a split, and every run's config.yaml with its folder.

    Two predictors of one family (a base class in common beside `Predictor`) may agree where what sets them apart has
    no weight; they then differ in what they rehearsed. Seeds are complained of where they agree on every split.
    """
    found = [problem for run in evidence.runs for problem in _misnamed(evidence.table.dataset, run)]
    alike: dict[str, dict[tuple[int, int], list[bool]]] = {}
    answers = 0
    for split in evidence.splits:
        runs = [run for run in evidence.runs if run.split == split]
        digests = {run.predictor: _digests(run.predictions()) for run in runs}
        answers += sum(map(len, digests.values()))
        for one, other in combinations(runs, 2):
            same = set(digests[one.predictor].values()) & set(digests[other.predictor].values())
            if same and not _of_one_family(one, other):
                found.append(f"{one.predictor} and {other.predictor} have equal predictions on {split}")
        for run in runs:
            if run.predictor in evidence.stochastic:
                for pair in combinations(sorted(digests[run.predictor]), 2):
                    equal = digests[run.predictor][pair[0]] == digests[run.predictor][pair[1]]
                    alike.setdefault(run.predictor, {}).setdefault(pair, []).append(equal)
    for predictor, pairs in alike.items():
        for seeds, agree in pairs.items():
            if all(agree):
                found.append(f"{predictor} has equal predictions under the seeds {seeds[0]} and {seeds[1]}")
    return Looked(f"{answers} sets of predictions of {len(evidence.runs)} runs", tuple(found))


def _misnamed(dataset: str, run: Run) -> list[str]:
    """Compare what config.yaml says of a run with where the run lies."""
    about = run.about()
    if not about:
        return []
    said = (about["dataset"]["name"], about["split"], about["predictor"]["name"])
    lies = (dataset, run.split, run.predictor)
    return [] if said == lies else [f"the run {'/'.join(lies)} says in its config.yaml that it is {'/'.join(said)}"]


def _digests(frame: pd.DataFrame) -> dict[int, str]:
    """Return the digest of the predictions by seed; nothing for too few of them to tell."""
    found = {}
    for seed in sorted(set(frame["seed"].tolist())):
        part = frame[frame["seed"] == seed]
        ordered = part.sort_values(["fold", "target", "row"], kind="stable")
        if ordered["row"].nunique() >= LEAST_ROWS and ordered["predicted"].nunique() >= LEAST_VALUES:
            values = ordered["predicted"].to_numpy(dtype=float).tobytes()
            found[int(seed)] = hashlib.sha256(values).hexdigest()
    return found


def _of_one_family(one: Run, other: Run) -> bool:
    """Tell whether two runs are of one family of predictors and rehearsed differently."""
    first, second = _bases(one), _bases(other)
    shared = {base for base in first & second if issubclass(base, Predictor) and base is not Predictor}
    if not shared:
        return False
    tables = [run.rehearsals() for run in (one, other)]
    return not _equal(tables)


def _equal(tables: Sequence[pd.DataFrame]) -> bool:
    first, second = (table.get("predicted", pd.Series(dtype=float)).to_numpy(dtype=float) for table in tables)
    return len(first) == len(second) and first.tobytes() == second.tobytes()


def _bases(run: Run) -> set[type]:
    """Return the classes of a run's stored predictor; none where no model is stored."""
    path = run.folder / "model" / "predictor.json"
    if not path.is_file():
        return set()
    module, _, name = str(read_object(path, "class")["class"]).partition(":")
    if not module.startswith("perfcast.predictors."):
        return set()
    return set(getattr(importlib.import_module(module), name).__mro__)
