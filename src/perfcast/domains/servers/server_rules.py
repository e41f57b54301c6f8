"""Rules of servers: names, facts of the CPU model, arithmetic between cells, usual values, commands that measure."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from perfcast.domains import read_table
from perfcast.domains.servers.features.server_physics import find_memory_limit
from perfcast.domains.servers.processors import cloud_instances
from perfcast.domains.servers.processors.announcements import find_core, find_core_family
from perfcast.domains.servers.processors.cpu_models import (
    join_processors,
    list_facts,
    look_up_models,
    read_cpu_models,
)
from perfcast.domains.servers.processors.cpu_names import (
    cpu_model_id,
    cpu_model_key,
    drop_tier_number,
    find_family,
    shorten_key,
    typed_cpu_key,
)
from perfcast.domains.servers.processors.facts import Fact
from perfcast.domains.servers.server_fields import SERVER_FIELDS
from perfcast.domains.servers.server_limits import find_server_violations, find_threads
from perfcast.inference.cells import Cells, EntityFacts, fill_missing, is_missing
from perfcast.inference.donors import Block, JointRules
from perfcast.inference.machine_fields import Cell, TypedField
from perfcast.inference.rules import Check, DescriptionRules, FactSource, NamedEntity, name_kinds

if TYPE_CHECKING:
    from perfcast.inference.champion import Champion

_FAMILY_COLUMNS = {f"family_{name}": name for name in ("ddr_gen", "l1i_kb", "l1d_kb", "l2_kb_per_core")}
_ARCHITECTURE = {"x86": "x86_64", "arm": "aarch64"}
_JOINED_LINE = re.compile(r"^(xeon|epyc|ryzen|altra)[ -]?(bronze|silver|gold|platinum|max)?[ -]?(?=\w*\d)")
"""Line and tier without the blanks around them: `XeonGold6544Y`, `EPYC-9575F`."""
_CORES_AND_CLOCK = re.compile(r"\b(?:altra|ampereone)\b.* [a-z](\d{2,3})-(\d{2})")
"""Names of Ampere tell the cores and the clock in tenths of a GHz: Q80-30."""
_SINGLE_SOCKET = re.compile(
    r"\b(?:core|pentium|celeron|atom|ryzen|threadripper|athlon|xeon (?:e3|e|w\d?))\b|\bepyc \d+\w*p"
)
"""Lines that are sold for machines with one processor, where no table has the sockets of the CPU model."""
_SOCKETS = (1.0, 2.0, 4.0, 8.0)
_TWO_KINDS_OF_CORES = (
    *("Lakefield", "Alder Lake", "Raptor Lake", "Meteor Lake", "Arrow Lake", "Arrow Lake-U", "Lunar Lake", "Apple M"),
)
_ONE_KIND_OF_CORE = re.compile(r"(celeron|pentium gold) g\d|core i3-1[2-4][13]00[eft]*$|core i5-12[456]00[eft]*$")
"""CPU models of these families with performance cores alone (counts of Intel ARK)."""
_LPDDR_ON_PACKAGE = ("Apple M", "Grace", "Lunar Lake", "Vera")
_HYBRID = "performance and efficient cores together"
_EFFICIENT_CORES = np.log(1.5)
"""Deduction where two cores of three are efficient and each counts half: 8 + 16, 8 + 12, 6 + 8 and 2 + 8 cores have
0.67, 0.70, 0.71 and 0.60 of their number. In the rate suites an efficient core of the measured Sierra Forest has 0.40
and 0.27 of the score of a core of Raptor Lake E, at 0.58 of its clock."""
_VENDORS = (
    (re.compile(r"\b(?:xeon|core|pentium|celeron|atom)\b"), "Intel", "x86"),
    (re.compile(r"\b(?:epyc|ryzen|opteron|threadripper|athlon)\b"), "AMD", "x86"),
    (re.compile(r"\b(?:altra|ampereone)\b"), "Ampere", "arm"),
    (re.compile(r"^power ?\d"), "IBM", "power"),
)
"""Word of a line -> vendor and instruction set."""

_SUITES = {"CINT2017rate": "intrate", "CFP2017rate": "fprate", "CINT2017speed": "intspeed", "CFP2017speed": "fpspeed"}


def _read_blocks() -> tuple[Block, ...]:
    """Return the blocks of columns that are taken together; a group of no column is that of all machines."""
    return tuple(
        Block(
            row["name"],
            tuple(row["columns"].split()),
            tuple(tuple(group.split()) for group in row["groups"].split("|")),
            recent=bool(row["recent"]),
            new_entity=bool(row["new_entity"]),
        )
        for row in read_table(__package__, "usual_blocks.csv")
    )


def _read_rule(rule: str) -> dict[str, tuple[str, ...]]:
    """Return the values of every column of a rule in `column_rules.csv`, in the order of the rows."""
    rows = read_table(__package__, "column_rules.csv")
    return {row["column"]: tuple(row["value"].split()) for row in rows if row["rule"] == rule}


def _find_vendor(key: str) -> tuple[str, str] | None:
    """Return vendor and instruction set of a CPU model by its name, None for an unknown line."""
    return next(((vendor, isa) for pattern, vendor, isa in _VENDORS if pattern.search(key)), None)


def _is_hybrid(cpu_model: object, family: object) -> bool:
    """Return whether a CPU model has performance and efficient cores."""
    return family in _TWO_KINDS_OF_CORES and not _ONE_KIND_OF_CORE.match(str(cpu_model))


class ServerNames(DescriptionRules):
    """Words of servers, without knowledge about them: nothing is filled and nothing is refused."""

    entity_name = "CPU model"
    named_field = "processor"
    short_example = "'2 x EPYC 9654' or 'EPYC 9654; chips=2'"
    example = "--processor 'EPYC 9654' --chips 2"
    naming_columns = ("chips", "system_stem", "cores_per_chip_stated", "cores_per_chip_of_cpu_model", "cpu_model_id")
    origin_meanings: ClassVar[Mapping[str, str]] = {
        "looked up": "a fact of the CPU model, from the table of models or its family",
        "measured": "all measured results of the CPU model, or of the task, have it",
    }

    def name_machine(self, entity: str, cells: Mapping[str, Any]) -> str:
        """Return a name made of product and processors."""
        name = "a new CPU model" if pd.isna(cells[entity]) else str(cells[entity])
        if cloud_instances.is_instance({"cpu_model": name, "cpu_model_id": cells.get("cpu_model_id")})[0]:
            return name  # its processors are not its number: an instance is one machine
        chips, stem = cells.get("chips"), cells.get("system_stem")
        name = name if chips is None or pd.isna(chips) else f"{chips:g} x {name}"
        enabled, whole = cells.get("cores_per_chip_stated"), cells.get("cores_per_chip_of_cpu_model")
        if enabled is not None and whole is not None and enabled < whole:
            name += f" with {enabled:g} of {whole:g} cores"
        return name if stem is None or pd.isna(stem) else f"{stem}, {name}"

    read_key = staticmethod(typed_cpu_key)
    shorten_key = staticmethod(shorten_key)

    def model_number(self, key: str) -> str:
        """Return the letters and digits of the model, without line and tier."""
        return super().model_number(drop_tier_number(key))


class ServerRules(ServerNames):
    """Rules of servers that SPEC CPU measured; `task_aliases` maps SPEC's metrics, which answers name, to tasks."""

    def __init__(self, task_aliases: Mapping[str, str]) -> None:
        self.task_aliases = task_aliases
        self.task_titles = {task: metric for metric, task in task_aliases.items()}

    def alias_tasks(self, tasks: list[str]) -> Mapping[str, str]:
        """Return SPEC's metrics, and short names such as int_rate, of tasks."""
        return {**{re.sub(r"^c(int|fp)\d+", r"\1_", task.lower()): task for task in tasks}, **self.task_aliases}

    fields = SERVER_FIELDS
    form_fields = ("processor", "chips", "cores", "memory", "os", "compiler", "storage")
    new_entity_fields: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "cores": ("cores_per_chip_stated", "cores_per_chip_of_cpu_model", "cores_enabled_total"),
        "clock": ("base_mhz",),
    }
    new_entity_hints = ("cores", "clock", "family", "turbo", "tdp", "l3")
    group_columns = ("family", "series", "cpu_vendor")
    design_column = "family"
    setup_columns = ("compiler_vendor", "compiler_major_minor")
    identifying_columns = ("cores_enabled_total",)
    enumerated = "chips"
    description_levels = (
        ("cpu_model",),
        ("chips",),
        ("dimm_count", "dimm_gb", "ddr_gen", "mem_rated_mts"),
        ("cores_per_chip_stated", "base_mhz", "max_turbo_mhz", "l3_mb_per_chip", "tdp_w"),
    )
    named_columns = ("cpu_model_id", "family", "series", "tier", "suffix")
    power_columns = ("tdp_w", "chips")
    power_meaning = "TDP of the processors alone"
    # fits of SPECpower results of 2012 to 2023-05 by CPU model and number of processors
    power_ratios = ((0.152, 0.219), (-1.429, 0.361))
    power_targets = ("watts_idle", "watts_100")
    power_remedy = "the power of its processors is unknown, too: add the column watts, or tdp"
    throughput_ending = "rate"
    kind_columns = ("cpu_vendor", "family", "cpu_model")
    # fewer cores are the same CPU model with some cores off; more cores are another model
    capacities: ClassVar[Mapping[str, str]] = {"cores_per_chip_stated": "cores_per_chip_of_cpu_model"}
    largest_values: ClassVar[Mapping[str, str]] = {
        "chips": "max_sockets",
        "mem_channels_per_chip": "mem_channels_per_chip",
        "mem_rated_mts": "mem_max_mts_1dpc",
    }
    # only what arithmetic ties to a column: cache, power and clocks stay when the number of cores varies
    replaced = _read_rule("replaced")
    blocks = _read_blocks()
    joint = JointRules(
        keys=tuple(_read_rule("key")),
        taken=tuple(_read_rule("taken")),
        per_unit={"dimm_count": ("chips", "mem_channels_per_chip")},
        groups=(("cpu_model", "chips"), ("cpu_model",), ("family",), ("cpu_vendor",)),
        penalties={name: float(value) for name, (value,) in _read_rule("penalty").items()},
        years=0.25,
        software=tuple(_read_rule("software")),
        apart=tuple(_read_rule("apart")),
        # what can run depends on the instruction set
        software_groups=(("cpu_vendor", "isa"), ("isa",)),
        at_most={
            "mem_rated_mts": ("mem_max_mts_1dpc", "mem_mrdimm_mts"),
            "l3_slice_mb": ("l3_mb_per_chip",),
            "threads_per_core": ("smt",),
        },
        facts={"smt": ("family", find_threads)},
        only_with={"mem_rated_mts": "ddr_gen", "dimm_type": "ddr_gen", "dimm_gb": "mem_total_gb"},
        day="test_month",
        launch="launch_quarter",
        released="sw_avail",
        dates=("test_month", "hw_avail", "sw_avail"),
    )

    def read_entity_facts(
        self, raw: Mapping[str, Path], measured: Iterable[str], as_of: pd.Timestamp | None = None
    ) -> pd.DataFrame:
        """Return the facts of the listed and of the measured CPU models, and of the cloud instances of the source."""
        named = pd.Series(sorted({*read_cpu_models().index, *measured}), dtype="str")
        known = join_processors(pd.DataFrame({"cpu_model": named, "cores": np.nan, "chips": np.nan}), as_of)
        listed = look_up_models(named, as_of)
        clock, l2, l3 = (named.map(listed[name]) for name in ("base_mhz", "l2_kb_per_core", "l3_mb_per_chip"))
        known = known.rename(columns={"listed_cores": "cores_per_chip_of_cpu_model"})
        known = known.drop(columns=["cores", "chips", "cores_per_chip_stated"]).assign(
            base_mhz=clock,
            l1i_kb=known["family_l1i_kb"],
            l1d_kb=known["family_l1d_kb"],
            l2_kb_per_core=l2.fillna(known["family_l2_kb_per_core"]),
            l3_mb_per_chip=l3,
            ddr_gen=known["family_ddr_gen"],
        )
        facts = known.set_index("cpu_model")
        # no day tells from when an instance was known
        folder = raw.get(cloud_instances.SOURCE) if as_of is None else None
        return facts if folder is None else cloud_instances.join_instances(facts, folder)

    def read_entity_name(self, name: str) -> NamedEntity:
        """Return the family of a name that matches a naming rule, its vendor, and cores and clock that it contains."""
        key = cpu_model_key(name)
        spellings = (key, " ".join(_JOINED_LINE.sub(r"\1 \2 ", key).split()))
        normalized, family = next(((each, ruled) for each in spellings if (ruled := find_family(each))), (name, ""))
        cells: dict[str, Cell] = {}
        if match := _CORES_AND_CLOCK.search(key):
            cells |= {"cores_per_chip_of_cpu_model": float(match[1]), "base_mhz": float(match[2]) * 100}
        vendor = _find_vendor(spellings[1])
        if vendor and not family:
            cells |= {"cpu_vendor": vendor[0], "isa": vendor[1]}
        return NamedEntity(normalized, family, cells)

    def read_this_machine(self, given: Container[str]) -> tuple[dict[str, object], str]:
        """Read the hardware."""
        from perfcast.domains.servers.hardware_info import read_hardware

        hardware = read_hardware().without(given)
        return {reading.column: reading.value for reading in hardware.readings}, hardware.as_text()

    def add_user_facts(self, champion: Champion, path: Path) -> Champion:
        """Add the facts of the table."""
        from perfcast.domains.servers.processors.user_facts import add_user_facts, read_user_facts

        return add_user_facts(champion, read_user_facts(path))

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

    find_violations = staticmethod(find_server_violations)

    def fill_entity_facts(self, cells: Cells, facts: EntityFacts) -> Cells:
        """Fill the facts of a row's CPU model; a model that no table lists has the facts of its family."""
        models = cells["cpu_model"].tolist()
        named = sorted({name for name in models if name is not None})
        others = [name for name in named if name not in facts.places]
        if others:
            unlisted = pd.DataFrame({"cpu_model": pd.Series(others, dtype="str"), "cores": np.nan, "chips": np.nan})
            ruled = join_processors(unlisted).set_index("cpu_model")
            family_facts = ruled.rename(columns=_FAMILY_COLUMNS).reindex(columns=facts.frame.columns)
            facts = EntityFacts(pd.concat([facts.frame, family_facts]))

        ids = {name: cpu_model_id(name) for name in named}
        identified = {"cpu_model_id": np.array([ids.get(name) for name in models], dtype=object)}
        filled = fill_missing(fill_missing(cells, facts.look_up(models, cells)), identified)
        if not is_missing(filled["cpu_vendor"]).any():
            return filled
        vendors: dict[object, Any] = {name: _find_vendor(name) or (None, None) for name in named}
        pairs = np.array([vendors.get(name, (None, None)) for name in models], dtype=object)
        return fill_missing(filled, {"cpu_vendor": pairs[:, 0], "isa": pairs[:, 1]})

    def fill_implied(self, cells: Cells) -> Cells:
        """Fill cores, memory and architecture by what the same row has."""
        with np.errstate(divide="ignore", invalid="ignore"):
            stated = cells["cores_per_chip_stated"]
            filled = fill_missing(cells, {"cores_enabled_total": stated * cells["chips"]})
            per_chip = filled["cores_enabled_total"] / filled["chips"]
            filled = fill_missing(filled, {"cores_per_chip_of_cpu_model": np.where(np.isnan(stated), per_chip, stated)})
            rate = np.where(np.isnan(filled["mem_running_mts"]), filled["mem_rated_mts"], filled["mem_running_mts"])
            limit = find_memory_limit(filled, rate)
            shared = filled["cores_per_chip_of_cpu_model"] / (filled["l3_mb_per_chip"] / filled["l3_slice_mb"])
            count, stacked = filled["dimm_count"], np.nan_to_num(filled["hbm_gb"])
            families = filled["family"].tolist()
            core_of = {family: find_core(family) for family in {*families}}
            family_of = {family: find_core_family(core) for family, core in core_of.items()}
            return fill_missing(
                filled,
                {
                    "cores_enabled_total": filled["cores_per_chip_of_cpu_model"] * filled["chips"],
                    # missing where they are no whole number
                    "l3_cores_per_slice": np.where(shared % 1 == 0, shared, np.nan),
                    # memory in the package of the processor counts
                    "mem_total_gb": np.where(count == 0, 0.0, count * filled["dimm_gb"]) + stacked,
                    "dimm_gb": np.where(count > 0, (filled["mem_total_gb"] - stacked) / count, np.nan),
                    # Memory runs no faster than the processor drives it, unless the limit is unknown.
                    "mem_eff_mts": np.where(rate > limit, limit, rate),
                    # of SPEC CPU2026, whose predictors read the core
                    "generation": np.array([core_of[family] for family in families], dtype=object),
                    "core_family": np.array([family_of[family] for family in families], dtype=object),
                    "arch": np.array([_ARCHITECTURE.get(isa) for isa in filled["isa"].tolist()], dtype=object),
                },
            )

    def fill_usual(self, cells: Cells, last: pd.Timestamp) -> Cells:
        """Fill one module in every channel, as fast as the CPU allows, and a test in the month of the newest result.

        No later software was measured.
        """
        filled = fill_missing(
            cells,
            {
                "dimm_count": cells["chips"] * cells["mem_channels_per_chip"],
                "mem_rated_mts": cells["mem_max_mts_1dpc"],
                "test_month": np.full(len(cells.index), last.to_datetime64(), dtype="datetime64[us]"),
            },
        )
        launch, test = filled["launch_quarter"], filled["test_month"]
        return fill_missing(filled, {"hw_avail": np.where(launch < test, launch, test), "sw_avail": test})

    def list_alternatives(self, cells: Cells) -> list[tuple[float, ...]]:
        """Return the numbers of processors that every CPU model is sold for: 1 and 2 without a known limit."""
        usual = np.array([1.0 if _SINGLE_SOCKET.search(name or "") else 2.0 for name in cells["cpu_model"].tolist()])
        most = np.where(np.isnan(cells["max_sockets"]), usual, cells["max_sockets"])
        return [
            (largest,) if shared else tuple(count for count in _SOCKETS if count <= largest)
            for largest, shared in zip(most.tolist(), cloud_instances.is_instance(cells), strict=True)
        ]

    def count_variants(self, cells: Cells) -> np.ndarray:
        """Return the number of hosts that an instance may be on."""
        return np.array([len(hosts) or 1 for hosts in cloud_instances.list_all_hosts(cells)], dtype=int)

    fill_variant = staticmethod(cloud_instances.fill_host_facts)

    def predict_logs(self, cells: Cells, predict: Callable[[Cells], np.ndarray]) -> np.ndarray:
        """Return the logarithms of results; in a rate suite an instance has its share of the cores of a loaded host."""
        logs = predict(cells)
        is_rate = np.array([str(suite).endswith("rate") for suite in cells["suite"].tolist()])
        rows = np.flatnonzero(cloud_instances.is_instance(cells) & is_rate)
        if len(rows):
            hosts, shares = cloud_instances.fill_host(cells, rows)
            logs = logs.copy()
            logs[rows] = predict(hosts) + shares[:, None]
        return logs

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

    def limit_trust(self, cells: Mapping[str, Any]) -> str:
        """Return why an answer about a share of a host is never of high trust."""
        if not cloud_instances.is_instance(cells)[0]:
            return ""
        return "a share of a host" if cells["cores_per_chip_stated"] < cells["cores_per_chip_of_cpu_model"] else ""

    def list_notes(self, cells: Mapping[str, Cell], typed: Mapping[str, TypedField], label: str) -> Iterator[str]:
        """Yield a note on modules that the processors do not share equally."""
        modules, chips = cells.get("dimm_count"), cells.get("chips")
        if isinstance(modules, float) and isinstance(chips, float) and modules % chips:
            yield f"{modules:g} memory modules are not shared equally by {chips:g} processors"

    def list_kinds(self, cells: Mapping[str, Any]) -> Iterator[str]:
        """Yield vendor, family, and what is special about cores and memory."""
        family = cells["family"]
        yield from name_kinds({"processors of": cells["cpu_vendor"], "family": family})
        if _is_hybrid(cells["cpu_model"], family):
            yield _HYBRID
        if family in _LPDDR_ON_PACKAGE:
            yield "LPDDR memory on the package"

    def find_deductions(self, cells: Mapping[str, Any], measured_kinds: Container[str]) -> np.ndarray:
        """Count an efficient core half in the rate suites, which run on all cores, as long as no result tells more."""
        if _HYBRID in measured_kinds:
            return np.zeros(1)
        rows = zip(*(cells[name].tolist() for name in ("cpu_model", "family", "suite")), strict=True)
        counts_less = [suite.endswith("rate") and _is_hybrid(model, family) for model, family, suite in rows]
        return np.where(counts_less, _EFFICIENT_CORES, 0.0)


SERVERS = ServerNames()
SPEC_POWER = ServerRules({})
_SUITE_KINDS = [(mode, kind) for mode in ("rate", "speed") for kind in ("int", "fp")]
SPEC_CPU2017, SPEC_CPU2026 = (
    ServerRules({f"SPEC{mode}{year}_{kind}_base": f"C{kind.upper()}{year}{mode}" for mode, kind in _SUITE_KINDS})
    for year in (2017, 2026)
)
# Slope of the errors of unseen CPU models on those of the base, 13 CPU models; see docs/studies/tried.md.
SPEC_CPU2026.carried = 0.78
