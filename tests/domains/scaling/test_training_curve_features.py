"""Features of runs under way, by hand."""

import numpy as np
import pandas as pd

from perfcast.domains.scaling.features.training_curve import derive
from perfcast.schema.table import Column, Kind, Role, Tag, build_table


def test_the_slope_is_relative_to_the_level():
    values = {
        "value_now": [2.0, 0.5, 0.1],
        "value_level": [4.0, 0.0, 0.001],
        "value_slope": [-0.2, 0.3, 0.9],
        "tokens_per_param": [20.0, 40.0, 80.0],
    }
    columns = (
        Column("id", Kind.CATEGORICAL, Role.KEY, "evaluation", tags=(Tag.ROW,)),
        *(Column(name, Kind.NUMERICAL, Role.FEATURE, "curve") for name in values),
    )
    frame = derive(build_table("runs", pd.DataFrame({"id": list("abc"), **values}), columns)).frame
    np.testing.assert_allclose(frame["relative_slope"], [-0.05, np.nan, 10.0])
    np.testing.assert_allclose(frame["log_value_now"], np.log(values["value_now"]), rtol=1e-6)
