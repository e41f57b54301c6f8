"""First results of SPEC CPU2017, as few as SPEC CPU2026 has, with the columns of the latter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from perfcast.domains.servers.datasets.spec_cpu import cpu2017, cpu2026
from perfcast.domains.servers.datasets.spec_cpu.dump_file import Quarantine
from perfcast.domains.servers.parsing.distinct_texts import map_distinct
from perfcast.domains.servers.processors.announcements import find_core
from perfcast.domains.servers.processors.cpu_names import cpu_model_key, find_family

_LAST = pd.Timestamp("2018-06")
"""Last month of publication: a year after the release of the suite."""
_CPU_MODELS, _RESULTS = 27, 9
"""CPU models that are drawn, and results of each from which on no further system of it is drawn: those of CPU2026."""


def _screen(frame: pd.DataFrame, quarantine: Quarantine) -> pd.DataFrame:
    """Keep results of the first year: drawn CPU models whose core the tables state, and drawn systems of each."""
    frame = cpu2017.screen_scores(frame, quarantine, first="2017-06")
    model, system = map_distinct(frame["Processor"], cpu_model_key).astype("str"), frame["System"].astype("str")
    cores = model.map({name: find_core(find_family(name)) for name in model.unique()})
    eligible, rng = (frame["published_month"] <= _LAST) & cores.notna(), np.random.default_rng(0)
    sizes = frame[eligible].groupby([model, system]).size()
    names = sizes.index.unique(0)
    models = rng.choice(names, min(_CPU_MODELS, len(names)), replace=False)
    sizes = sizes.sample(frac=1, random_state=rng).loc[lambda each: each.index.isin(models, level=0)]
    drawn = sizes.index[sizes.groupby(level=0).cumsum() - sizes < _RESULTS]
    left = ~(eligible & pd.MultiIndex.from_arrays([model, system]).isin(drawn))
    return quarantine.reject(frame, left, "not_drawn", frame["result_id"].astype("str"))


DUMP = replace(
    cpu2026.DUMP, source="spec_cpu2017", suites=cpu2017.DUMP.suites, screen=_screen, optional=(), table="cpu2026"
)

build = DUMP.build
