"""Contract of every predictor, checked on every file of conf/predictor."""

from __future__ import annotations

import inspect
import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from factory import Part, parts, tiny_table
from sklearn.base import clone

from perfcast import plugins
from perfcast.config.conf_files import conf_files
from perfcast.config.predictor_conf import PredictorConf, read_predictor
from perfcast.predictors import factory
from perfcast.predictors.factory import Composite
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.schema.table import Kind, Role
from perfcast.utils.errors import UserError

CONF = Path(__file__).parents[2] / "conf"
NAMES = sorted(conf_files(CONF, "predictor"))


def conf(name: str) -> PredictorConf:
    return read_predictor(CONF, name)


# A class is tested once, under one configuration; these configurations change its values only.
VARIANTS = {"constant_ratio", "flops", "gpperf_forest", "ncpp_published"} | {
    name for name in NAMES if "_without_" in name
}
CLASSES = [name for name in NAMES if name not in VARIANTS]
EPOCHS = "epochs"
CHOICES = np.arange(72) >= 60
"""The last rows of training, set aside for choices."""
FEW = {
    EPOCHS: 2,
    "length_scale_steps": 5,
    "n_estimators": 20,
    "min_steps": 8,
    "queries": 20,
    "meta_batch_size": 2,
    "episodes_per_epoch": 4,
}
ENOUGH = {"epochs": 10, "min_steps": 130}
"""Bounds with which eight rows are learned by heart."""

# Mean absolute error of log targets after learning eight rows by heart: at most that of the mean. Predictors with a
# seed and these others bend through eight points.
EXACT_BOUND = 0.05
EXACT = {
    "analytical",
    "analytical_time",
    "nearest",
    "power_law",
    "ridge",
    "ridge_transfer",
    "roofline_ridge",
}
# A roofline model of a table without amounts is one constant per task, or per category. A Gaussian process takes a
# hundredth of the variance for noise. Trees with two rows a leaf do not repeat eight rows, nor do trees of few columns.
LOOSE_BOUND = {
    "roofline": 2.0,
    "composition": 0.3,
    "gaussian_process": 0.1,
    "ratio_gaussian_process": 0.1,
    "ratio_mean": 0.5,
    **dict.fromkeys(("composition_ensemble", "composition_trees", "roofline_ensemble"), 0.2),
    **dict.fromkeys(("resource_shares_trees", "work_of_alone_trees"), 0.1),
}
LEVEL_ALONE = {"pooled_effects", "pooled_trees", "accelerators_mean", "power_trees"}
"""Predictors by the names of their columns: of a table without these they know the level alone, and
trees on their residual do not count, so the bound is that of the mean."""


def predictor_class(name: str) -> type[Predictor]:
    return factory.predictor_class(conf(name).target)


def known(target: str) -> set[str]:
    """Return the names of the constructor's parameters."""
    return set(inspect.signature(plugins.load_class(target, "_target_")).parameters)


def shrunken(arguments: Mapping[str, Any], target: str | None, most: Mapping[str, int]) -> dict[str, Any]:
    """Return arguments with which a class, and those that they name, train in a moment."""
    few = {key: min(value, arguments.get(key, value)) for key, value in most.items() if target and key in known(target)}
    nested = {
        key: shrunken(value, value.get("_target_"), most)
        for key, value in arguments.items()
        if isinstance(value, Mapping)
    }
    return {**arguments, **nested, **few}


def build(name: str, most: Mapping[str, int] = FEW, **more: Any) -> Predictor:
    params = shrunken(conf(name).settings("quick")["quick"], conf(name).target, most)
    if conf(name).stochastic:
        params["random_state"] = 1
    return predictor_class(name)(**{**params, **more})


def need_packages(name: str) -> None:
    """Skip the test, and say why, where an optional package of the predictor is not installed."""
    for package in predictor_class(name).requires:
        pytest.importorskip(package, reason=f"{name} needs the optional package {package}")


class Models(dict[str, Predictor]):
    """One fitted predictor per name, fitted when asked for."""

    def __init__(self, part: Part) -> None:
        self.part = part

    def __missing__(self, name: str) -> Predictor:
        self[name] = fitted(name, self.part, validation=CHOICES)
        return self[name]


def fitted(name: str, part: Part, most: Mapping[str, int] = FEW, **options: Any) -> Predictor:
    need_packages(name)
    return build(name, most).fit(part.X, part.y, columns=part.columns, **options)


def is_neural(name: str) -> bool:
    return any(EPOCHS in known(target) for target in conf(name).targets)


def functions_of(name: str) -> tuple[object, ...]:
    """Return the functions by which a predictor is fitted, predicts and is saved, and whether it reads sequences."""
    methods = ("_fit", "_predict", "_predict_scaled", "_prepare_network", "_save", "_load", "reads_sequences")
    return tuple(getattr(predictor_class(name), each, None) for each in methods)


def size_of(name: str) -> tuple[bool, int, int]:
    return is_neural(name), len(conf(name).targets), len(conf(name).params)


OF_ITS_KIND = {functions_of(name): name for name in sorted(CLASSES, key=size_of, reverse=True)}
"""The smallest predictor of all that differ in their layers, laws or members alone."""
FITTED = [name for name in CLASSES if not is_neural(name) or name in OF_ITS_KIND.values()]
"""Predictors that are fitted to tables of every form: networks, which take longest, only once of a kind."""


def assert_same(name: str, left: pd.DataFrame, right: pd.DataFrame) -> None:
    tolerance = 1e-5 if is_neural(name) else 1e-12
    pd.testing.assert_frame_equal(left, right, rtol=tolerance, atol=0)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def data() -> tuple[Part, Part]:
    return parts(tiny_table(), len(CHOICES))


@pytest.fixture(name="X")
def inputs(data: tuple[Part, Part]) -> pd.DataFrame:
    return data[1].X


@pytest.fixture(scope="module")
def models(data: tuple[Part, Part]) -> Models:
    """The fitted predictors; tests only read them."""
    return Models(data[0])


def test_every_predictor_has_a_configuration_and_every_configuration_a_predictor() -> None:
    plugins.classes("predictors")
    pending, concrete = [Predictor], set()
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if not kind.__subclasses__() and kind.__module__.startswith("perfcast."):
            concrete.add(kind)
    made_of = {name: frozenset(conf(name).targets) for name in NAMES}
    assert {f"{kind.__module__}.{kind.__qualname__}" for kind in concrete} <= frozenset().union(*made_of.values())
    tested = [made_of[name] for name in CLASSES]
    assert len(set(tested)) == len(tested)
    assert {made_of[name] for name in VARIANTS if "_without_" not in name} <= set(tested)


@pytest.mark.parametrize("name", NAMES)
class TestConfiguration:
    def test_params_are_parameters_of_the_constructor(self, name: str) -> None:
        values = (conf(name).params, conf(name).quick)
        assert set().union(*values) <= known(conf(name).target)
        made_of = [target for target in conf(name).targets if not issubclass(plugins.load_class(target, ""), Composite)]
        is_seeded = any("random_state" in known(target) for target in made_of)
        assert conf(name).stochastic == is_seeded, "`stochastic: true` is for a `random_state`"

    def test_space_and_tuned_values_are_of_the_constructor_and_the_space_holds_the_default_values(
        self, name: str
    ) -> None:
        checked = read_predictor(CONF, name)
        params = predictor_class(name)(**checked.params).get_params(deep=False)
        assert set(checked.space) <= set(params) - {"random_state"}
        assert [key for key, dimension in checked.space.items() if not dimension.holds(params[key])] == []
        tuned = [values for splits in checked.tuned.values() for entry in splits.values() for values in entry.folds]
        assert set().union(*tuned) <= set(params) - {"random_state"}

    def test_constructor_stores_only(self, name: str) -> None:
        predictor = build(name)
        assert vars(predictor) == predictor.get_params(deep=False)


@pytest.mark.parametrize("name", CLASSES)
class TestPrediction:
    def test_is_finite_positive_and_keeps_the_index(self, name: str, models: Models, X: pd.DataFrame) -> None:
        predicted = models[name].predict(X)
        assert list(predicted.columns) == ["score"]
        assert predicted.index.equals(X.index)
        assert (np.isfinite(predicted) & (predicted > 0)).all(axis=None)

    def test_empty_table_gives_empty_answer(self, name: str, models: Models, X: pd.DataFrame) -> None:
        predicted = models[name].predict(X.iloc[:0])
        assert predicted.shape == (0, 1)
        assert list(predicted.columns) == ["score"]

    def test_batch_of_one_equals_batch_of_many(self, name: str, models: Models, X: pd.DataFrame) -> None:
        alone = pd.concat([models[name].predict(X.iloc[[row]]) for row in range(5)])
        assert_same(name, alone, models[name].predict(X.iloc[:5]))

    def test_labels_and_target_columns_are_not_read_and_the_input_is_left_as_it_was(
        self, name: str, models: Models, X: pd.DataFrame
    ) -> None:
        before, usual = X.copy(deep=True), models[name].predict(X)
        np.testing.assert_array_equal(models[name].predict(X.set_axis([0] * len(X))), usual)
        pd.testing.assert_frame_equal(models[name].predict(X.assign(score=1e9, second_score=-1.0)), usual)
        pd.testing.assert_frame_equal(X, before)

    def test_unknown_and_missing_values_do_no_harm(self, name: str, models: Models, data: tuple[Part, Part]) -> None:
        X = data[1].X
        unknown = X.assign(vendor="never seen", suite="never seen", part="never seen")
        assert np.isfinite(models[name].predict(unknown)).all(axis=None)
        empty: dict[str, Any] = {
            column.name: pd.Series([pd.NaT if column.kind is Kind.DATE else np.nan] * len(X), index=X.index)
            for column in data[1].columns
            if column.role is not Role.TARGET
        }
        missing = pd.DataFrame(empty).astype({column: X[column].dtype for column in empty})
        assert np.isfinite(models[name].predict(missing)).all(axis=None)
        predicted = models[name].predict(X.assign(constant=1e6, never_known=1e6))
        assert np.isfinite(predicted).all(axis=None)
        assert (np.abs(np.log(predicted / models[name].predict(X))) < 0.7).all(axis=None)


class _Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


def _archive(marker: Path) -> bytes:
    """Return an archive of arrays under the names that models use, each of them a pickled object."""
    content = io.BytesIO()
    planted = np.array([_Planted(marker)], dtype=object)
    np.savez(content, allow_pickle=True, **dict.fromkeys(("weights", "vectors", "0", "data"), planted))
    return content.getvalue()


@pytest.mark.parametrize("name", CLASSES)
class TestModel:
    def test_clone_has_equal_parameters_and_nothing_learned(self, name: str, models: Models) -> None:
        copy = clone(models[name])
        assert copy.get_params() == models[name].get_params()
        assert not [key for key in vars(copy) if key.endswith("_")]

    def test_same_seed_gives_same_bytes(
        self, name: str, models: Models, data: tuple[Part, Part], tmp_path: Path
    ) -> None:
        models[name].save(tmp_path / "first")
        fitted(name, data[0], validation=CHOICES).save(tmp_path / "second")
        first, second = files(tmp_path / "first"), files(tmp_path / "second")
        assert list(first) == list(second)
        assert [path for path in first if first[path] != second[path]] == []

    def test_saved_model_loads_and_holds_nothing_that_unpickles(
        self, name: str, models: Models, X: pd.DataFrame, tmp_path: Path
    ) -> None:
        models[name].save(tmp_path)
        loaded = load_predictor(tmp_path)
        assert type(loaded) is predictor_class(name)
        assert loaded.get_params() == models[name].get_params()
        pd.testing.assert_frame_equal(loaded.predict(X), models[name].predict(X))
        suffixes = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
        assert suffixes <= {".json", ".npy", ".npz", ".parquet", ".txt", ".sha256"}
        for path in tmp_path.rglob("*.np[yz]"):
            np.load(path, allow_pickle=False)

    def test_a_file_that_someone_replaced_is_refused_in_one_line_and_never_executed(
        self, name: str, models: Models, tmp_path: Path
    ) -> None:
        marker = tmp_path / "executed"
        models[name].save(tmp_path / "model")
        for path in [path for path in sorted((tmp_path / "model").rglob("*")) if path.is_file()]:
            whole = path.read_bytes()
            for planted in (pickle.dumps(_Planted(marker)), _archive(marker), whole[: len(whole) // 2]):
                path.write_bytes(planted)
                with pytest.raises(UserError) as error:
                    load_predictor(tmp_path / "model")
                assert "\n" not in str(error.value)
                assert not marker.exists(), path
            path.write_bytes(whole)
        load_predictor(tmp_path / "model")

    def test_overfits_eight_rows(self, name: str) -> None:
        part, _ = parts(tiny_table(8, seed=3), 8)
        predictor = fitted(name, part, ENOUGH)
        error = np.abs(np.log(predictor.predict(part.X) / part.y)).to_numpy().mean()
        of_mean = float(np.log(part.y.to_numpy()).std())  # no less than its mean absolute error
        is_exact = (conf(name).stochastic or name in EXACT) and name not in LEVEL_ALONE
        bound = EXACT_BOUND if is_exact else of_mean
        assert error < LOOSE_BOUND.get(name, bound)


@pytest.mark.parametrize("name", FITTED)
class TestLearning:
    def test_column_order_does_not_matter(self, name: str, models: Models, data: tuple[Part, Part]) -> None:
        part, X = data[0], data[1].X
        turned = Part(part.X[part.X.columns[::-1]], part.y, part.columns[::-1])
        other = fitted(name, turned, validation=CHOICES)
        pd.testing.assert_frame_equal(other.predict(X[sorted(X.columns)]), models[name].predict(X))

    def test_fits_without_rows_for_choices_and_with_nothing_else(self, name: str, data: tuple[Part, Part]) -> None:
        for validation in (np.zeros(len(CHOICES), dtype=bool), np.ones(len(CHOICES), dtype=bool)):
            assert np.isfinite(fitted(name, data[0], validation=validation).predict(data[1].X)).all(axis=None)

    def test_fits_one_row_and_one_task(self, name: str, data: tuple[Part, Part]) -> None:
        part = data[0]
        for rows in (np.arange(len(part.X)) == 0, (part.X["suite"] == "rate").to_numpy()):
            few = Part(part.X[rows], part.y[rows], part.columns)
            assert np.isfinite(fitted(name, few).predict(data[1].X)).all(axis=None)

    def test_fits_a_plain_frame_without_declarations(self, name: str, data: tuple[Part, Part]) -> None:
        need_packages(name)
        names = ["cores", "base_mhz", "vendor", "available"]
        predictor = build(name).fit(data[0].X[names], data[0].y["score"])
        assert np.isfinite(predictor.predict(data[1].X[names])).all(axis=None)

    def test_several_targets_with_missing_measurements(self, name: str, tmp_path: Path) -> None:
        part, test = parts(tiny_table(), len(CHOICES), ("score", "second_score"))
        predictor = fitted(name, part, validation=CHOICES)
        predicted = predictor.predict(test.X)
        assert list(predicted.columns) == ["score", "second_score"]
        assert np.isfinite(predicted).all(axis=None)
        predictor.save(tmp_path)
        pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(test.X), predicted)

    def test_a_task_is_predicted_for_the_targets_that_training_has_for_it(self, name: str, tmp_path: Path) -> None:
        part, test = parts(tiny_table(), len(CHOICES), ("score", "second_score"))
        is_rate = part.X["suite"] == "rate"
        y = pd.DataFrame({"score": part.y["score"].where(is_rate), "second_score": part.y["score"].where(~is_rate)})
        predictor = fitted(name, Part(part.X, y, part.columns), validation=CHOICES)
        predicted = predictor.predict(test.X)
        requested = np.column_stack([test.X["suite"] == "rate", test.X["suite"] == "speed"])
        np.testing.assert_array_equal(predictor.requested_outputs(test.X), requested)
        np.testing.assert_array_equal(np.isfinite(predicted) & (predicted > 0), requested)
        assert predicted.isna().to_numpy()[~requested].all()
        for unknown in ("never seen", None):
            predicted_unknown = predictor.predict(test.X.assign(suite=pd.Series(unknown, test.X.index, dtype="str")))
            assert (np.isfinite(predicted_unknown) & (predicted_unknown > 0)).all(axis=None)
        predictor.save(tmp_path)
        pd.testing.assert_frame_equal(load_predictor(tmp_path).predict(test.X), predicted)

    def test_a_target_never_measured_is_refused(self, name: str, data: tuple[Part, Part]) -> None:
        y = data[0].y.assign(second_score=np.nan)
        with pytest.raises(UserError, match="second_score"):
            fitted(name, Part(data[0].X, y, data[0].columns))
