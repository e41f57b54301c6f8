"""Watts of a thread by family, at idle and at full load, as the table of coefficients of Cloud Carbon Footprint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from perfcast.decisions.known_entities import ESTIMATED, tabulate_entities
from perfcast.domains.servers.processors.facts import family_table
from perfcast.schema.table import Tag

if TYPE_CHECKING:
    from perfcast.inference.champion import Champion

_ENDS = {"": 0.5, " Low": 0.05, " High": 0.95}
"""End of a column -> quantile among the machines of a family."""
_KINDS = ("Min", "Max")
_OF_SERVERS = ("server", "dense")
"""Ends of the lineages of families of servers."""
_RECENT = pd.DateOffset(years=3)
_NAMES = {
    **{"Skylake-SP": "Skylake", "Cascade Lake-SP": "Cascade Lake", "Coffee Lake E": "Coffee Lake"},
    **{"Naples": "EPYC 1st Gen", "Rome": "EPYC 2nd Gen", "Milan": "EPYC 3rd Gen"},
    **{f"{name}-EP": name for name in ("Sandy Bridge", "Ivy Bridge", "Haswell", "Broadwell")},
}
"""Family -> its name in Cloud Carbon Footprint, where that is another one."""


def tabulate_coefficients(power: Champion, *, progress: bool = False) -> pd.DataFrame:
    """Return the coefficients of families: medians of published results, for servers without any of estimates.

    The low and the high values have a twentieth of the results, or of the ends of intervals of estimates, beyond them.
    Estimates are of the largest machine of one or two processors with each CPU model, and their memory is that of all
    results of the last three years.
    Units: W a thread, W a core, GiB a processor.
    """
    measured = _read_measured(power)
    estimated = _read_estimates(power, measured, progress=progress)
    frame = pd.concat([measured, estimated[~estimated["family"].isin(measured["family"])]], ignore_index=True)
    families = frame["family"]
    groups = frame.groupby(families)

    def per(unit: str, kind: str, end: str = "") -> pd.Series:
        return (frame[f"{kind}{end}"] / frame[unit]).groupby(families).quantile(_ENDS[end])

    watts = {f"{kind} Watts{end}": per("threads", kind, end) for end in _ENDS for kind in _KINDS}
    columns = {
        **{name: watts.pop(name) for name in ("Min Watts", "Max Watts")},
        **{"GB/Chip": groups["gib"].median(), "Results": groups["results"].sum()},
        **{"CPU Models": groups["cpu_model"].nunique()},
        **{name: groups[name].first() for name in ("From", "Until")},
        **{f"{kind} Watts/Core": per("cores", kind) for kind in _KINDS},
    }
    table = pd.DataFrame({**columns, **watts}).rename_axis("Family").reset_index()
    basis = np.where(table["Results"] > 0, "measured", "estimated")
    table = table.assign(Architecture=table["Family"].map(_NAMES).fillna(table["Family"]), Basis=basis)
    first = [*["Architecture", *columns][:4], "Family", "Basis"]
    table = table[[*first, *(name for name in table if name not in first)]]
    return table.sort_values(["Basis", "Architecture"], ascending=[False, True], ignore_index=True)


def _read_measured(power: Champion) -> pd.DataFrame:
    measured = power.reference_data.measured
    frame = measured.frame.dropna(subset=["family", "threads_per_core", *power.rules.power_targets])
    idle, full = (frame[name] for name in power.rules.power_targets)
    watts = {f"{kind}{end}": values for kind, values in zip(_KINDS, (idle, full), strict=True) for end in _ENDS}
    month, family = frame[measured.select(tag=Tag.TIME)[0]], frame["family"].astype("str")
    cores = frame["cores_enabled_total"]
    return pd.DataFrame(
        {
            **{"family": family, "cpu_model": frame["cpu_model"].astype("str"), "results": 1, "month": month},
            **{"cores": cores, "threads": cores * frame["threads_per_core"]},
            **{"gib": frame["mem_total_gb"] / frame["chips"], **watts},
            **{"From": month.groupby(family).transform("min").dt.strftime("%Y-%m")},
            **{"Until": month.groupby(family).transform("max").dt.strftime("%Y-%m")},
        }
    )


def _read_estimates(power: Champion, measured: pd.DataFrame, *, progress: bool) -> pd.DataFrame:
    families = {name: row for name, row in family_table().items() if row["lineage"].endswith(_OF_SERVERS)}
    table = tabulate_entities(power, progress=progress)
    largest = table["chips"] == table.groupby("cpu_model")["chips"].transform("max")
    table = table[largest & table["family"].isin(families)]
    wide = table.pivot(index=["family", "cpu_model", "chips"], columns="target", values=list(ESTIMATED[:3]))
    rows = wide.index.to_frame(index=False)
    facts = power.reference_data.entity_facts["cores_per_chip_of_cpu_model"]
    threads = {name: float(row["smt"] or "nan") for name, row in families.items()}
    cores = rows["chips"] * rows["cpu_model"].map(facts)
    watts = {
        f"{kind}{end}": wide[column, target].to_numpy()
        for kind, target in zip(_KINDS, power.rules.power_targets, strict=True)
        for end, column in zip(_ENDS, ESTIMATED, strict=False)
    }
    watts |= {f"Min{end}": np.minimum(watts[f"Min{end}"], watts[f"Max{end}"]) for end in _ENDS}
    recent = measured["month"] > measured["month"].max() - _RECENT
    given: dict[str, Any] = {"results": 0, "cores": cores, "threads": cores * rows["family"].map(threads)}
    rows = rows.assign(**given, gib=measured["gib"][recent].median(), From="", Until=power.results_until, **watts)
    return rows.dropna(subset=["threads"])
