"""Headline metrics: the champion and the best baseline of every split."""

from perfcast.evaluation.evaluation_files import headline_metrics

METRICS = {
    "servers": {
        "random": {
            "trees": {"average": {"mape": 2.0, "medape": 1.0, "coverage": 91.0, "r2": 0.9}},
            "nearest": {"average": {"mape": 4.0}},
            "power_law": {"average": {"mape": 3.0}},
        },
        "published": {"power_law": {"average": {"mape": 5.0}}},
    }
}


def test_a_split_has_the_champion_and_the_best_baseline():
    headline = headline_metrics(METRICS, {"servers": "trees"}, ["nearest", "power_law"])
    assert headline["servers", "random"] == {
        "champion": "trees",
        "mape": 2.0,
        "medape": 1.0,
        "coverage": 91.0,
        "baseline": "power_law",
        "baseline_mape": 3.0,
    }


def test_what_was_not_measured_is_left_out():
    headline = headline_metrics(METRICS, {"servers": "trees"}, ["nearest"])
    assert headline["servers", "published"] == {"champion": "trees"}


def test_a_share_has_its_error_in_points():
    metrics = {
        "hosts": {
            "random": {
                "trees": {"average": {"mae": 2.0, "mape": 90.0}},
                "nearest": {"average": {"mae": 4.0, "mape": 30.0}},
                "ridge": {"average": {"mae": 3.0, "mape": 80.0}},
            }
        }
    }
    headline = headline_metrics(metrics, {"hosts": "trees"}, ["nearest", "ridge"])
    assert headline["hosts", "random"] == {
        **{"champion": "trees", "mae": 2.0, "mape": 90.0},
        **{"baseline": "ridge", "baseline_mae": 3.0},
    }
