"""Table and page of every entity that a champion knows: its estimates, and facts of its published results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from jinja2.utils import htmlsafe_json_dumps

from perfcast import __version__
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import make_entry
from perfcast.inference.parse import ParsedMachines, parse_batch
from perfcast.inference.predict import make_options, predict_machines
from perfcast.report import TEMPLATES
from perfcast.schema.table import Tag
from perfcast.uncertainty.conformal import LEVEL
from perfcast.utils.errors import UserError

MOST = 2
"""Largest value of the enumerated column, such as the number of chips, that the table has."""
TARGET = ["task", "target", "unit"]
ESTIMATED = ["estimate", "low", "high", "trust"]
PUBLISHED = ["published", "published_q1", "published_median", "published_q3", "published_from", "published_to"]
"""Columns of the table: see `tabulate_entities`."""


def tabulate_entities(champion: Champion, *, progress: bool = False) -> pd.DataFrame:
    """Return one row per entity, value of the enumerated column up to `MOST`, task and target.

    An entity is answered as a request that gives its name alone; published results are those of any set-up, without
    those that differ in an identifying column.

    Returns: the names of the entity (`champion.entity`, the enumerated column, group columns), `TARGET`, `ESTIMATED`
    and `PUBLISHED`; the numbers of the latter are a count and quartiles, their dates months, all missing without any.
    Raises: UserError when no name is enough for an answer.
    """
    rules, entity = champion.rules, champion.entity
    names = champion.entity_names.keys
    entries = [make_entry(line, name, {champion.named_field: name}) for line, name in enumerate(names, start=1)]
    machines = parse_batch(entries, champion).numbered()
    if not machines.keys:
        fact = next((str(error) for error in machines.refusals.values()), f"{champion.dataset} names none")
        raise UserError(f"the names of {rules.entity_name}s must be enough for an answer", fact, "use perfcast predict")
    if rules.enumerated:
        machines = machines.take(machines.cells[rules.enumerated] <= MOST)
    keys = [entity, *filter(None, [rules.enumerated])]
    options, read = make_options(neighbors=0, explain=False), [*TARGET, "median", *ESTIMATED[1:]]
    rows = [
        [machines.cells[key][place] for key in keys] + [getattr(each, name) for name in read]
        for place, prediction in enumerate(predict_machines(machines, champion, options, progress=progress))
        for each in prediction.estimates
    ]
    estimates = pd.DataFrame(rows, columns=[*keys, *TARGET, *ESTIMATED])
    published = _summarize_published(champion, machines, keys)
    table = estimates.merge(published, "outer", on=[*keys, *TARGET])
    groups = [name for name in rules.group_columns if name in champion.reference_data.entity_facts]
    table = table.join(champion.reference_data.entity_facts[groups], on=entity)
    table["published"] = table["published"].fillna(0).astype(int)
    table["task"] = pd.Categorical(table["task"], champion.tasks)
    table = table.sort_values([*keys, *TARGET], ignore_index=True)
    table["task"] = table["task"].astype(object).replace(dict(rules.task_titles))
    return table[[*keys, *groups, *TARGET, *ESTIMATED, *PUBLISHED]]


def _summarize_published(champion: Champion, machines: ParsedMachines, keys: Sequence[str]) -> pd.DataFrame:
    """Return count, quartiles and first and last month of the published results of the machines, by the outputs."""
    measured = champion.reference_data.measured
    times, alike = measured.select(tag=Tag.TIME), list(champion.rules.identifying_columns)
    known = pd.DataFrame({name: machines.cells[name] for name in [*keys, *alike]})
    frame = measured.frame.astype(dict.fromkeys((champion.entity, champion.task), object))
    months = frame[times[0]] if times else pd.Series(pd.NaT, frame.index)
    frame = frame.assign(task=frame[champion.task], month=months)
    rows = frame.merge(known, on=keys, suffixes=("", "_of_machine"))
    for name in alike:
        other = rows[f"{name}_of_machine"]
        rows = rows[(rows[name] == other) | rows[name].isna() | other.isna()]
    units = {column.name: column.unit for column in measured.columns}
    parts = []
    for target in champion.predictor.targets_:
        groups = rows.dropna(subset=[target]).groupby([*keys, "task"])
        quartiles = [groups[target].quantile(share) for share in (0.25, 0.5, 0.75)]
        values = [groups.size(), *quartiles, groups["month"].min(), groups["month"].max()]
        part = pd.DataFrame(dict(zip(PUBLISHED, values, strict=True))).reset_index()
        parts.append(part.assign(target=target, unit=units[target]))
    listed = pd.concat(parts)
    return listed.assign(**{name: listed[name].dt.strftime("%Y-%m") for name in PUBLISHED[-2:]})


def render_entities(
    champion: Champion, table: pd.DataFrame, title: str, sources: Sequence[Mapping[str, Any]], csv: str
) -> str:
    """Return the page of a table of entities: one file of HTML that loads nothing.

    Args: `title` is that of the dataset, `sources` their confs with their names as `source`, `csv` the name of the
    file of the table beside the page.
    """
    enumerated = champion.rules.enumerated
    groups = [name for name in champion.rules.group_columns if name in table]
    entities, names = pd.factorize(table[champion.entity])
    of_name = table.drop_duplicates(champion.entity)[groups].astype(object)
    words = [", ".join(str(cell) for cell in row if not pd.isna(cell)) for row in of_name.to_numpy()]
    trusts, trust_names = pd.factorize(table["trust"])
    named = table["task"] + ", " + table["target"] if table["target"].nunique() > 1 else table["task"]
    outputs, output_names = pd.factorize(named)
    numbers = [*ESTIMATED[:3], *PUBLISHED[1:4]]
    shown = table.assign(**{name: table[name].map("{:.4g}".format).astype(float) for name in numbers})
    shown = shown.assign(entity=entities, output=outputs, trust=trusts, units=table[enumerated] if enumerated else None)
    shown = shown[["entity", "units", "output", *ESTIMATED, *PUBLISHED]].astype(object)
    data = {
        "names": list(zip(names, words, strict=True)),
        "trusts": list(trust_names),
        "rows": shown.where(shown.notna(), None).to_numpy().tolist(),
    }
    return TEMPLATES.get_template("known_entities.html").render(
        champion=champion,
        context={"environment": {"perfcast": __version__}},
        csv=csv,
        data=htmlsafe_json_dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False),
        entity=champion.rules.entity_name,
        enumerated=enumerated,
        groups=[name.removeprefix("cpu_") for name in groups],
        level=LEVEL,
        names=len(names),
        outputs=output_names,
        published=table[champion.entity][table["published"] > 0].nunique(),
        refused=len(champion.entity_names.keys) - len(names),
        sources=sources,
        spec=[source for source in sources if "SPEC" in str(source["license"])],
        title=title,
        values=sorted(table[enumerated].unique().astype(int)) if enumerated else [],
    )
