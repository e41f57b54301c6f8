"""Join of the facts of CPU models, of the family tables and the catalog, to rows of results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from perfcast.domains.servers.parsing.distinct_texts import encode_texts, expand_codes, is_coded
from perfcast.domains.servers.processors.catalog import Catalog, read_catalog, read_project_catalog
from perfcast.domains.servers.processors.families import look_up_facts

CATALOG = "cpu_catalog"
_FROM_CATALOG = ("tdp_w", "max_turbo_mhz", "all_core_turbo_mhz", "launch_quarter", "upi_links", "max_sockets")
_CATALOG_FIRST = ("fma_units", "pcie_gen", "process_node")
_FROM_FAMILY = {
    **{name: name for name in ("cpu_vendor", "family", "series", "tier", "suffix", "isa", "simd_bits")},
    "has_amx": "amx",
    "mem_max_mts_1dpc": "max_mts_1dpc",
    "mem_max_mts_2dpc": "max_mts_2dpc",
    "mem_mrdimm_mts": "mrdimm_mts",
    **{f"family_{name}": name for name in ("ddr_gen", "l1i_kb", "l1d_kb", "l2_kb_per_core")},
}
COLUMNS_OF_FACTS = {
    **{fact: column for column, fact in _FROM_FAMILY.items()},
    **{name: name for name in (*_FROM_CATALOG, *_CATALOG_FIRST, "base_mhz", "l3_mb_per_chip")},
    **{name: name for name in ("l1i_kb", "l1d_kb", "l2_kb_per_core")},
    "cores_per_chip": "cores_per_chip_of_cpu_model",
    "channels_per_chip": "mem_channels_per_chip",
    "ddr_gen": "ddr_gen",
}
"""Standard column of every fact."""


def join_catalog(frame: pd.DataFrame, raw: Mapping[str, Path]) -> pd.DataFrame:
    """Add the facts of each row's CPU model, with the catalog where its source is available."""
    return join_processors(frame, read_catalog(raw[CATALOG]) if CATALOG in raw else read_project_catalog())


def join_processors(frame: pd.DataFrame, catalog: Catalog, as_of: pd.Timestamp | None = None) -> pd.DataFrame:
    """Add the facts of each row's CPU model from the family tables and the catalog; unknown facts are missing.

    Only facts that were public before `as_of` count, all of them without a day.
    """
    keys = frame["cpu_model"].drop_duplicates().astype("str")
    families = pd.DataFrame([look_up_facts(key, as_of) for key in keys], index=pd.Index(keys, name="cpu_model"))
    listed = catalog.lookup(keys, as_of)
    facts = {name: families[fact] for name, fact in _FROM_FAMILY.items()}
    facts |= {name: listed[name] for name in _FROM_CATALOG}
    facts |= {name: _fill_missing(listed[name], families[name]) for name in _CATALOG_FIRST}
    # The family table lists the channels of more CPU models than the catalog; the two agree wherever both do.
    facts["mem_channels_per_chip"] = _fill_missing(families["channels_per_chip"], listed["mem_channels_per_chip"])
    facts |= {"catalog_cores": listed["cores_per_chip"], "catalog_table": listed["table"]}
    if is_coded(frame["cpu_model"]):
        codes, names = encode_texts(frame["cpu_model"])
        joined = frame.assign(
            **{name: expand_codes(values.loc[names].tolist(), codes, frame.index) for name, values in facts.items()}
        )
    else:
        joined = frame.join(pd.DataFrame(facts), on="cpu_model")
    return joined.assign(cores_per_chip_stated=joined["cores"] / joined["chips"])


def _fill_missing(first: pd.Series, second: pd.Series) -> pd.Series:
    return first.astype(object).where(first.notna(), second).infer_objects()
