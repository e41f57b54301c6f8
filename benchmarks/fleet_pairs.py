"""Proof of `perfcast size`: fleets sized with the results known before a cut, against counts from later results.

    python benchmarks/fleet_pairs.py results --out results/leaderboard/studies/fleet_pairs.csv

For every cut a champion is fitted to the results before it. A fleet has up to three machines whose CPU model was
launched two and more years before the cut; a target has no result before the cut. The true count is that of the
medians of the results from the cut on, of fleet and target alike: both are measured again. Facts of CPU models are
those of the day of launch. Fleets, counts, mixes and targets are drawn by seed 0 before anything is predicted.

The table has by cut the share of true counts inside the 90 % range, and the mean error of the ratio of replaced
machines: of the estimate, of cores x clock, of that x announced gains per clock, and of the published ratio of the
nearest machine that was measured before the cut. In brackets: 95 % interval of a bootstrap over the
CPU models of targets.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.config.conf_files import read_yaml
from perfcast.config.dataset_conf import read_dataset
from perfcast.config.predictor_conf import read_predictor
from perfcast.decisions.fleet import size_fleet
from perfcast.decisions.sizing_request import read_sizing
from perfcast.domains.servers.processors.announcements import announced_index, find_core
from perfcast.experiment.champion import fit_all_rows
from perfcast.experiment.described import DescribedData, fit_described_uncertainty
from perfcast.experiment.selection import predictor_factories
from perfcast.inference.champion import Champion
from perfcast.inference.machine_files import make_entry
from perfcast.inference.measured_index import NeighborIndex, group_distinct
from perfcast.inference.predict import PredictOptions, predict_batch
from perfcast.inference.reference_data import ReferenceData
from perfcast.schema.table import Table, Tag
from perfcast.utils.errors import UserError

DATASET, CUTS, SEED = "spec_cpu2017", ("2022-01", "2023-01", "2024-01"), 0
TASKS = ("CINT2017rate", "CFP2017rate")
MIXES = ("int_rate", "fp_rate", "int_rate:0.5,fp_rate:0.5")
FLEETS, TARGETS = 40, 5
BACKTESTS = 2
"""Those of a champion, see `max_backtests` of params.yaml."""
AGE = pd.DateOffset(years=2)
BASELINES = ("cores x clock", "cores x clock x announced gains", "nearest measured machine")
KEYS = ["cpu_model", "chips"]


def fit_champion(results: Path, project: Path, predictor: str, preset: str, cut: pd.Timestamp) -> Champion:
    """Return the champion of the results before a cut."""
    conf = project / "conf"
    declared = read_dataset(conf, DATASET)
    files = (results / kind / f"{DATASET}.parquet" for kind in ("features", "standard"))
    data = DescribedData.read(declared, *files, results / "raw")
    before = (data.table.frame[data.table.select(tag=Tag.TIME)[0]] < cut).to_numpy()
    table, standard = (_take(each, before) for each in (data.table, data.standard))
    data = DescribedData(standard, table, data.raw, data.features)
    factories = predictor_factories(read_predictor(conf, predictor), preset, read_yaml(conf / "trainer/default.yaml"))
    fitted, choice = fit_all_rows(table, factories, SEED, declared.label_outlier)
    make = factories[choice.candidate]
    calibrated = fit_described_uncertainty(data, make, SEED, declared.label_outlier, BACKTESTS)
    reference = ReferenceData.gather(standard, data.raw, data.features)
    row = table.column_of(Tag.ROW)
    ordered = table.frame.set_index(row).loc[reference.measured.frame[row]].reset_index()
    arrays = group_distinct(calibrated.in_domain.encode(ordered), calibrated)
    index = NeighborIndex(reference.measured, arrays, calibrated)
    return Champion(DATASET, predictor, preset, data.features, fitted, reference, calibrated, index)


def _take(table: Table, rows: np.ndarray) -> Table:
    return Table(table.dataset, table.frame[rows].reset_index(drop=True), table.columns, table.facts)


def read_scores(results: Path) -> pd.DataFrame:
    """Return the results of whole machines in the rate suites, with their month."""
    frame = pd.read_parquet(results / "features" / f"{DATASET}.parquet")
    rows = frame["suite"].astype(str).isin(TASKS) & (frame["q_far_below_peers"] != True)  # noqa: E712  (or missing)
    rows &= frame["cores_enabled_total"] == frame["chips"] * frame["cores_per_chip_of_cpu_model"]
    names = ["result_id", "suite", "base_score", "test_month", "launch_quarter", "cpu_vendor", "family", "base_mhz"]
    frame = frame.loc[rows, [*names, "cores_enabled_total", *KEYS]]
    return frame.astype(dict.fromkeys(("suite", "cpu_model", "family", "result_id"), str))


def summarize(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the median score of every machine in both suites, of those with both, with its facts."""
    medians = scores.groupby([*KEYS, "suite"])["base_score"].median().unstack().dropna()
    return medians.join(scores.groupby(KEYS)[["launch_quarter", "family", "base_mhz", "cores_enabled_total"]].first())


def draw_cases(scores: pd.DataFrame, cut: pd.Timestamp, generator: np.random.Generator) -> list[dict[str, Any]]:
    """Return fleets with their targets, mixes and counts."""
    later, before = scores[scores["test_month"] >= cut], scores[scores["test_month"] < cut]
    measured = summarize(later)
    known = set(before[KEYS].itertuples(index=False, name=None))
    old = [key for key, row in measured.iterrows() if row["launch_quarter"] <= cut - AGE and key in known]
    new = [key for key in measured.index if key not in known]
    cases = []
    for _ in range(FLEETS):
        members = generator.choice(len(old), min(int(generator.integers(1, 4)), len(old)), replace=False)
        counts = generator.integers(20, 400, len(members))
        targets = generator.choice(len(new), TARGETS, replace=False)
        fleet = [(old[member], int(count)) for member, count in zip(members, counts, strict=True)]
        cases.append({"fleet": fleet, "targets": [new[each] for each in targets], "mix": str(generator.choice(MIXES))})
    return cases


def read_mix(mix: str) -> dict[str, float]:
    """Return the shares of the suites."""
    names = {"int_rate": TASKS[0], "fp_rate": TASKS[1]}
    parts = (piece.partition(":") for piece in mix.split(","))
    return {names[name]: float(share or 1) for name, _, share in parts}


def entry(key: tuple[str, float], line: int, **fields: object):
    """Return the entry of a machine."""
    return (
        make_entry(line, f"machine {line}", {"processor": key[0], "chips": key[1]}).carry({})._replace(carried=fields)
    )


def evaluate(champion: Champion, scores: pd.DataFrame, cut: pd.Timestamp, cases: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one line per fleet and target."""
    later, before = (summarize(scores[rows]) for rows in (scores["test_month"] >= cut, scores["test_month"] < cut))
    index, lines = announced_index(cut), list[dict[str, Any]]()
    measured_later, measured_before = (each[list(TASKS)].to_dict("index") for each in (later, before))
    for number, case in enumerate(cases):
        mix = read_mix(case["mix"])
        fleet = [entry(key, line, count=count) for line, (key, count) in enumerate(case["fleet"], start=1)]
        request = read_sizing(champion, case["mix"])
        nearest = find_nearest(champion, case["targets"], mix)
        replaced = sum(count for _, count in case["fleet"])
        for key in case["targets"]:
            # errors grow with the months after the results: the launch, known with the facts, is the day of the offer
            launch = later.at[key, "launch_quarter"] + pd.offsets.QuarterBegin(startingMonth=1)
            options = PredictOptions(when=cut if pd.isna(launch) else max(cut, launch))
            try:
                (target,) = size_fleet(fleet, [entry(key, 1)], champion, request, options).targets
            except UserError as error:  # an interval too wide to tell anything is refused
                lines.append({"cut": f"{cut:%Y-%m}", "case": number, "target": key[0], "refused": str(error)[:80]})
                continue

            clocks = (later["base_mhz"] * later["cores_enabled_total"]).to_dict()
            gains = {each: np.exp(index.get(find_core(later.at[each, "family"]) or "", np.nan)) for each in later.index}
            guessed = {each: dict.fromkeys(TASKS, clocks[each]) for each in clocks}
            announced = {each: dict.fromkeys(TASKS, clocks[each] * gains[each]) for each in clocks}
            true = replaced / find_need(case, mix, measured_later, measured_later[key])
            needed = int(np.ceil(replaced / true))
            guesses = {
                BASELINES[0]: replaced / find_need(case, mix, guessed, guessed[key]),
                BASELINES[1]: replaced / find_need(case, mix, announced, announced[key]),
                BASELINES[2]: replaced / find_need(case, mix, measured_before, nearest[key]),
            }
            lines.append(
                {
                    **{"cut": f"{cut:%Y-%m}", "case": number, "target": key[0], "chips": key[1], "mix": case["mix"]},
                    **{
                        "refused": "",
                        "replaced": replaced,
                        "true_count": needed,
                        "low": target.low,
                        "high": target.high,
                    },
                    **{"needed": target.needed, "inside": target.low <= needed <= target.high},
                    **{"enough": target.needed >= needed, "measured": target.measured, "true": true},
                    **{"estimate": target.ratio, **guesses},
                }
            )
    return pd.DataFrame(lines)


def find_need(case: dict[str, Any], mix: dict[str, float], old: Any, new: dict[str, float]) -> float:
    """Return the machines that are needed by scores of the fleet by machine and suite, and those of the target."""
    return sum(
        count * share * old.get(member, {}).get(task, np.nan) / new.get(task, np.nan)
        for member, count in case["fleet"]
        for task, share in mix.items()
    )


def find_nearest(champion: Champion, targets: list[Any], mix: dict[str, float]) -> dict[Any, dict[str, float]]:
    """Return by target and suite the score of the nearest measured machine."""
    entries = [entry(key, line) for line, key in enumerate(targets)]
    answer = predict_batch(entries, champion, PredictOptions(neighbors=1, explain=False))
    names = champion.rules.task_aliases
    return {
        targets[each.line]: {names.get(made.task, made.task): float(made.neighbors[0].score) for made in each.estimates}
        for each in answer
    }


def tabulate(lines: pd.DataFrame) -> pd.DataFrame:
    """Return a row per cut and one of all, with intervals."""
    rows = []
    for cut, part in [*lines.groupby("cut", sort=True), ("all", lines)]:
        refused, part = int((part["refused"] != "").sum()), part[part["refused"] == ""]  # noqa: PLW2901
        values = measure(part)
        cpus = part["target"].unique()
        groups = dict(iter(part.groupby("target")))
        generator = np.random.default_rng(SEED)
        drawn = [measure(pd.concat([groups[cpu] for cpu in generator.choice(cpus, len(cpus))])) for _ in range(1000)]
        ends = pd.DataFrame(drawn).quantile([0.025, 0.975])
        row: dict[str, Any] = {"known before": cut, "pairs": len(part), "refused": refused, "CPU models": len(cpus)}
        for name, value in values.items():
            row[name] = f"{value:.1f} ({ends.at[0.025, name]:.1f} to {ends.at[0.975, name]:.1f})"
        rows.append(row)
    return pd.DataFrame(rows)


def measure(part: pd.DataFrame) -> dict[str, float]:
    """Return the metrics of some lines, in percent."""

    def error(name: str) -> float:
        return float(100 * np.abs(part[name] / part["true"] - 1).mean())  # without those that it cannot tell

    metrics = {"true count in the 90 % range (%)": 100 * float(part["inside"].astype(float).mean())}
    metrics["needed number suffices (%)"] = 100 * float(part["enough"].astype(float).mean())
    metrics["width of the range (%)"] = 100 * float(np.mean(part["high"] / part["low"] - 1))
    return metrics | {f"error of the ratio, {name} (%)": error(name) for name in ("estimate", *BASELINES)}


def main() -> None:
    """Write the table, and the lines beside it with --lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lines", type=Path)
    parser.add_argument("--project", type=Path, default=Path())
    parser.add_argument("--predictor", default="hybrid_trees")
    parser.add_argument("--preset", default="quick")
    options = parser.parse_args()
    scores, generator, parts = read_scores(options.results), np.random.default_rng(SEED), []
    cases = {cut: draw_cases(scores, pd.Timestamp(cut), generator) for cut in CUTS}
    for cut in CUTS:
        champion = fit_champion(options.results, options.project, options.predictor, options.preset, pd.Timestamp(cut))
        parts.append(evaluate(champion, scores, pd.Timestamp(cut), cases[cut]))
        print(tabulate(parts[-1]).iloc[-1].to_string(), flush=True)
    lines = pd.concat(parts, ignore_index=True)
    if options.lines:
        lines.to_csv(options.lines, index=False)
    tabulate(lines).to_csv(options.out, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
