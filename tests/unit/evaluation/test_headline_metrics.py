"""Headline metrics: the champion and the best baseline of every split."""

from perfcast.evaluation.headline_metrics import headline_metrics

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
