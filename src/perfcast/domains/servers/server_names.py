"""Names of servers: their processors as people type them, and the words of messages and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd

from perfcast.domains.servers.processors.cpu_names import drop_tier_number, shorten_key, typed_cpu_key
from perfcast.inference.rules import DescriptionRules


class ServerNames(DescriptionRules):
    """Words of servers, without knowledge about them: nothing is filled and nothing is refused."""

    entity_name = "CPU model"
    named_field = "processor"
    short_example = "'2 x EPYC 9654' or 'EPYC 9654; chips=2'"
    example = "--processor 'EPYC 9654' --chips 2"
    naming_columns = ("chips", "system_stem")
    origin_meanings: ClassVar[Mapping[str, str]] = {
        "looked up": "a fact of the CPU model, from the catalog or its family",
        "measured": "all measured results of the CPU model, or of the task, have it",
    }

    def name_machine(self, entity: str, cells: Mapping[str, Any]) -> str:
        """Return a name made of product and processors."""
        name = "a new CPU model" if pd.isna(cells[entity]) else str(cells[entity])
        chips, stem = cells.get("chips"), cells.get("system_stem")
        name = name if chips is None or pd.isna(chips) else f"{chips:g} x {name}"
        return name if stem is None or pd.isna(stem) else f"{stem}, {name}"

    def read_key(self, name: str) -> str:
        """Return the key of a CPU model."""
        return typed_cpu_key(name)

    def shorten_key(self, key: str) -> str:
        """Return a key without the number of its brand."""
        return shorten_key(key)

    def model_number(self, key: str) -> str:
        """Return the letters and digits of the model, without line and tier."""
        return super().model_number(drop_tier_number(key))


SERVERS = ServerNames()
