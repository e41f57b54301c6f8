"""Sum of kernels: the columns tagged ESTIMATE add up; a row without them gets the median of its task."""

import numpy as np
import pandas as pd

from perfcast.predictors.hybrid.kernel_sum import KernelSumPredictor
from perfcast.predictors.predictor import load_predictor
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("task", Kind.CATEGORICAL, Role.KEY, "run", tags=(Tag.TASK,)),
    *(Column(name, Kind.NUMERICAL, Role.FEATURE, "run", "ms", tags=(Tag.ESTIMATE,)) for name in ("first", "second")),
    Column("latency", Kind.NUMERICAL, Role.TARGET, "run", "ms"),
)
X = pd.DataFrame({"task": ["a", "a", "a", "b"], "first": [1.0, 2, 3, 4], "second": [1.0, 1, 1, 1]})
Y = pd.DataFrame({"latency": [10.0, 20, 40, 80]})


def test_estimates_add_up_and_nothing_is_fitted(tmp_path):
    model = KernelSumPredictor().fit(X, Y, columns=COLUMNS)
    np.testing.assert_allclose(model.predict(X)["latency"], [2, 3, 4, 5])
    model.save(tmp_path)
    pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(X), model.predict(X))


def test_a_row_without_an_estimate_gets_the_median_of_its_task():
    model = KernelSumPredictor().fit(X, Y, columns=COLUMNS)
    unknown = X.assign(first=np.nan)
    np.testing.assert_allclose(model.predict(unknown)["latency"], [20, 20, 20, 80])
