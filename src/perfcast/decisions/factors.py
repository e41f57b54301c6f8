"""Table of factors: every CPU model over a baseline, with watts, as tools of carbon accounting read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perfcast import __version__
from perfcast.decisions.criteria import read_candidate
from perfcast.decisions.dimensions import list_instances
from perfcast.decisions.fleet_power import ESTIMATED, MEASURED, draw_power
from perfcast.decisions.joint_scores import predict_scores
from perfcast.decisions.ranking import complete_facts
from perfcast.decisions.sizing_request import read_sizing
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import MachineEntry, make_entry
from perfcast.inference.options import PredictOptions
from perfcast.inference.prediction import ESTIMATE, ChampionAnswer
from perfcast.inference.suites import Suites
from perfcast.utils.errors import UserError

LICENSE = "estimates by perfcast: CC BY 4.0; published results they rest on: "
FORMATS = ("table", "codecarbon", "boavizta", "ccf")
_BATCH = 200


@dataclass(frozen=True, repr=False)
class Factors(ChampionAnswer):
    """Rows of CPU models, one processor each, with their ratios to the `baseline` per chip and per thread."""

    level: float
    baseline: str
    rows: tuple[Mapping[str, Any], ...]
    license: str
    notes: tuple[str, ...] = ()
    kind: str = ESTIMATE

    def to_frame(self) -> pd.DataFrame:
        """Return one row per CPU model."""
        return pd.DataFrame(list(self.rows))

    def arrange(self, form: str) -> pd.DataFrame:
        """Return the table with the columns that a tool reads, one of `FORMATS`; only models with known power."""
        frame = self.to_frame()
        if form == "table":
            return frame
        frame = frame[frame["tdp"].notna() & frame["watts full"].notna()]
        words = [name.split() for name in frame["cpu model"]]
        named = [" ".join(word.title() if word.isalpha() else word.upper() for word in each) for each in words]
        frame = frame.assign(named=frame["vendor"].fillna("").str.cat(named, sep=" ").str.strip())
        lines = [" ".join(word.title() for word in each if word.isalpha()) for each in words]
        if form == "codecarbon":
            columns = {"Name": frame["named"], "TDP": frame["tdp"], "source": frame["source"]}
        elif form == "boavizta":
            # the names of its table, empty where nothing is known
            empty = dict.fromkeys(_OF_BOAVIZTA)
            names = {"name": "named", "code_name": "family", "manufacturer": "vendor", "release_date": "launch"}
            columns = empty | {name: frame[own] for name, own in names.items()} | {"model_range": lines}
            columns |= {name: frame[name] for name in ("tdp", "cores")} | {
                "threads": frame["vCPUs"],
                "source": frame["source"],
            }
        else:
            of_thread = {"Min Watts": frame["watts idle"], "Max Watts": frame["watts full"]}
            watts = pd.DataFrame({name: each / frame["vCPUs"] for name, each in of_thread.items()})
            means = watts.groupby(frame["family"]).mean().rename_axis("Architecture").reset_index()
            return means.assign(source=self.license)
        return pd.DataFrame(columns)


_OF_BOAVIZTA = (
    *("name", "code_name", "generation", "foundry", "release_date", "frequency", "tdp", "cores", "threads"),
    *("transistors", "process_size", "die_size", "io_die_size", "io_process_size", "total_die_size"),
    *("total_die_size_source", "manufacturer", "model_range", "source"),
)


def list_factors(baseline: str, suites: Suites, options: PredictOptions) -> Factors:
    """List every CPU model with facts. Raises: UserError where the baseline, or the champion, cannot be used."""
    first = suites.first
    shown, facts = first.rules.presentation, first.reference_data.entity_facts
    if not shown.fact_columns:
        raise UserError("factors must be those of CPU models", f"{first.dataset} has none")
    own = first.entity_names.find(baseline).key
    known = facts[list(shown.fact_columns.values())].set_axis([*shown.fact_columns], axis=1)
    known = known[~known.index.isin(list_instances(first))]
    for name in known.select_dtypes("datetime"):
        known[name] = known[name].dt.strftime("%Y-%m-%d")
    if own not in known.index:
        raise UserError("the baseline must be a known CPU model", f"it is {baseline[:60]!r}", "see perfcast similar")
    others = [name for name in known.index if name != own]
    unit: dict[str, object] = {str(first.rules.typical_values.enumerated): 1}
    rows: dict[str, dict[str, Any]] = {}
    for start in range(0, len(others), _BATCH):
        names = [own, *others[start : start + _BATCH]]
        placed = [make_entry(place, name, {first.named_field: name, **unit}) for place, name in enumerate(names)]
        for champion in suites:
            for place, row in _compare(placed, champion, options).items():
                rows[names[place]] = rows.get(names[place], {}) | row
    listed = known.astype(object).where(known.notna(), None).to_dict("index")
    license_line = LICENSE + ", ".join(dict.fromkeys(each.source for each in suites))
    month = suites.name_month(options.when)
    revision = f"perfcast {__version__}, {suites.identity[1]}, results to {suites.identity[3]}"
    made = {"month": month, "revision": revision, "source": license_line}
    return Factors(
        *suites.identity,
        month=month,
        level=options.level,
        baseline=own,
        rows=tuple({"cpu model": name, **listed[name], **row, **made} for name, row in rows.items()),
        license=license_line,
        notes=suites.notices,
    )


def _compare(placed: Sequence[MachineEntry], champion: Champion, options: PredictOptions) -> dict[int, dict[str, Any]]:
    """Return the cells of every machine that can be used, by place; the first is the baseline."""
    mix, titles = read_sizing(champion).mix, champion.rules.names.task_titles
    scores, errors = predict_scores(placed, champion, mix, options, ())
    if scores is None or 0 in errors:
        raise errors[0]
    candidates = {place: read_candidate(entry) for place, entry in enumerate(placed)}
    facts = complete_facts(scores.machines, candidates, champion, assume=options.assume)
    power = draw_power(placed, facts, champion, options)
    logs, levels = scores.joint.logs, [(1 - options.level) / 2, 0.5, (1 + options.level) / 2]
    rows: dict[int, dict[str, Any]] = {}
    for place in facts:
        cells: dict[str, Any] = dict(facts[place].sizes)
        threads = facts[place].sizes["vCPUs"] / facts[0].sizes["vCPUs"]
        drawn: dict[str, np.ndarray] = {}
        for task in (output.task for output in mix):
            title, row = titles.get(task, task), scores.row_of[place, task]
            ratios = np.exp(logs[row] - logs[scores.row_of[0, task]])
            drawn |= {f"{title} per chip": ratios, f"{title} per thread": ratios / threads}
            cells[f"{title} basis"] = MEASURED if scores.joint.spreads[row].is_published else ESTIMATED
        if place in power:
            drawn |= {"watts full": power[place].full, "watts idle": power[place].idle}
            cells["watts basis"] = power[place].basis
        for name, values in drawn.items():
            ends = np.quantile(values, levels, method="inverted_cdf").tolist()
            cells |= dict(zip((f"{name} low", name, f"{name} high"), ends, strict=True))
        rows[place] = cells
    return rows
