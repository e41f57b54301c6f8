"""Calibration of prediction intervals: coverage by level and in-domain score, and PIT."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from perfcast.evaluation.run_predictions import (
    IN_DOMAIN_SCORE,
    PIT,
    interval_widths,
    is_covered,
)

PIT_COLUMNS = ["task", "from", "to", "share", "rows"]
_BINS = np.linspace(0.0, 1.0, 11)


def signed_pit(predictions: pd.DataFrame) -> np.ndarray:
    """Return the probability integral transform of measured scores, 0 to 1, NaN without intervals, (n,).

    0.5 is a score as predicted, 1 one above all that is expected.
    """
    measured, predicted, levels = (predictions[name].to_numpy(dtype=float) for name in ("measured", "predicted", PIT))
    above = np.sign(measured - predicted)
    return np.asarray(0.5 + 0.5 * above * np.where(np.isnan(levels), np.nan, np.minimum(levels, 1.0)))


def pit_histogram(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the share of measured scores in tenths of the predictive distribution by task: columns PIT_COLUMNS.

    Each share is 0.1 for perfect predictive distributions. Seeds are pooled. Source: Gneiting, Balabdaoui and Raftery
    (2007), Journal of the Royal Statistical Society B 69.
    """
    pit = signed_pit(predictions)
    known = ~np.isnan(pit)
    rows: list[tuple[object, ...]] = []
    for task, places in predictions[known].groupby("task", sort=True).indices.items():
        values = pit[known][places]
        shares = np.histogram(values, _BINS)[0] / len(values)
        bins = zip(pairwise(_BINS), shares, strict=True)
        rows += [(str(task), low, high, share, len(values)) for (low, high), share in bins]
    return pd.DataFrame(rows, columns=PIT_COLUMNS)


SUPPORT_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
IN_DOMAIN_COLUMNS = ["from", "to", "in_domain_score", "mape", "coverage", "width", "rows", "entities"]


def errors_by_in_domain_score(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return error, coverage and median width by in-domain score, tasks and seeds pooled: columns IN_DOMAIN_COLUMNS.

    Units: mape, coverage and width in %.
    """
    known = predictions[predictions[IN_DOMAIN_SCORE].notna()]
    error = 100 * (known["predicted"] / known["measured"] - 1).abs()
    errors = known.assign(mape=error, coverage=100 * is_covered(known), width=interval_widths(known))
    bins = pd.cut(errors[IN_DOMAIN_SCORE], SUPPORT_EDGES, include_lowest=True, labels=False)
    rows = []
    for bin_number, part in errors.groupby(bins, sort=True):
        edges = SUPPORT_EDGES[int(bin_number)], SUPPORT_EDGES[int(bin_number) + 1]
        means = part[[IN_DOMAIN_SCORE, "mape", "coverage"]].mean()
        counts = part["row"].nunique(), part["entity"].nunique()
        rows.append((*edges, *means, part["width"].median(), *counts))
    return pd.DataFrame(rows, columns=IN_DOMAIN_COLUMNS)
