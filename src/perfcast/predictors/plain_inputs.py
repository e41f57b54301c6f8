"""Inputs without column declarations: arrays and plain frames, checked as scikit-learn's estimators check theirs.

scikit-learn is imported when it is needed: a prediction of a champion has declared columns and needs none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from sklearn.utils import Tags

OutputForm = Literal["frame", "vector", "array"]


def estimator_tags(*, poor_score: bool = False) -> Tags:
    """Return the tags by which scikit-learn recognizes a regressor of positive targets that takes missing values.

    Several targets work, and are not declared: the check of scikit-learn that the tag turns on has negative targets.
    """
    from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

    return Tags(
        estimator_type="regressor",
        target_tags=TargetTags(required=True, positive_only=True),
        input_tags=InputTags(allow_nan=True),
        regressor_tags=RegressorTags(poor_score=poor_score),
        transformer_tags=None,
        classifier_tags=None,
    )


@dataclass(frozen=True)
class PlainTraining:
    """Checked training inputs as frames, and the form of y, which is that of predictions."""

    X: pd.DataFrame
    y: pd.DataFrame
    form: OutputForm


def read_training(estimator: Any, X: Any, y: Any) -> PlainTraining:
    """Check training inputs; the estimator gets `n_features_in_` and `feature_names_in_`.

    Shapes: X (n, features), y (n,) or (n, targets).
    Raises: ValueError or TypeError, with scikit-learn's messages, for inputs that cannot be used.
    """
    from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    frame = _read_features(estimator, X, reset=True)
    if isinstance(y, pd.DataFrame):
        check_consistent_length(frame, y)
        return PlainTraining(frame, y, "frame")
    scores = check_array(y, ensure_2d=False, dtype="numeric", input_name="y", estimator=estimator)
    check_consistent_length(frame, scores)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = column_or_1d(scores, warn=True)
    if scores.ndim == 1:
        return PlainTraining(frame, pd.DataFrame({getattr(y, "name", None) or "y": scores}, frame.index), "vector")
    columns = [f"y{number}" for number in range(scores.shape[1])]
    return PlainTraining(frame, pd.DataFrame(scores, frame.index, columns), "array")


def read_inputs(estimator: Any, X: Any) -> pd.DataFrame:
    """Check inputs of a prediction against those of training, and return them as a frame.

    Raises: NotFittedError before training; ValueError or TypeError for inputs that cannot be used.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    return _read_features(estimator, X, reset=False)


def _read_features(estimator: Any, X: Any, *, reset: bool) -> pd.DataFrame:
    from sklearn.utils.validation import check_array, validate_data

    if isinstance(X, pd.DataFrame):
        # text and dates stay as they are: the pandas types of the columns say how they are read
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if len(X) == 0 or X.shape[1] == 0:
            check_array(X.to_numpy(), estimator=estimator, input_name="X")
        return X.set_axis([str(name) for name in X.columns], axis=1)
    values = validate_data(estimator, X, reset=reset, dtype="numeric", ensure_all_finite="allow-nan")
    return pd.DataFrame(np.asarray(values, dtype=float), columns=[f"x{number}" for number in range(values.shape[1])])
