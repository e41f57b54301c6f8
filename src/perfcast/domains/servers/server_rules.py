"""Description rules of the datasets of servers."""

from __future__ import annotations

from collections.abc import Mapping

from perfcast.domains.servers.server_limits import LimitsOfCpu2026, ServerLimits
from perfcast.domains.servers.server_names import ServerNames, ServerWords
from perfcast.domains.servers.server_presentation import ServerExamples, ServerPresentation
from perfcast.domains.servers.server_typical import ServerTypicalValues
from perfcast.inference.rules.description_rules import DescriptionRules


def _name_metrics(year: int) -> Mapping[str, str]:
    """Return the tasks of the suites of a year by SPEC's metrics."""
    kinds = [(mode, kind) for mode in ("rate", "speed") for kind in ("int", "fp")]
    return {f"SPEC{mode}{year}_{kind}_base": f"C{kind.upper()}{year}{mode}" for mode, kind in kinds}


SERVERS = DescriptionRules(names=ServerWords(), presentation=ServerExamples())
SPEC_POWER = DescriptionRules(ServerNames({}), ServerTypicalValues(), ServerLimits(), ServerPresentation())
SPEC_CPU2017 = DescriptionRules(
    ServerNames(_name_metrics(2017)), ServerTypicalValues(), ServerLimits(), ServerPresentation()
)
SPEC_CPU2026 = DescriptionRules(
    ServerNames(_name_metrics(2026)), ServerTypicalValues(), LimitsOfCpu2026(), ServerPresentation()
)
