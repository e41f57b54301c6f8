"""Cloud instances as machines: shares of a host whose CPU model a list names.

An instance is an entity with the facts of its CPU model. Of these, its cores and the thermal design power are its
share; `cpu_model_id` names the CPU model, which tells it from a processor, and families of other hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.servers.processors.cpu_names import cpu_model_id, cpu_model_key
from perfcast.inference.cells import Cells
from perfcast.sources.bounded_files import PLAIN, header_of, records, text_lines, unpacked
from perfcast.utils import size_limits
from perfcast.utils.errors import UserError

SOURCE, _FILE = "cloud_instances", "cloud_instances.csv"
_REMEDY = "ingest the source cloud_instances again"
_READ = ("instance_type", "vcpus", "cpu_model", "threads_per_core", "other_families")
_THREADS = 2.0
"""Threads of a core where the list states none: those of the x86 processors in it."""
_WHOLE = "cores_per_chip_of_cpu_model"


def read_instances(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the list that name a CPU model. Raises: UserError for another file."""
    with unpacked(folder / _FILE, PLAIN, most=size_limits.TABLE, remedy=_REMEDY) as file:
        lines = text_lines(file, _FILE, remedy=_REMEDY)
        header = header_of(next(lines, ""), _FILE, remedy=_REMEDY)
        if missing := [name for name in _READ if name not in header]:
            raise UserError(f"{_FILE} must have the column {missing[0]!r}", "it has none", _REMEDY)
        rows = [dict(zip(header, fields, strict=False)) for _, fields in records(lines, _FILE, remedy=_REMEDY)]
    return [row for row in rows if row["cpu_model"]]


def join_instances(facts: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Return the facts of CPU models with those of the instances that have one of known family and cores."""
    known: dict[str, dict[str, Any]] = facts.to_dict("index")  # type: ignore[assignment]
    rows = {}
    for row in read_instances(folder):
        model, key = cpu_model_key(row["cpu_model"]), cpu_model_key(row["instance_type"])
        host = known.get(model, {})
        whole = host.get(_WHOLE)
        if key in known or pd.isna(whole) or pd.isna(host["family"]):
            continue
        threads = float(row["threads_per_core"] or _THREADS)
        cores = max(float(row["vcpus"]) / threads, 0.5)
        families = row["other_families"].replace("/", ", ")
        others = f" (other hosts are {families})" if families else ""
        chips = float(np.ceil(cores / whole))
        rows[key] = {
            **host,
            **{"cores_per_chip_stated": cores / chips, "tdp_w": host["tdp_w"] * cores / chips / whole},
            **{"max_sockets": chips, "threads_per_core": threads, "cpu_model_id": cpu_model_id(model) + others},
        }
    return pd.concat([facts, pd.DataFrame.from_dict(rows, orient="index")]).rename_axis(str(facts.index.name))


def is_instance(cells: Mapping[str, Any]) -> np.ndarray:
    """Return whether machines are instances, (n,) bool."""
    pairs = zip(np.atleast_1d(cells["cpu_model"]).tolist(), np.atleast_1d(cells["cpu_model_id"]).tolist(), strict=True)
    return np.array([bool(model and known) and cpu_model_id(model) != known for model, known in pairs], dtype=bool)


def fill_host(cells: Cells, rows: np.ndarray) -> tuple[Cells, np.ndarray]:
    """Return the whole hosts of some instances, and the logarithms of the shares of their cores, (rows,)."""
    hosts = cells.take(rows)
    shares = hosts["cores_per_chip_stated"] / hosts[_WHOLE]
    whole = {"cores_per_chip_stated": hosts[_WHOLE], "cores_enabled_total": hosts[_WHOLE] * hosts["chips"]}
    return hosts.assign({**whole, "tdp_w": hosts["tdp_w"] / shares}), np.log(shares)
