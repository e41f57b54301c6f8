"""Coded columns of measured results."""

import numpy as np
import pandas as pd

from perfcast.inference.cells import CodedFrame


def test_coded_columns_compare_like_the_frame():
    frame = pd.DataFrame({"name": pd.Series(["a", None, "b", "a"], dtype="str"), "size": [1.0, 2.0, None, 1.0]})
    coded = CodedFrame(frame)
    for name, value in (("name", "a"), ("name", "c"), ("size", 1.0), ("size", 2), ("size", 5.0)):
        assert coded.equals(name, value, np.array([3, 1, 2])).tolist() == (frame[name] == value)[[3, 1, 2]].tolist()
    assert coded["name"].codes.tolist() == [0, -1, 1, 0]
    assert coded["size"].values == [1.0, 2.0]
