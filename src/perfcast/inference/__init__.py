"""Inference: a described machine is parsed, imputed, predicted and explained by the champion of a dataset.

`MachineEntry -> ParsedMachines -> CompletedMachines -> Predictions`.
"""

from perfcast.inference.champion import Champion
from perfcast.inference.champion_files import load_champion
from perfcast.inference.machine_files import MachineEntry, read_machines
from perfcast.inference.options import PredictOptions
from perfcast.inference.parse import ParsedMachines, parse_machines
from perfcast.inference.predict import predict_machines
from perfcast.inference.prediction import Predictions
from perfcast.inference.suites import Suites

__all__ = [
    "Champion",
    "MachineEntry",
    "ParsedMachines",
    "PredictOptions",
    "Predictions",
    "Suites",
    "load_champion",
    "parse_machines",
    "predict_machines",
    "read_machines",
]
