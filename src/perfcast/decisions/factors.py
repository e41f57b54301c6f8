"""Table of factors: every CPU model over a baseline, with watts, as tools of carbon accounting read it."""

from __future__ import annotations

from collections.abc import Sequence
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
from perfcast.inference.suites import Suites
from perfcast.utils.errors import UserError

LICENSE = "estimates by perfcast: CC BY 4.0; published results they rest on: "
_NAMED = {"name": "named", "code_name": "family", "manufacturer": "vendor", "release_date": "launch"}
_OF_BOAVIZTA = """name,code_name,generation,foundry,release_date,frequency,tdp,cores,threads,transistors,process_size,
die_size,io_die_size,io_process_size,total_die_size,total_die_size_source,manufacturer,model_range,source"""
"""Columns of its table of CPU models; those of which nothing is known stay empty."""
FORMATS: dict[str, dict[str, str]] = {
    "table": {},
    "codecarbon": {"Name": "named", "TDP": "tdp", "source": "source"},
    "boavizta": {name: _NAMED.get(name, name) for name in "".join(_OF_BOAVIZTA.split()).split(",")},
    "ccf": {"Architecture": "family", "Min Watts": "idle of a thread", "Max Watts": "full of a thread"},
}
"""Columns that a tool reads, with those of the table; without any, the table as it is."""
_BATCH = 200


def arrange_factors(table: pd.DataFrame, form: str) -> pd.DataFrame:
    """Return the CPU models of known power with the columns of one of FORMATS; those of CCF are means of families."""
    columns = FORMATS[form]
    if not columns:
        return table
    frame = table[table["tdp"].notna() & table["watts full"].notna()]
    words = [name.split() for name in frame["cpu model"]]
    spelled = [" ".join(word.title() if word.isalpha() else word.upper() for word in each) for each in words]
    frame = frame.assign(
        named=frame["vendor"].fillna("").str.cat(spelled, sep=" ").str.strip(),
        model_range=[" ".join(word.title() for word in each if word.isalpha()) for each in words],
        threads=frame["vCPUs"],
    )
    if form == "ccf":
        for name in ("idle", "full"):
            frame[f"{name} of a thread"] = frame[f"watts {name}"] / frame["threads"]
        source = frame["source"].iloc[0]
        frame = frame.groupby("family")[[*columns.values()][1:]].mean().reset_index()
        return frame.set_axis([*columns], axis=1).assign(source=source)
    return frame.reindex(columns=[*columns.values()]).set_axis([*columns], axis=1)


def list_factors(baseline: str, suites: Suites, options: PredictOptions) -> pd.DataFrame:
    """Return a row for one processor of every CPU model with facts, with its ratios to one of the baseline.

    Raises: UserError where the baseline, or the champion, cannot be used.
    """
    first = suites.first
    shown, facts = first.rules.presentation, first.reference_data.entity_facts
    if not shown.fact_columns:
        raise UserError("factors must be those of CPU models", f"{first.dataset} has none")
    key = first.entity_names.find(baseline).key
    known = facts[list(shown.fact_columns.values())].set_axis([*shown.fact_columns], axis=1)
    known = known[~known.index.isin(list_instances(first).index)]
    for name in known.select_dtypes("datetime"):
        known[name] = known[name].dt.strftime("%Y-%m-%d")
    if key not in known.index:
        raise UserError("the baseline must be a known CPU model", f"it is {baseline[:60]!r}", "see perfcast similar")
    others = [name for name in known.index if name != key]
    unit: dict[str, object] = {str(first.rules.typical_values.enumerated): 1}
    rows: dict[str, dict[str, Any]] = {}
    for start in range(0, len(others), _BATCH):
        names = [key, *others[start : start + _BATCH]]
        placed = [make_entry(place, name, {first.named_field: name, **unit}) for place, name in enumerate(names)]
        for champion in suites:
            for place, row in _compare(placed, champion, options).items():
                rows[names[place]] = rows.get(names[place], {}) | row
    table = known.join(pd.DataFrame.from_dict(rows, orient="index"), how="inner").rename_axis("cpu model").reset_index()
    sources = ", ".join(dict.fromkeys(each.source for each in suites))
    return table.assign(
        month=suites.name_month(options.when),
        revision=f"perfcast {__version__}, {suites.identity[1]}, results to {suites.identity[3]}",
        source=f"{LICENSE}{sources}",
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
