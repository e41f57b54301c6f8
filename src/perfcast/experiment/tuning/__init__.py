"""Hyperparameter search by Optuna: one resumable study per split, predictor and fold, shared by several processes."""

from perfcast.experiment.tuning.search import Search, make_search
from perfcast.experiment.tuning.studies import Store, open_store
from perfcast.experiment.tuning.trial_runs import Outcome, begin, outcome, tune

__all__ = ["Outcome", "Search", "Store", "begin", "make_search", "open_store", "outcome", "tune"]
