"""One table of names for people: it has every metric, and labels of conf files are distinct."""

from pathlib import Path

import pytest

from perfcast.config.conf_files import conf_files
from perfcast.config.predictor_conf import read_predictor_labels
from perfcast.schema import display_names
from perfcast.schema.display_names import column_label, metric_label, predictor_label
from perfcast.schema.metric_names import METRICS, POINTS
from perfcast.splits import names, split_label

CONF = Path(__file__).parents[2] / "conf"


def test_every_metric_has_a_label_of_its_own():
    for labels in (display_names.METRIC_LABELS, display_names.SHORT_METRIC_LABELS):
        assert sorted(labels) == sorted((*METRICS, *POINTS))
        assert len(set(labels.values())) == len(labels)


def test_short_labels_are_not_longer():
    for name in METRICS:
        assert len(metric_label(name, short=True)) <= len(metric_label(name))
    assert metric_label("p90", short=True) == "90th pct."
    assert metric_label("of_another_version") == "of another version"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("cpu_model", "CPU model"),
        ("cpu_model_id", "CPU model"),
        ("cpu_vendor", "CPU vendor"),
        ("submission_key", "submission"),
        ("memory_setup", "memory setup"),
        ("chips", "chips"),
    ],
)
def test_column_label(name, label):
    assert column_label(name) == label


def test_predictors_and_splits_have_distinct_labels():
    labels = read_predictor_labels(CONF)
    assert predictor_label("lightgbm", labels) == "LightGBM"
    assert predictor_label("hybrid_trees", {}) == "hybrid trees"
    shown = [predictor_label(name, labels) for name in conf_files(CONF, "predictor")]
    assert len(set(shown)) == len(shown)
    assert not any("_" in label for label in [*shown, *map(split_label, names())])
