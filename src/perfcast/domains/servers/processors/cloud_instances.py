"""Cloud instances as machines: shares of a host whose CPU model or families a list names.

An instance is an entity with the facts of its CPU model. Of these, its cores and the thermal design power are its
share; `cpu_model_id` names the CPU model, or those of several hosts, which tells it from a processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.strict_csv import read_rows
from perfcast.domains.servers.processors.cpu_names import cpu_model_id, cpu_model_key
from perfcast.inference.cells import Cells, EntityFacts, fill_missing
from perfcast.sources.packed import Packed, read_records

SOURCE = "cloud_instances"
_FILE = "cloud_instances.csv"
_READ = ["instance_type", "vcpus", "cpu_model", "family", "threads_per_core", "other_families", "memory_gb"]
MEMORY = "instance_memory_gb"
"""Fact of an instance alone: its share of a host's memory, which no prediction reads."""
_WHOLE = "cores_per_chip_of_cpu_model"
_OR = " or "
_STAND_INS = 2
"""Between the hosts of `cpu_model_id`, and CPU models that stand for a family: two show how much they differ."""


def pack(folder: Path) -> Packed:
    """Return the columns of the list that are read. Raises: UserError when the file is absent or broken."""
    rows = read_rows(SOURCE, folder / _FILE, _READ)
    left_out = [name for name in rows.header if name not in _READ]
    return Packed(rows.frame[_READ], f"columns {', '.join(left_out)}")


def read_instances(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the list. Raises: UserError for another file."""
    rows = read_records(folder, SOURCE, pack).reindex(columns=_READ, fill_value="").to_dict("records")
    return [{name: row[name] for name in _READ} for row in rows]


def join_instances(facts: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Return the facts of CPU models with those of the instances that have a host of known family and cores.

    An instance with several hosts has the facts in which these agree; `fill_host_facts` adds those of one of them.
    """
    listed = read_instances(folder)
    known = facts[facts["family"].notna() & facts[_WHOLE].notna()]
    named = pd.Series([cpu_model_key(row["cpu_model"]) for row in listed], dtype="str").value_counts()
    often = named.sort_index().sort_values(ascending=False, kind="stable").index
    stand_ins = {str(family): _choose_stand_ins(each, often) for family, each in known.groupby("family")}
    by_model: dict[str, dict[str, Any]] = known.to_dict("index")  # type: ignore[assignment]
    rows = {}
    for row in listed:
        model = cpu_model_key(row["cpu_model"])
        key = cpu_model_key(row["instance_type"])
        hosts_of_model = [model] * _STAND_INS if model in by_model else stand_ins.get(row["family"], [])
        families = [hosts_of_model, *(stand_ins.get(family, []) for family in row["other_families"].split("/"))]
        # in turn, so that all families have nearly as many draws
        hosts = [host for turn in zip(*filter(None, families), strict=True) for host in turn]
        if key in facts.index or not hosts:
            continue
        first = by_model[hosts[0]]
        several = len({*hosts}) > 1
        # a vCPU is a thread of x86 processors, and a core of others
        threads = float(row["threads_per_core"] or (2 if first["isa"] == "x86" else 1))
        cores = max(float(row["vcpus"]) / threads, 0.5)
        whole = max(by_model[host][_WHOLE] for host in hosts_of_model or hosts)
        chips = 2.0 ** max(np.ceil(np.log2(cores / whole)), 0)
        named_hosts = _OR.join(f"{host} ({by_model[host]['family']})" for host in hosts)
        # the facts in which all hosts agree
        common = {name: value for name, value in first.items() if all(by_model[each][name] == value for each in hosts)}
        rows[key] = {
            **common,
            "max_sockets": chips,
            "threads_per_core": threads,
            "cores_per_chip_stated": cores / chips,
            "cpu_model_id": named_hosts if several else cpu_model_id(hosts[0]),
            MEMORY: float(row["memory_gb"] or np.nan),
            "tdp_w": np.nan if several else first["tdp_w"] * cores / chips / first[_WHOLE],
        }
    return pd.concat([facts, pd.DataFrame.from_dict(rows, orient="index")]).rename_axis(str(facts.index.name))


def _choose_stand_ins(models: pd.DataFrame, often: pd.Index) -> list[str]:
    """Return CPU models of a family: those that instances have most often, or else two of its larger ones."""
    usual = [str(model) for model in often if model in models.index][:_STAND_INS]
    larger = models[models[_WHOLE] >= models[_WHOLE].max() / 2].sort_values(_WHOLE, kind="stable").index
    evenly = [str(larger[len(larger) * place // (2 * _STAND_INS)]) for place in range(1, 2 * _STAND_INS, 2)]
    return usual if len(usual) == _STAND_INS else evenly


def list_hosts(name: str | None) -> list[str]:
    """Return the hosts that a `cpu_model_id` names, each a CPU model and its family; none where it names one model."""
    return name.split(_OR) if name and _OR in name else []


def list_all_hosts(cells: Cells) -> list[list[str]]:
    """Return the hosts of every machine, see `list_hosts`: those of its family where it has one."""
    named = zip(
        map(list_hosts, cells["cpu_model_id"].tolist()),
        cells["family"].tolist(),
        strict=True,
    )
    return [[host for host in hosts if host.endswith(f"({family})")] or hosts for hosts, family in named]


def fill_host_facts(cells: Cells, numbers: np.ndarray, facts: EntityFacts) -> Cells:
    """Fill the facts of one host of instances with several, by its number from 0, -1 for none, (n,) int."""
    listed = zip(list_all_hosts(cells), numbers.tolist(), strict=True)
    chosen = [hosts[number] if hosts and number >= 0 else "" for hosts, number in listed]
    hosts = facts.look_up([host.partition(" (")[0] for host in chosen], cells)
    share = cells["cores_per_chip_stated"] / hosts[_WHOLE]
    return fill_missing(cells, {**hosts, "tdp_w": hosts["tdp_w"] * share})


def is_instance(cells: Mapping[str, Any]) -> np.ndarray:
    """Return whether machines are instances, (n,) bool."""
    pairs = zip(
        np.atleast_1d(cells["cpu_model"]).tolist(),
        np.atleast_1d(cells["cpu_model_id"]).tolist(),
        strict=True,
    )
    return np.array([bool(model and known) and cpu_model_id(model) != known for model, known in pairs], dtype=bool)


def fill_host(cells: Cells, rows: np.ndarray) -> tuple[Cells, np.ndarray]:
    """Return the whole hosts of some instances, and the logarithms of the shares of their cores, (rows,)."""
    hosts = cells.take(rows)
    shares = hosts["cores_per_chip_stated"] / hosts[_WHOLE]
    whole = {"cores_per_chip_stated": hosts[_WHOLE], "cores_enabled_total": hosts[_WHOLE] * hosts["chips"]}
    return hosts.assign({**whole, "tdp_w": hosts["tdp_w"] / shares}), np.log(shares)
