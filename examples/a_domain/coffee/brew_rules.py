"""Rules of described cups: short names of the columns, and the usual pressure."""

import numpy as np
import pandas as pd

from perfcast.inference.cells import Cells, fill_missing
from perfcast.inference.machine_fields import alias_field
from perfcast.inference.rules import DescriptionRules, Names, Presentation, TypicalValues


class BrewNames(Names):
    """Names of a cup of coffee."""

    fields = (
        alias_field("dose", "dose_g", "ground coffee of a cup in g", "18"),
        alias_field("grind", "grind_um", "mean size of the grains in um", "300"),
    )
    naming_columns = ("dose_g", "grind_um")


class BrewTypicalValues(TypicalValues):
    """Typical values of a cup of coffee."""

    def fill_usual(self, cells: Cells, last: pd.Timestamp) -> Cells:
        """Fill the 9 bar of most pumps."""
        return fill_missing(cells, {"pressure_bar": np.full(len(cells.index), 9.0)})


class BrewPresentation(Presentation):
    """Presentation of a cup of coffee."""

    lower_is_better = True


COFFEE_BREWS = DescriptionRules(names=BrewNames(), typical_values=BrewTypicalValues(), presentation=BrewPresentation())
