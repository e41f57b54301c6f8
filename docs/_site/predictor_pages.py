"""Pages of predictors, made from docstrings, conf files, predictors.yaml and results."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pandas as pd
import result_pages
from markdown_text import fenced, page, table

from perfcast.config.conf_files import conf_files
from perfcast.config.predictor_conf import PredictorConf, read_predictor
from perfcast.evaluation import AVERAGE
from perfcast.plugins import load_class
from perfcast.predictors.factory import Composite, predictor_class
from perfcast.predictors.predictor import Predictor
from perfcast.predictors.residual_stack import EqualWeights
from perfcast.splits import split_label
from perfcast.utils.safe_yaml import read_yaml_text

_SOURCE = re.compile(r"^Source: .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
TEXTS = Path(__file__).with_name("predictors.yaml")
NO_RESULTS = "No results yet: `results/leaderboard` has none of this predictor."


def read_texts() -> dict[str, dict[str, dict[str, str]]]:
    """Return the written texts: family -> predictor -> idea, equation, use, source."""
    content: dict[str, Any] = read_yaml_text(TEXTS.read_text(encoding="utf-8"), TEXTS.name)
    return content


def generate(conf: Path, results: Path) -> dict[str, str]:
    """Return the pages by address: an index, and one page per predictor, in the order of the families."""
    board = result_pages.read_all(results)
    families = read_texts()
    pages = {"predictors/index.md": _index(families)}
    for family, predictors in families.items():
        for name, texts in predictors.items():
            pages[f"predictors/{name}.md"] = _describe(name, texts, conf, board, family)
    return pages


def _index(families: dict[str, dict[str, dict[str, str]]]) -> str:
    blocks = [
        "A predictor learns from the feature columns of a dataset and predicts its scores. All of them follow "
        "scikit-learn, pass one [contract](../reference/predictors.md) and run on the same splits.",
        "Not sure which? Take `hybrid_trees` for servers, `roofline_trees` for kernels of known cost, and "
        "`ridge_transfer` for a new device with few measurements. Always compare with `nearest`.",
    ]
    for family, predictors in families.items():
        rows = [[f"[`{name}`]({name}.md)", texts["idea"]] for name, texts in predictors.items()]
        blocks += [f"## {family}", table(["predictor", "idea"], rows)]
    blocks += [
        "## Use one",
        "Name predictors in `predictors` of params.yaml, or on the command line:",
        fenced('snakemake --config "predictors=[nearest,hybrid_trees,tabm]"', "bash"),
        "In Python, `perfcast.estimator` gives any of them as a scikit-learn estimator.",
    ]
    return page("Predictors", *blocks)


def _describe(name: str, texts: dict[str, str], conf: Path, board: pd.DataFrame, family: str) -> str:
    settings = read_predictor(conf, name)
    equation = f'<div class="equation" markdown>\n\n{fenced(texts["equation"])}\n\n</div>'
    blocks = [
        f"**Idea.** {texts['idea']}",
        f"**Use it when** {texts['use']}",
        "## Equation",
        equation,
        "## How it works",
        *docstrings(settings),
        "## Source",
        texts["source"],
        "## Configuration",
        f"`conf/predictor/{name}.yaml`; the class is `{settings.target}`.",
        fenced(conf_files(conf, "predictor")[name].read_text(encoding="utf-8"), "yaml"),
        "## Results",
        results_of(name, board),
    ]
    return page(name, *blocks, section=family)


def docstrings(settings: PredictorConf) -> list[str]:
    """Return the docstrings of a class, of its bases and of its weights, without those of every predictor.

    Sources are left out: they are on the page.
    """
    classes: list[type] = [predictor_class(settings.target)]
    if weights := settings.params.get("weights_by"):
        classes.append(load_class(weights["_target_"], "weights_by"))
    bases = [base for each in classes for base in each.__mro__ if issubclass(base, (Predictor, EqualWeights))]
    described = [base for base in bases if base not in (Predictor, Composite) and base.__doc__]
    return [_SOURCE.sub("", inspect.cleandoc(str(base.__doc__))) for base in described]


def results_of(name: str, board: pd.DataFrame) -> str:
    """Return the mean error of a predictor on every dataset and split."""
    rows = board[(board["predictor"] == name) & (board["metric"] == "mape")]
    lines = []
    for (dataset, split, preset), group in rows.groupby(["dataset", "split", "preset"], sort=False):
        average = group[group["task"] == AVERAGE]
        intervals = "" if average.empty else f"{average['low'].iloc[0]:.3g} to {average['high'].iloc[0]:.3g}"
        value = float((group if average.empty else average)["value"].mean())
        dataset_link = f"[`{dataset}`](../results/{dataset}.md)"
        lines.append([dataset_link, split_label(str(split)), preset, f"{value:.3g}", intervals])
    headings = ["dataset", "split", "preset", "MAPE in %", "95 % interval"]
    return table(headings, lines) if lines else NO_RESULTS
