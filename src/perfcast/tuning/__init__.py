"""Tuning: one stored, resumable Optuna study per question, predictor and fold, which several processes may work on."""

from perfcast.tuning.search import Search, make_search
from perfcast.tuning.studies import Store, open_store
from perfcast.tuning.work import Outcome, begin, outcome, tune

__all__ = ["Outcome", "Search", "Store", "begin", "make_search", "open_store", "outcome", "tune"]
