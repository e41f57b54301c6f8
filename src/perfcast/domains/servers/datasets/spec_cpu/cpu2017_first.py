"""SPEC CPU2017 in its first year, as few results as SPEC CPU2026 has: on a bridge it rehearses that of SPEC CPU2026."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.standardized import Standardized
from perfcast.domains.servers.datasets.spec_cpu import cpu2017, cpu2026
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine
from perfcast.domains.servers.parsing.distinct_texts import map_distinct
from perfcast.domains.servers.processors.announcements import find_core
from perfcast.domains.servers.processors.cpu_names import cpu_model_key, find_family

LAST = pd.Timestamp("2018-06")
"""Last month of publication: a year after the release of the suite."""


def _screen(frame: pd.DataFrame, quarantine: Quarantine, *, cpu_models: int, results: int) -> pd.DataFrame:
    """Keep the first year of drawn CPU models: whole systems of each, drawn until it has so many `results`."""
    frame = cpu2017.screen_scores(frame, quarantine, first="2017-06")
    late = frame["published_month"] > LAST
    frame = quarantine.reject(frame, late, "after_the_first_year", frame.loc[late, "result_id"].astype("str"))
    rng = np.random.default_rng(0)
    coreless = map_distinct(frame["Processor"], lambda name: find_core(find_family(cpu_model_key(name))) is None)
    frame = quarantine.reject(frame, coreless, "core_unknown", frame.loc[coreless, "Processor"].astype("str"))
    models = map_distinct(frame["Processor"], cpu_model_key).astype("str")
    names = np.sort(models.unique())
    drawn = rng.choice(names, min(cpu_models, len(names)), replace=False)
    sizes = frame.groupby([models, frame["System"].astype("str")]).size().sample(frac=1, random_state=rng)
    kept = sizes.index[sizes.groupby(level=0).cumsum() - sizes < results]
    systems = pd.MultiIndex.from_arrays([models, frame["System"].astype("str")])
    left = pd.Series(~(models.isin(drawn).to_numpy() & systems.isin(kept)), index=frame.index)
    return quarantine.reject(frame, left, "not_drawn", frame.loc[left, "result_id"].astype("str"))


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize drawn results with the columns of SPEC CPU2026; the other `options` are those of the draw."""
    draw = {name: options[name] for name in ("cpu_models", "results")}
    dump = replace(
        cpu2026.DUMP,
        source=cpu2017.DUMP.source,
        suites=cpu2017.DUMP.suites,
        screen=partial(_screen, **draw),
        optional=(),
        table="cpu2026",
    )
    return dump.build(raw, options)
