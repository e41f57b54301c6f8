"""Generated parts of written pages: each comment `<!-- generated: NAME -->` becomes a table made from the project."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pandas as pd
from forecast_tables import entry_table, miss_table, peer_table, score_table
from gpu_tables import gpu_table
from interference_tables import interference_table, known_table, scenario_table
from leaderboard import headline_table, read_headline
from markdown_text import fenced, table
from performance_table import gpu_training_table, performance_table
from scaling_tables import scaling_table

import perfcast
from perfcast import splits
from perfcast.cli.main import main
from perfcast.config.conf_files import known, read_conf, read_yaml
from perfcast.domain import domains
from perfcast.domains.llm.deployment_fields import DEPLOYMENT_FIELDS
from perfcast.domains.servers.server_fields import SERVER_FIELDS
from perfcast.evaluation.leakage import list_checks
from perfcast.inference.machine_fields import Field
from perfcast.report.plots.drawing import read_catalog
from perfcast.schema.metric_names import HIGH_IS_GOOD, METRICS, PERCENT
from perfcast.serving.request_limits import DEFAULT_LIMITS

EXAMPLE = ("predict", "--processor", "AMD EPYC 9654", "--chips", "2", "--when", "2023-06")
"""A command of the site whose answer is shown where the project has a champion."""
BRIDGED = ("predict", "--processor", "EPYC 9755", "--chips", "2")
"""A command whose answer by the champions of the experiment cpu2026 is shown where the project has these."""

_COMMENT = re.compile(r"<!-- generated: (\w+) -->")

_METRIC_TEXTS = {
    "mape": "MAPE, mean absolute percentage error",
    "medape": "MedAPE, median absolute percentage error: half of the predictions are closer",
    "p90": "nine of ten predictions are closer",
    "r2": "explained share of the variance of the logarithm of the score",
    "r2_raw": "explained share of the variance of the score",
    "spearman": "rank correlation of measured and predicted scores",
    "pairs": "share of pairs of machines that are put in the measured order",
    "coverage": "share of measured scores inside their prediction interval",
    "width": "median width of the prediction intervals, in % of the prediction",
    "interval_score": "width of the interval, plus 2 / (1 - level) times the distance of a score outside, in %",
}


def fill(markdown: str, conf: Path) -> str:
    """Return the page with its generated parts. Raises: KeyError for an unknown name."""
    return _COMMENT.sub(lambda match: PARTS[match[1]](conf), markdown)


def sources(conf: Path) -> str:
    """Return a table of all sources, and the full terms and citation of each."""
    named = {name: read_conf(conf, "source", name) for name in known(conf, "source")}
    listed = table(
        ["source", "contents", "license"],
        [[f"[`{name}`](#{name})", source["title"], source["license"]] for name, source in named.items()],
    )
    described = [
        "\n".join(
            [
                f"### {name}\n\n{source['title']}.\n",
                *(
                    f"- {key.capitalize()}: {source[key]}"
                    for key in ("terms", "citation", "retrieved")
                    if key in source
                ),
                f"- Homepage: <{source['homepage']}>" if "homepage" in source else "",
            ]
        )
        for name, source in named.items()
    ]
    return "\n\n".join([listed, "## Terms and citations", *described])


def split_table(conf: Path) -> str:
    """Return a table of the splits; those with less training data are left out."""
    del conf
    names = [name for name in splits.names() if splits.learning_curve_point(name) is None]
    rows = [[f"`{name}`", splits.split_label(name), splits.describe_split(name)] for name in names]
    return table(["split", "short name", "test rows"], rows)


def metric_table(conf: Path) -> str:
    """Return a table of the metrics of the protocol."""
    del conf
    good = dict.fromkeys(HIGH_IS_GOOD, "higher") | {"coverage": "near the level, 90 % by default"}
    rows = [
        [f"`{name}`", _METRIC_TEXTS[name], "%" if name in PERCENT else "", good.get(name, "lower")] for name in METRICS
    ]
    return table(["metric", "meaning", "unit", "better"], rows)


def leakage_checks(conf: Path) -> str:
    """Return a table of the leakage checks."""
    del conf
    checks = {check.name: check for domain in domains() for check in list_checks(domain)}
    rows = [[f"`{name}`", checks[name].requirement] for name in sorted(checks)]
    return table(["check", "requirement"], rows)


def plots(conf: Path) -> str:
    """Return a table of the plots of the report."""
    del conf
    return table(["plot", "title"], [[f"`{entry.name}`", entry.title] for entry in read_catalog().values()])


def field_table(fields: Sequence[Field], conf: Path) -> str:
    """Return a table of the short fields that describe a machine."""
    del conf
    rows = []
    for field in fields:
        column = field.columns if len(field.columns) == 1 else ()
        others = ", ".join(f"`{name}`" for name in dict.fromkeys((*field.aliases, *column)) if name != field.name)
        rows.append([f"`{field.name}`", field.meaning, f"`{field.example}`", others])
    return table(["field", "meaning", "example", "also"], rows)


def request_limits(conf: Path) -> str:
    """Return a table of the limits of a server."""
    del conf
    meanings = {
        "body": "bytes of a request",
        "machines": "machines of a request (`--max-batch`)",
        "seconds": "seconds until a body has arrived, and until an answer is there",
        "waiting": "requests of a worker at once",
        "neighbors": "nearest machines of a prediction",
        "suggestions": "suggested CPU names",
        "explained": "machines up to which predictions are explained by default",
    }
    names = [field.name for field in fields(DEFAULT_LIMITS)]
    return table(["limit", "value"], [[meanings.get(name, name), getattr(DEFAULT_LIMITS, name)] for name in names])


def public_functions(conf: Path) -> str:
    """Return directives of mkdocstrings for the public functions and classes of the package."""
    del conf
    public = [getattr(perfcast, name) for name in dir(perfcast) if not name.startswith("_")]
    paths = [
        f"{member.__module__}.{member.__qualname__}"
        for member in public
        if str(getattr(member, "__module__", "")).startswith("perfcast.")
    ]
    return "\n\n".join(f"::: {path}" for path in paths)


def example_prediction(arguments: Sequence[str], folder: str, conf: Path) -> str:
    """Return the answer to an example by the champions of a folder; a sentence where there is none of this version."""
    output = io.StringIO()
    with patch.dict(os.environ, {"COLUMNS": "100"}), redirect_stdout(output), redirect_stderr(io.StringIO()):
        code = main([*arguments, "--results", str(conf.parent / folder)])
    if code != 0:
        made = "make run" if folder == "results" else f"make experiment NAME={Path(folder).name}"
        return f"`{made}` trains the champion that answers."
    return fenced(output.getvalue().partition("\ngiven")[0])


_CHOICES = {
    "announcements": "a core without an announced gain",
    "excluded rows": "rows whose score cannot be that of the machine",
    "revealed results": "known results of new processors",
}
_VARIANTS = {
    "known": "is known from the start to have none",
    "dated": "**is known to have none from its launch on**",
    "unknown": "is never known to have none",
    "left out": "**left out**",
    "counted": "counted",
    "at random": "drawn at random",
    "the first": "**the first ones**",
    "at random, test rows of both": "drawn at random, on the test rows of both",
    "the first, test rows of both": "the first ones, on the test rows of both",
}


def sensitivity(conf: Path) -> str:
    """Return tables of the error by choice of the protocol, from results/leaderboard/sensitivity."""
    parts = []
    for path in sorted((conf.parent / "results" / "leaderboard" / "sensitivity").glob("*.csv")):
        measured = pd.read_csv(path)
        named = [variant for variant in _VARIANTS if variant in set(measured["variant"])]
        rows = []
        for (choice, split), part in measured.groupby(["choice", "split"], sort=True):
            errors = part.pivot(index="variant", columns="predictor", values="mape").reindex(named).dropna(how="all")
            counts = part.groupby("variant")["rows"].max()
            for variant, line in errors.iterrows():
                cells = [f"{line[name]:.2f}" for name in sorted(set(measured["predictor"]))]
                rows.append([_CHOICES[choice], _VARIANTS[variant], f"`{split}`", f"{counts[variant]:,}", *cells])
        heads = [f"`{name}`" for name in sorted(set(measured["predictor"]))]
        parts.append(table(["choice", "variant", "split", "test rows", *heads], rows))
    return "\n".join(parts) or "No results yet."


def headline(conf: Path) -> str:
    """Return the table of README.md: the mean errors of some predictors on some splits."""
    spec = read_yaml(conf / "leaderboard.yaml")["headline"]
    return headline_table(read_headline(conf.parent / "results" / "leaderboard", spec), spec)


def study(name: str, conf: Path) -> str:
    """Return the table of a study, results/leaderboard/studies/<name>.csv."""
    frame = pd.read_csv(conf.parent / "results" / "leaderboard" / "studies" / f"{name}.csv", dtype=str)
    return table(list(frame), frame.to_numpy().tolist())


_LATER = {"forward_last": "later results", "forward_2026_05": "later results"}
"""Splits of two bridges that stand for each other."""


def bridges(conf: Path) -> str:
    """Return the errors of every predictor on two bridges, split by split, and how their rankings agree."""
    frame = pd.read_csv(conf.parent / "results" / "leaderboard" / "studies" / "bridges.csv")
    frame["split"] = [_LATER.get(name) or splits.split_label(name) for name in frame["split"]]
    frame["MAPE"] = [float(text.split(" / ")[0]) for text in frame["mean"]]
    newest = frame["bridge"].iloc[-1]
    rows, ranks = [], []
    for split, part in frame.groupby("split", sort=False):
        by_bridge = dict(iter(part.groupby("bridge", sort=False)))
        if len(by_bridge) == 1:
            continue
        for name, lines in by_bridge.items():
            by_predictor = lines.set_index("predictor")
            covered = [f"{by_predictor['coverage (%)'][each]:.0f}" for each in ("ratio_model", "ratio_mean")]
            rows.append([split, name, lines["rows"].iloc[0], *by_predictor["mean"].sort_index(), " / ".join(covered)])
        errors = part.pivot(index="predictor", columns="bridge", values="MAPE")
        best = errors.drop(columns=newest).iloc[:, 0].idxmin()
        place = errors[newest].rank(method="min")[best]
        ranks.append([split, f"{errors.corr('spearman').iloc[0, 1]:.2f}", f"`{best}`", f"{place:.0f}"])
    heads = ["split", "bridge", "rows", *(f"`{name}`" for name in sorted(set(frame["predictor"]))), "coverage (%)"]
    agreement = table(["split", "rank correlation", "best on the older bridge", "its place on the newer"], ranks)
    return table(heads, rows) + "\n\n" + agreement


PARTS: dict[str, Callable[[Path], str]] = {
    "headline": headline,
    "sources": sources,
    "splits": split_table,
    "metrics": metric_table,
    "leakage_checks": leakage_checks,
    "plots": plots,
    "machine_fields": partial(field_table, SERVER_FIELDS),
    "deployment_fields": partial(field_table, DEPLOYMENT_FIELDS),
    "request_limits": request_limits,
    "example_prediction": partial(example_prediction, EXAMPLE, "results"),
    "bridged_prediction": partial(example_prediction, BRIDGED, "results/cpu2026"),
    "public_functions": public_functions,
    "sensitivity": sensitivity,
    "interval_calibration": partial(study, "interval_calibration"),
    "bridge_errors": partial(study, "bridge_errors"),
    "bridges": bridges,
    "bridge_choices": partial(study, "bridge_choices"),
    "bridge_terms": partial(study, "bridge_terms"),
    "bridge_draws": partial(study, "bridge_draws"),
    "bridge_measured": partial(study, "bridge_measured"),
    "bridge_term_differences": partial(study, "bridge_term_differences"),
    "bridge_few_shot": partial(study, "bridge_few_shot"),
    "bridge_predictors": partial(study, "bridge_predictors"),
    "bridge_machines": partial(study, "bridge_machines"),
    "structure_shares": partial(study, "structure_shares"),
    "learners": partial(study, "learners"),
    "fleet_pairs": partial(study, "fleet_pairs"),
    "fleet_memory": partial(study, "fleet_memory"),
    "power_errors": partial(study, "power_errors"),
    "accelerators": partial(study, "accelerators"),
    "accelerators_energy": partial(study, "accelerators_energy"),
    "accelerators_intervals": partial(study, "accelerators_intervals"),
    "accelerators_energy_intervals": partial(study, "accelerators_energy_intervals"),
    "levels": partial(study, "levels"),
    "kind_quantiles": partial(study, "kind_quantiles"),
    "network_learners": partial(study, "network_learners"),
    "attention_structure": partial(study, "attention_structure"),
    "program_structures": partial(study, "program_structures"),
    "ledger_entries": entry_table,
    "ledger_scores": score_table,
    "ledger_misses": miss_table,
    "peers": peer_table,
    "performance": performance_table,
    "gpu_training": gpu_training_table,
    "scaling_errors": scaling_table,
    "gpu_errors": gpu_table,
    "interference_errors": interference_table,
    "interference_known_errors": known_table,
    "interference_scenarios": scenario_table,
}
