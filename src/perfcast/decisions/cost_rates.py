"""Cost of candidates over their years of use: price, memory and electricity."""

from __future__ import annotations

from dataclasses import dataclass

from perfcast.utils.errors import UserError

_HOURS_PER_YEAR = 8766


@dataclass(frozen=True, kw_only=True)
class CostRates:
    """Rates that turn a candidate into money, all in the currency of its price.

    Units: `electricity_price` per kWh, `years` of use around the clock at the candidate's watts, `memory_price` per GB
    for memory that the price does not include.
    """

    electricity_price: float = 0.0
    years: float = 1.0
    memory_price: float = 0.0

    def __post_init__(self) -> None:
        for name, low in (("electricity_price", 0.0), ("memory_price", 0.0), ("years", 1e-3)):
            value = getattr(self, name)
            if not low <= value <= 1e9:
                rule = "0 or a positive number" if low == 0 else "a positive number"
                raise UserError(f"--{name.replace('_', '-')} must be {rule}", f"it is {value:g}")

    def describe(self) -> str:
        """Return one line with what the cost has."""
        parts = ["price"]
        if self.electricity_price:
            parts.append(f"electricity at {self.electricity_price:g} per kWh for {self.years:g} years")
        if self.memory_price:
            parts.append(f"memory at {self.memory_price:g} per GB")
        return f"cost: {' + '.join(parts)}; per score-year it is divided by the score and {self.years:g} years"

    def total(self, price: float | None, watts: float | None, memory_gb: float | None) -> float | None:
        """Return the cost over all years, None where a fact that a rate needs is unknown."""
        if price is None or (self.electricity_price and watts is None) or (self.memory_price and memory_gb is None):
            return None
        energy = (watts or 0.0) / 1000 * _HOURS_PER_YEAR * self.years * self.electricity_price
        return price + energy + (memory_gb or 0.0) * self.memory_price


PRICE_ALONE = CostRates()
"""Cost without electricity and memory."""
