"""Base of every predictor: scikit-learn's conventions over declared columns, targets in natural logarithms."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd

from perfcast import plugins
from perfcast.predictors.task_rows import POOLED, measured_rows, partly_measured, task_labels
from perfcast.schema.table import Column, Kind, Role, infer_columns, require_usable_numbers
from perfcast.schema.table_files import SCHEMA_KEY, SCHEMA_VERSION, check_schema_version
from perfcast.utils.errors import UserError, explain_missing_module
from perfcast.utils.io import read_json, write_json
from perfcast.utils.model_files import read_state
from perfcast.utils.result_digests import record_digests, verify_folder

if TYPE_CHECKING:
    from sklearn.utils import Tags


_ABOUT = "predictor.json"
_LEARNED = "learned_values.json"
_OF_BASE = {"columns_", "targets_", "partial_", "plain_output_"}
"""Learned attributes that `Predictor` itself saves."""


class Predictor(ABC):
    """Regressor of positive targets from declared columns, with scikit-learn's conventions.

    The constructor has keyword-only parameters and only stores them: a subclass is best a dataclass, with learned
    attributes as fields of `init=False`. `clone`, searches and pipelines of scikit-learn work. Its `BaseEstimator` is
    not the base because its import would add 0.8 s to the 0.4 s of imports of a cold prediction.

    `fit` receives training rows alone. `validation` marks the rows among them that choices are made on, such as early
    stopping or a penalty. They are the latest rows for forward splits and whole entities for unseen ones.
    Errors are relative in this field, so predictors learn natural logarithms of the targets.

    A task may have some of the targets only: a benchmark belongs to one suite. For the rows of such a task (`partial_`)
    the predictions of those targets are finite and positive, and those of the others are NaN. All targets are predicted
    for other rows, and for those whose task is missing or was not in training.

    A subclass implements `_fit` and `_predict`. Learned attributes end in an underscore. Those that JSON can hold are
    saved and loaded; a subclass with others implements `_save` and `_load`.
    Shapes: X (n rows, columns), y (n, targets); NaN in y is a score that was not measured.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    """Optional packages, by import name, that `fit` and `load_predictor` need: imported there and not with the module.
    Without them the contract test is skipped for this predictor; its configuration is checked anyway."""

    reads_tags_only: ClassVar[bool] = False
    """Whether a prediction depends on tagged columns alone, so that the columns of a plain array tell it nothing."""

    reads_sequences: ClassVar[bool] = False
    """Whether SEQUENCE columns are inputs; other predictors never get them."""

    without_columns: tuple[str, ...] = ()
    """Shell patterns of feature columns that `fit` leaves out: no hyperparameter, neither cloned nor saved."""

    backtested: Mapping[bytes, Predictor] | None = None
    """Fits of the same hyperparameters by the index of their rows, for a predictor that backtests inside `fit`."""

    columns_: tuple[Column, ...]
    targets_: tuple[str, ...]
    partial_: dict[str, list[str]]
    """Measured targets of every task of which training has some targets and not all."""
    _when: pd.DatetimeIndex | None
    """Publication date of each training row, while `_fit` runs."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name, sorted. No parameter is an estimator, so `deep` adds nothing."""
        return {name: getattr(self, name) for name in sorted(inspect.signature(type(self)).parameters)}

    def set_params(self, **parameters: Any) -> Self:
        """Set constructor arguments and return self. Raises: ValueError when there is no such argument."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}, only {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def _repr_html_(self) -> str:
        """Return scikit-learn's diagram of an estimator for a notebook."""
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))

    def __sklearn_tags__(self) -> Tags:
        """Return the tags by which scikit-learn recognizes a regressor of positive targets with missing inputs.

        Several targets work, and are not declared: the check of scikit-learn that the tag turns on has negative ones.
        """
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True, positive_only=True),
            input_tags=InputTags(allow_nan=True),
            regressor_tags=RegressorTags(poor_score=self.reads_tags_only),
            transformer_tags=None,
            classifier_tags=None,
        )

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        columns: Sequence[Column] | None = None,
        validation: np.ndarray | None = None,
        when: pd.Series | None = None,
    ) -> Self:
        """Learn from training rows.

        With `columns`, X is a frame with at least every FEATURE column and every tagged KEY column of them, and y has
        the targets. Without, X and y are arrays or frames as scikit-learn takes them: every column is a feature, typed
        by its pandas type. `validation` is a boolean array over the rows of X.
        Raises: UserError when there are no rows, or a target is not positive.
        """
        self.__dict__.pop("plain_output_", None)
        if columns is None:
            X, y, self.plain_output_ = read_training(self, X, y)
        if len(X) == 0:
            raise UserError(
                "a predictor must have training rows", "the training part of the split is empty", "use another split"
            )
        targets = y.to_frame() if isinstance(y, pd.Series) else y
        measured = targets.to_numpy(dtype=float)
        if not (np.isnan(measured) | ((measured > 0) & np.isfinite(measured))).all():
            raise UserError(
                "targets must be positive numbers",
                "zero, negative or infinite values are among them",
                "remove these rows",
            )
        declared = tuple(columns) if columns is not None else infer_columns(X)
        visible = [column for column in declared if not self._is_left_out(column)]
        self.columns_ = tuple(sorted(visible, key=lambda column: column.name))
        self.targets_ = tuple(map(str, targets.columns))
        mask = np.zeros(len(X), dtype=bool) if validation is None else np.asarray(validation, dtype=bool)
        self._when = None if when is None else pd.DatetimeIndex(when)
        inputs = self._inputs(X)
        logs = np.log(measured)
        require_usable_numbers(inputs, self.columns_, "the training rows")
        measured_rows(logs, self.targets_)
        self.partial_ = partly_measured(task_labels(inputs, self.columns_), logs, self.targets_)
        self._fit(inputs, logs, mask)
        del self._when
        return self

    def predict(self, X: Any) -> Any:
        """Return the predicted median of every target that the task of a row has, else NaN, in the targets' units.

        Shapes: X (n, columns) -> (n, targets), index as in X. After a training on arrays the result is an array of the
        shape of y.
        """
        output = getattr(self, "plain_output_", None)
        if output is None and hasattr(self, "columns_"):
            return self._predict_frame(X)
        predicted = self._predict_frame(read_inputs(self, X))
        if output == "frame":
            return predicted
        return predicted.to_numpy().ravel() if output == "vector" else predicted.to_numpy()

    def _predict_frame(self, X: pd.DataFrame) -> pd.DataFrame:
        if len(X) == 0:
            return pd.DataFrame(index=X.index, columns=list(self.targets_), dtype=float)
        logs = self._predict(self._inputs(X))
        if self.partial_:
            logs = np.where(self.requested_outputs(X), logs, np.nan)
        return pd.DataFrame(np.exp(logs), index=X.index, columns=list(self.targets_))

    def predict_deviations(self, X: pd.DataFrame) -> np.ndarray | None:
        """Return the standard deviation of the error of every log prediction, (n, targets); None by default.

        The intervals of a predictor that has them are those of normal distributions, without a calibration.
        """
        return None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R2 of the predictions, as scikit-learn's regressors do."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    def requested_outputs(self, X: pd.DataFrame) -> np.ndarray:
        """Return which targets are predicted for each row; see the class. Shapes: (n, columns) -> (n, targets) bool."""
        mask = np.zeros((len(X), len(self.targets_)), dtype=bool)
        for index, _, rows in self._outputs(task_labels(X, self.columns_)):
            mask[rows, index] = True
        return mask

    def _outputs(self, tasks: np.ndarray) -> Iterator[tuple[int, str, np.ndarray]]:
        """Yield every output of the rows: the number of the target, the task, and the positions of its rows.

        Shapes: tasks (n,) object -> positions (rows of the task,) int.
        """
        for task in map(str, np.unique(tasks.astype(str))):
            rows = np.flatnonzero(tasks == task)
            targets = self.partial_.get(task, self.targets_)
            yield from ((index, task, rows) for index, name in enumerate(self.targets_) if name in targets)

    def _apply_models(
        self, tasks: np.ndarray, models: Mapping[str, Mapping[str, Any]], apply: Callable[[Any, np.ndarray], Any]
    ) -> np.ndarray:
        """Return the log targets, (n, targets), that `apply` makes of a model and of the positions of its rows.

        Args: `models` are those by target and task. A task that training did not have gets the model of POOLED.
        """
        logs = np.full((len(tasks), len(self.targets_)), np.nan)
        for index, task, rows in self._outputs(tasks):
            by_task = models[self.targets_[index]]
            logs[rows, index] = apply(by_task[task if task in by_task else POOLED], rows)
        return logs

    def _is_left_out(self, column: Column) -> bool:
        if column.kind is Kind.SEQUENCE and not self.reads_sequences:
            return True
        return column.role is Role.FEATURE and any(
            fnmatchcase(column.name, pattern) for pattern in self.without_columns
        )

    def input_names(self) -> list[str]:
        """Return the names of the columns that `predict` reads, in its order."""
        return [column.name for column in self.columns_ if column.role in (Role.FEATURE, Role.KEY)]

    def _inputs(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the declared features and keys of X in the order of `input_names`."""
        names = self.input_names()
        if list(X.columns) == names:
            return X
        missing = [name for name in names if name not in X.columns]
        if missing:
            raise UserError(
                "a table must have every declared column", f"columns {', '.join(missing[:8])} are missing", "add them"
            )
        return X[names]

    def save(self, folder: Path) -> None:
        """Write the fitted predictor to a folder, in formats that execute nothing when read."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        about: dict[str, Any] = {
            SCHEMA_KEY: SCHEMA_VERSION,
            "class": f"{type(self).__module__}:{type(self).__qualname__}",
            "params": self.get_params(deep=False),
            "columns": [asdict(column) for column in self.columns_],
            "targets": list(self.targets_),
            "partial": self.partial_,
        }
        self._save(folder)
        write_json(folder / _ABOUT, about)
        record_digests(folder)

    @abstractmethod
    def _fit(self, X: pd.DataFrame, log_y: np.ndarray, validation: np.ndarray) -> None:
        """Learn natural logarithms of the targets. Shapes: X (n, columns), log_y (n, targets), validation (n,) bool."""

    @abstractmethod
    def _predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return natural logarithms of the targets. Shapes: X (n, columns) -> (n, targets)."""

    def _save(self, folder: Path) -> None:
        write_json(folder / _LEARNED, {name: value for name, value in vars(self).items() if _is_learned(name)})

    def _load(self, folder: Path) -> None:
        state = read_state(folder / _LEARNED)
        vars(self).update({name: value for name, value in state.items() if _is_learned(name)})


def _is_learned(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_") and name not in _OF_BASE


def predict_logs(predictor: Predictor, X: pd.DataFrame) -> np.ndarray:
    """Return the natural logarithms of the predictions, (n, targets)."""
    return np.asarray(np.log(predictor.predict(X).to_numpy(dtype=float)))


def load_predictor(folder: Path) -> Predictor:
    """Read a predictor written by `Predictor.save`.

    Only predictors of perfcast and its domains are instantiated.

    Raises: UserError when the folder holds none, or a file in it was changed.
    """
    path = Path(folder) / _ABOUT
    if not path.is_file():
        raise UserError("a model folder must hold predictor.json", f"there is none in {folder}", "train it first")
    try:
        verify_folder(Path(folder))  # compiled libraries may crash on what they did not write
        return read_predictor(Path(folder))
    except UserError:
        raise
    except Exception as error:  # libraries raise many types for bytes that they did not write
        if isinstance(error, ImportError) and (absent := explain_missing_module(error, "this model")):
            raise absent from None
        fact = f"{folder} cannot be read ({type(error).__name__})"
        raise UserError("a model folder must be as it was saved", fact, "train it again, or fetch it again") from error


def read_predictor(folder: Path) -> Predictor:
    """Read a predictor as `load_predictor` does, of a folder whose digests were verified."""
    path = folder / _ABOUT
    about = read_json(path)
    check_schema_version(about, path)
    module, _, name = about["class"].partition(":")
    try:
        loaded = plugins.load_class(f"{module}.{name}", f"the class in {path}")
    except UserError as error:
        remedy = error.remedy or "train it again where another revision of perfcast made it"
        raise UserError(error.requirement, error.fact, remedy) from None
    if not issubclass(loaded, Predictor):
        raise UserError("a model must be one of perfcast's predictors", f"{path} names {about['class']!r}")
    predictor: Predictor = loaded(**about["params"])
    predictor.columns_ = tuple(Column(**{**entry, "tags": tuple(entry["tags"])}) for entry in about["columns"])
    predictor.targets_ = tuple(about["targets"])
    predictor.partial_ = about.get("partial", {})
    predictor._load(folder)
    return predictor


OutputForm = Literal["frame", "vector", "array"]


def read_training(estimator: Any, X: Any, y: Any) -> tuple[pd.DataFrame, pd.DataFrame, OutputForm]:
    """Return checked training inputs as frames, and the form of y, which is that of predictions.

    The estimator gets `n_features_in_` and `feature_names_in_`.

    Shapes: X (n, features), y (n,) or (n, targets).
    Raises: ValueError or TypeError, with scikit-learn's messages, for inputs that cannot be used.
    """
    from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    frame = _read_features(estimator, X, reset=True)
    if isinstance(y, pd.DataFrame):
        check_consistent_length(frame, y)
        return frame, y, "frame"
    scores = check_array(y, ensure_2d=False, dtype="numeric", input_name="y", estimator=estimator)
    check_consistent_length(frame, scores)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = column_or_1d(scores, warn=True)
    if scores.ndim == 1:
        return frame, pd.DataFrame({getattr(y, "name", None) or "y": scores}, frame.index), "vector"
    columns = [f"y{number}" for number in range(scores.shape[1])]
    return frame, pd.DataFrame(scores, frame.index, columns), "array"


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
