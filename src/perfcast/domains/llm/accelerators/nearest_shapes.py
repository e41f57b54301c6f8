"""Means over the nearest measured shapes.

Source: inverse distance weights by Shepard, 1968, ACM National Conference.
"""

from __future__ import annotations

import numpy as np

NEIGHBORS = 4
_MIN_DISTANCE = 0.05
"""Distance, in powers of two, below which a shape counts as measured."""


def average_nearest(places: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the mean of the values of the nearest places, weighted by inverse distances.

    Args:
        places: Measured shapes in powers of two, at least one.
        values: A value of each of them.
        wanted: Shapes in question, in powers of two.

    Shapes:
        places (n, axes), values (n,), wanted (m, axes) -> (m,).
    """
    from scipy.spatial import cKDTree

    count = min(NEIGHBORS, len(places))
    distance, nearest = cKDTree(places).query(wanted, k=list(range(1, count + 1)))
    weight = 1 / np.maximum(distance, _MIN_DISTANCE)
    return np.asarray((weight * values[nearest]).sum(axis=1) / weight.sum(axis=1))
