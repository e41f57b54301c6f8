"""perfcast forecasts benchmark results of machines from their characteristics."""

__version__ = "0.1.0"
