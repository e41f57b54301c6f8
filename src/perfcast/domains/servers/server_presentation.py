"""Presentation of servers: examples, notes, power, dated facts, and commands that measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from perfcast.domains.servers.processors import cloud_instances
from perfcast.domains.servers.processors.cpu_models import list_facts
from perfcast.domains.servers.processors.facts import Fact
from perfcast.domains.servers.server_limits import find_threads
from perfcast.inference.cells import Cells
from perfcast.inference.machine_fields import Cell, TypedField
from perfcast.inference.rules.presentation import Check, FactSource, Presentation

_SUITES = {"CINT2017rate": "intrate", "CFP2017rate": "fprate", "CINT2017speed": "intspeed", "CFP2017speed": "fpspeed"}


class ServerExamples(Presentation):
    """Examples of servers, without knowledge about them."""

    short_example = "'2 x EPYC 9654' or 'EPYC 9654; chips=2'"
    example = "--processor 'EPYC 9654' --chips 2"
    origin_meanings: Mapping[str, str] = {
        "looked up": "a fact of the CPU model, from the table of models or its family",
        "measured": "all measured results of the CPU model, or of the task, have it",
    }


class ServerPresentation(ServerExamples):
    """Presentation of servers that SPEC measured."""

    form_fields = ("processor", "chips", "cores", "memory", "os", "compiler", "storage")
    setup_columns = ("compiler_vendor", "compiler_major_minor")
    identifying_columns = ("cores_enabled_total",)
    power_columns = ("tdp_w", "chips")
    power_meaning = "TDP of the processors alone"
    # fits of SPECpower results of 2012 to 2023-05 by CPU model and number of processors
    power_ratios = ((0.152, 0.219), (-1.429, 0.361))
    power_targets = ("watts_idle", "watts_100")
    memory_columns = ("mem_total_gb",)
    instance_memory = cloud_instances.MEMORY
    fact_columns: Mapping[str, str] = {
        "vendor": "cpu_vendor",
        "family": "family",
        "launch": "launch_quarter",
        "memory channels": "mem_channels_per_chip",
        "tdp": "tdp_w",
    }
    power_remedy = "the power of its processors is unknown, too: add the column watts, or tdp"
    throughput_ending = "rate"

    def list_fact_sources(self, cells: Mapping[str, Any], user_facts: Sequence[Fact] = ()) -> tuple[FactSource, ...]:
        """Return the facts of the user and of the dated tables on the CPU model and its family."""
        model, family = str(cells.get("cpu_model")), str(cells.get("family"))
        grouped: dict[tuple[str, str, str], list[str]] = {}
        for fact in list_facts(model, user_facts, family):
            day = "" if fact.known_from is None else f"{fact.known_from:%Y-%m-%d}"
            subject = fact.family if fact.cpu_model != model else model
            grouped.setdefault((subject, day, fact.source), []).append(f"{fact.name} {fact.value} {fact.unit}".strip())
        ordered = sorted(grouped.items(), key=lambda pair: pair[0][1], reverse=True)
        return tuple(FactSource(*key, tuple(facts)) for key, facts in ordered)

    def describe_check(self, task: str, cells: Mapping[str, Any]) -> Check | None:
        """Return the command of a reportable base run and its configuration, None for another benchmark."""
        suite = _SUITES.get(task)
        if suite is None:
            return None
        option = "copies" if task.endswith("rate") else "threads"
        cores, threads = cells.get("cores_enabled_total"), cells.get("threads_per_core")
        count = None if pd.isna(cores) else int(cores * (1 if pd.isna(threads) else threads))
        chosen = "" if count is None else f" --{option}={count}"
        lines = ["# keep the compiler flags of an example of its vendor, $SPEC/config/Example-*.cfg", "tune = base"]
        lines += ["reportable = 1", *([] if count is None else [f"{option} = {count}"])]
        return Check(task, f"runcpu --config=perfcast --tune=base --reportable{chosen} {suite}", "\n".join(lines))

    def find_sizes(self, known: Cells, completed: Cells) -> dict[str, np.ndarray]:
        """Count cores and threads. Those of a core are the most of its family where a user states none."""
        given, most = known["threads_per_core"], find_threads(completed["family"])
        threads = np.where(np.isnan(given), np.where(np.isnan(most), completed["threads_per_core"], most), given)
        return {"cores": completed["cores_enabled_total"], "vCPUs": completed["cores_enabled_total"] * threads}

    def list_completed_notes(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield a note on an instance."""
        if cloud_instances.is_instance(cells)[0]:
            cores, whole = cells["cores_enabled_total"], cells["cores_per_chip_of_cpu_model"] * cells["chips"]
            is_whole = cores >= whole
            share = f"{cores:g}{'' if is_whole else f' of {whole:g}'} cores of {cells['cpu_model_id']}"
            if hosts := ", ".join(dict.fromkeys(cloud_instances.list_hosts(cells["cpu_model_id"]))):
                share = f"{cores:g} cores; unless you give a family, the estimate mixes hosts of {hosts}"
            yield (
                f"{cells['cpu_model']} is a {'whole' if is_whole else 'share of a'} host, {share}: "
                "no SPEC result was measured there; rate scores are those with busy neighbors"
            )

    def list_notes(self, cells: Mapping[str, Cell], typed: Mapping[str, TypedField], label: str) -> Iterator[str]:
        """Yield a note on modules that the processors do not share equally."""
        modules, chips = cells.get("dimm_count"), cells.get("chips")
        if isinstance(modules, float) and isinstance(chips, float) and modules % chips:
            yield f"{modules:g} memory modules are not shared equally by {chips:g} processors"
