"""Splits and predictors in plain words, for people who do not know their short names."""

from __future__ import annotations

import re

from perfcast.splits import learning_curve_point

_SPLITS = {
    "random": ("similar machines", "machines similar to those in the training data"),
    "unseen_cpu": ("unseen CPUs", "machines whose CPU model has no result in the training data"),
    "unseen_shape": ("unseen problem shapes", "problem shapes without a result in the training data"),
    "more_threads": ("more threads", "the largest number of threads, trained on smaller numbers"),
    "forward_last": ("latest releases", "the latest fifth of the results, trained on all earlier ones"),
    "shuffled": ("shuffled rows", "rows drawn one by one, only for comparison with published values"),
    "published": ("published split", "the training and test rows of the dataset's authors"),
}
_PATTERNS = (
    (r"forward_(\d{4})", "releases from {0}", "machines published from {0} on, trained on earlier results"),
    (
        r"few_shot_1",
        "new machines, 1 result known",
        "machines published from 2023 on, with one measured result of each",
    ),
    (
        r"few_shot_(\d+)",
        "new machines, {0} results known",
        "machines published from 2023 on, with {0} measured results of each",
    ),
    (
        r"published_drawn_(\d+)",
        "published split, {0} results known",
        "the test tasks of the dataset's authors, with {0} random results of each task in training",
    ),
)
_PREDICTORS = {
    "catboost": "CatBoost",
    "ft_transformer": "FT-Transformer",
    "gru": "GRU",
    "help": "HELP",
    "lightgbm": "LightGBM",
    "lstm": "LSTM",
    "mac": "MAC",
    "mlp": "MLP",
    "mlp_plr": "MLP-PLR",
    "ncpp": "NCPP",
    "resnet": "ResNet",
    "svm": "SVM",
    "tabm": "TabM",
    "xgboost": "XGBoost",
}


def split_label(split: str) -> str:
    """Return a short name of a split in plain words; the split's own name where there is none."""
    reduced = learning_curve_point(split)
    if reduced is None:
        return _describe(split)[0] or split
    amount = f"{100 * reduced.share:g} % of the training rows" if reduced.share else f"last {reduced.years:g} years"
    return f"{split_label(reduced.base)}, {amount}"


def describe_split(split: str) -> str:
    """Return a phrase on the test rows of a split; "" for a split without a description."""
    return _describe(split)[1]


def predictor_label(predictor: str) -> str:
    """Return the name of a predictor as people write it."""
    return _PREDICTORS.get(predictor, predictor.replace("_", " "))


def _describe(split: str) -> tuple[str, str]:
    if split in _SPLITS:
        return _SPLITS[split]
    for pattern, label, description in _PATTERNS:
        if match := re.fullmatch(pattern, split):
            return label.format(*match.groups()), description.format(*match.groups())
    return "", ""
