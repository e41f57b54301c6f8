"""The protocol's metrics, computed from predictions alone."""

from perfcast.evaluation.champion import choose_champion
from perfcast.evaluation.evaluate import evaluate
from perfcast.evaluation.files import metrics_tree, read_evaluation, write_evaluation
from perfcast.evaluation.headline import headline
from perfcast.evaluation.results import AVERAGE, BASELINE, Evaluation

__all__ = [
    "AVERAGE",
    "BASELINE",
    "Evaluation",
    "choose_champion",
    "evaluate",
    "headline",
    "metrics_tree",
    "read_evaluation",
    "write_evaluation",
]
