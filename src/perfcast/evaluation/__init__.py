"""Metrics of the protocol from predictions alone, leakage checks, and comparison of two results."""

from perfcast.evaluation.error_metrics import choose_champion
from perfcast.evaluation.evaluate_runs import evaluate
from perfcast.evaluation.evaluation_files import metrics_tree, read_evaluation, write_evaluation
from perfcast.evaluation.evaluation_tables import AVERAGE, BASELINE, Evaluation, headline

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
