"""Description rules of a dataset, of the parts that its domain has."""

from __future__ import annotations

from dataclasses import dataclass, field

from perfcast.domain import find_description
from perfcast.inference.rules.limits import Limits
from perfcast.inference.rules.names import Names
from perfcast.inference.rules.presentation import Presentation
from perfcast.inference.rules.typical_values import TypicalValues


@dataclass(frozen=True)
class DescriptionRules:
    """Rules of described machines, in parts; a part that a domain leaves out is that of a dataset without knowledge."""

    names: Names = field(default_factory=Names)
    typical_values: TypicalValues = field(default_factory=TypicalValues)
    limits: Limits = field(default_factory=Limits)
    presentation: Presentation = field(default_factory=Presentation)


def find_rules(dataset: str, *, lower_is_better: bool = False) -> DescriptionRules:
    """Return the rules of a dataset, those without knowledge where it has none of its own."""
    rules: DescriptionRules | None = find_description(dataset)
    presentation = Presentation()
    presentation.lower_is_better = lower_is_better
    return rules or DescriptionRules(presentation=presentation)
