"""Declared columns to a matrix of numbers: `LinearEncoder` for models that add up, `TreeEncoder` for trees.

Both learn from training rows only, do not depend on the order of columns, ignore text, and write what they learned as
JSON (`to_state`, `from_state`).
"""

from perfcast.encoding._columns import coded, codes, distinct_labels, feature_columns, labels, numbers
from perfcast.encoding._linear import LinearEncoder
from perfcast.encoding._trees import MISSING_CODE, UNKNOWN_CODE, TreeEncoder

__all__ = [
    "MISSING_CODE",
    "UNKNOWN_CODE",
    "LinearEncoder",
    "TreeEncoder",
    "coded",
    "codes",
    "distinct_labels",
    "feature_columns",
    "labels",
    "numbers",
]
