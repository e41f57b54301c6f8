"""Mean of predictors: a member that ends with the data takes no part outside their range."""

from pathlib import Path

import numpy as np
import pandas as pd

from perfcast.predictors.mean import Mean
from perfcast.predictors.predictor import Predictor, load_predictor
from perfcast.schema.table import Column, Kind, Role, Tag

COLUMNS = (
    Column("size", Kind.NUMERICAL, Role.FEATURE, "a", tags=(Tag.SCALING,)),
    Column("score", Kind.NUMERICAL, Role.TARGET, "a"),
)
LAW = {"_target_": "perfcast.predictors.baselines.PowerLawPredictor"}
NEAREST = {"_target_": "perfcast.predictors.baselines.NearestPredictor"}


def fit(within: dict[str, str] | None = None) -> Mean:
    frame = pd.DataFrame({"size": np.arange(8.0, 65.0)})
    score = frame["size"].pow(0.8).to_frame("score")
    return Mean(members={"law": LAW, "nearest": NEAREST}, within=within).fit(frame, score, columns=COLUMNS)


def predict(predictor: Predictor, *sizes: float) -> np.ndarray:
    return np.asarray(predictor.predict(pd.DataFrame({"size": sizes}))["score"])


def test_a_member_takes_no_part_outside_the_range_of_its_column() -> None:
    plain, limited = fit(), fit({"nearest": "size"})
    np.testing.assert_allclose(predict(limited, 2.0, 256.0), np.array([2.0, 256.0]) ** 0.8, rtol=0.01)
    assert np.abs(np.log(predict(plain, 2.0, 256.0) / predict(limited, 2.0, 256.0))).min() > 0.3
    np.testing.assert_array_equal(predict(limited, 8.0, 30.0, 64.0), predict(plain, 8.0, 30.0, 64.0))


def test_a_row_without_the_value_counts_as_inside() -> None:
    np.testing.assert_array_equal(predict(fit({"nearest": "size"}), np.nan), predict(fit(), np.nan))


def test_all_members_take_part_where_none_would() -> None:
    both = fit({"law": "size", "nearest": "size"})
    np.testing.assert_array_equal(predict(both, 2.0), predict(fit(), 2.0))


def test_a_saved_mean_keeps_the_range(tmp_path: Path) -> None:
    mean = fit({"nearest": "size"})
    mean.save(tmp_path)
    np.testing.assert_array_equal(predict(load_predictor(tmp_path), 2.0, 30.0), predict(mean, 2.0, 30.0))
