"""Means over the nearest measured shapes."""

import numpy as np
import pytest

from perfcast.domains.llm.accelerators.nearest_shapes import average_nearest


def test_a_measured_shape_outweighs_the_others_and_few_are_enough():
    places, values = np.array([[0.0], [1.0]]), np.array([1.0, 2.0])
    near = average_nearest(places, values, np.array([[0.0], [0.5]]))
    assert near == pytest.approx([(1 / 0.05 + 2) / (1 / 0.05 + 1), 1.5])
