"""Derived columns have the same bytes on every processor."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy._core._multiarray_umath import __cpu_features__ as processor

from perfcast.features.feature_math import round_digits

OF_LOGARITHMS = """
import hashlib
import numpy as np
import pandas as pd
from perfcast.features.feature_math import append, append_logs, feature, log
from perfcast.schema.table import build_table

values = pd.Series(np.random.default_rng(0).lognormal(3, 2, 20_000))
table = build_table("any", pd.DataFrame({"x": values}), [feature("x", "any", "", "any")])
table = append(table, [feature("power", "any", "", "any")], {"power": np.exp(log(values) / 3)})
table = append_logs(table, ["power"])
print(hashlib.sha256(table.frame.to_numpy().tobytes()).hexdigest())
"""

round_one = np.vectorize(lambda value: round_digits(np.array([value]))[0])


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30))
def test_ten_digits_are_exact(value: float) -> None:
    once = float(round_one(value))
    assert once == pytest.approx(value, rel=5.01e-10, abs=1e-40)
    assert round_one(-value) == -once


@pytest.mark.parametrize("value", [0.0, 1.0, 2.4 * 64, 0.1 + 0.2, 16777217.0, 1e-9, 123456789.0])
def test_a_short_decimal_is_exact(value: float) -> None:
    assert round_one(value) == float(f"{value:.10g}")
    assert round_one(np.nextafter(value, np.inf)) == round_one(value)


def test_missing_stays_missing() -> None:
    assert np.isnan(round_digits(np.array([np.nan, 1.5]))).tolist() == [True, False]


@pytest.mark.skipif(not processor.get("X86_V4"), reason="this processor has no AVX-512 to be left out")
def test_logarithms_of_another_vector_unit_give_the_same_bytes() -> None:
    def bytes_on(**unit: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", OF_LOGARITHMS],
            env={**os.environ, **unit},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout

    assert bytes_on() == bytes_on(NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR")
