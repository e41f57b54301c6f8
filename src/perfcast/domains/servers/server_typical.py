"""Typical values of servers: facts of the CPU model, arithmetic between cells, and usual set-ups."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from perfcast.domains import read_table
from perfcast.domains.servers.features.server_physics import find_memory_limit
from perfcast.domains.servers.processors import cloud_instances
from perfcast.domains.servers.processors.announcements import find_core, find_core_family
from perfcast.domains.servers.processors.cpu_models import join_processors, look_up_models, read_cpu_models
from perfcast.domains.servers.processors.cpu_names import cpu_model_id
from perfcast.domains.servers.server_fields import read_column_rule
from perfcast.domains.servers.server_limits import find_threads
from perfcast.domains.servers.server_names import find_vendor
from perfcast.inference.cells import Cells, EntityFacts, fill_missing, is_missing
from perfcast.inference.donors import Block, JointRules
from perfcast.inference.rules.typical_values import TypicalValues

if TYPE_CHECKING:
    from perfcast.inference.champion import Champion

_FAMILY_COLUMNS = {f"family_{name}": name for name in ("ddr_gen", "l1i_kb", "l1d_kb", "l2_kb_per_core")}
_ARCHITECTURE = {"x86": "x86_64", "arm": "aarch64"}
_SINGLE_SOCKET = re.compile(
    r"\b(?:core|pentium|celeron|atom|ryzen|threadripper|athlon|xeon (?:e3|e|w\d?))\b|\bepyc \d+\w*p"
)
"""Lines that are sold for machines with one processor, where no table has the sockets of the CPU model."""
_SOCKETS = (1.0, 2.0, 4.0, 8.0)


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


class ServerTypicalValues(TypicalValues):
    """Typical values of servers that SPEC measured."""

    enumerated = "chips"
    blocks = _read_blocks()
    joint = JointRules(
        keys=tuple(read_column_rule("key")),
        taken=tuple(read_column_rule("taken")),
        per_unit={"dimm_count": ("chips", "mem_channels_per_chip")},
        groups=(("cpu_model", "chips"), ("cpu_model",), ("family",), ("cpu_vendor",)),
        penalties={name: float(value) for name, (value,) in read_column_rule("penalty").items()},
        years=0.25,
        software=tuple(read_column_rule("software")),
        apart=tuple(read_column_rule("apart")),
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
    fill_variant = staticmethod(cloud_instances.fill_host_facts)

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

    def add_user_facts(self, champion: Champion, path: Path) -> Champion:
        """Add the facts of the table."""
        from perfcast.domains.servers.processors.user_facts import add_user_facts, read_user_facts

        return add_user_facts(champion, read_user_facts(path))

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
        vendors: dict[object, Any] = {name: find_vendor(name) or (None, None) for name in named}
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
