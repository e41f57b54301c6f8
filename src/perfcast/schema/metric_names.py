"""Names of the metrics of the protocol, which also name published values in the conf of a dataset."""

from __future__ import annotations

METRICS = ("mape", "medape", "p90", "r2", "r2_raw", "spearman", "pairs", "coverage", "width", "interval_score")
"""Mean, median and 90th percentile of the absolute percentage error in %; R2 of the log score and of the score;
Spearman's rank correlation; share of pairs in the measured order; share of scores inside their interval, and its median
width in %; interval score in %."""

POINTS = ("mae", "medae")
"""Mean and median absolute error in percentage points, of results that are shares: near 0 a percentage says nothing."""

PERCENT = ("mape", "medape", "p90", "coverage", "width", "interval_score")
"""Metrics in %; the others are shares and coefficients, 1 at best."""

HIGH_IS_GOOD = ("r2", "r2_raw", "spearman", "pairs")
"""Metrics of which more is better; of errors and widths less is, and coverage is good at its level."""
