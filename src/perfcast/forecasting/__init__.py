"""Forecasts of machines that nobody has measured, by the champion of a data set, with the reasons for each."""

from perfcast.forecasting.answer import Answer, Driver, Estimate, MachineAnswer, Neighbour, Value
from perfcast.forecasting.champion import Champion, load_champion
from perfcast.forecasting.describing import Described, describe
from perfcast.forecasting.forecast import Asked, forecast

__all__ = [
    "Answer",
    "Asked",
    "Champion",
    "Described",
    "Driver",
    "Estimate",
    "MachineAnswer",
    "Neighbour",
    "Value",
    "describe",
    "forecast",
    "load_champion",
]
