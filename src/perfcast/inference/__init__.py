"""Inference: a described machine is parsed, imputed, predicted and explained by the champion of a dataset.

`MachineEntry -> ParsedMachine -> CompletedMachines -> Prediction`; a batch of parsed machines is one frame.
"""

from perfcast.inference.champion import Champion, load_champion
from perfcast.inference.machine_files import MachineEntry, read_machines
from perfcast.inference.parse import ParsedMachine, ParsedMachines, parse_machines
from perfcast.inference.predict import PredictOptions, predict_machines
from perfcast.inference.prediction import Driver, Estimate, Neighbor, Prediction, Predictions, Value

__all__ = [
    "Champion",
    "Driver",
    "Estimate",
    "MachineEntry",
    "Neighbor",
    "ParsedMachine",
    "ParsedMachines",
    "PredictOptions",
    "Prediction",
    "Predictions",
    "Value",
    "load_champion",
    "parse_machines",
    "predict_machines",
    "read_machines",
]
