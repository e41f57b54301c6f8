"""Description rules: what a domain states of the machines of its datasets, in four parts with defaults."""

from perfcast.inference.rules.description_rules import DescriptionRules as DescriptionRules
from perfcast.inference.rules.limits import Limits as Limits
from perfcast.inference.rules.names import Names as Names
from perfcast.inference.rules.presentation import Presentation as Presentation
from perfcast.inference.rules.typical_values import TypicalValues as TypicalValues
