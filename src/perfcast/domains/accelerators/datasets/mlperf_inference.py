"""Results of MLPerf inference, closed division, datacenter: one row per system, model and scenario.

Properties of the published files, which the rules below repair; each rule has its count in quality.json:
- Power results of v2.0 to v3.1 are written twice. In v4.0 and v4.1 a run with power has a second entry in Watts.
- Throughput of gptj in v3.1 and v4.0 is in samples, later in tokens; Server of llama2-70b in v4.0 is in queries.
- Most runs of 3d-unet, dlrm, gptj and llama2-70b are entered under two accuracies: the stricter one is kept.
- Systems of processors in v3.0 say one node in their names and two in a field.
- A Server result is the offered load. Two are so far below Offline of the same system that they are not judged.

Throughput is per accelerator, of processors per socket: a metric derived from the results, not a result of MLPerf.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perfcast.data.measured_tables import describe_first_bad, parse_numbers, quarantine
from perfcast.data.standardized import Standardized
from perfcast.data.strict_csv import build_rejected_frame, require_rows
from perfcast.domains import read_columns
from perfcast.domains.accelerators.catalog import (
    FACTS,
    MODEL_FACTS,
    find_accelerator,
    read_accelerators,
    read_models,
)
from perfcast.domains.accelerators.datasets.mlperf_rounds import PUBLISHED, read_entries
from perfcast.domains.accelerators.sources.mlperf_inference import (
    ARCHIVE,
    SOURCE,
    read_archive,
)
from perfcast.features.feature_math import decimal_year, version_number
from perfcast.schema.table import build_table
from perfcast.sources.packed import Packed, read_records

TOKENS = {"gptj": 69.0, "llama2-70b": 294.45}
"""Mean output tokens of a sample, of the logs and the rules of the benchmark."""
SCENARIOS = ("Offline", "Server", "Interactive")
MIN_SERVER_SHARE = 0.15
"""Share of Offline below which a Server result of the same system is a label outlier."""
SAME_SHARE = 1e-3
"""Results of two accuracies that differ by less are of one run."""
_ONE_RUN = ("3d-unet", "dlrm", "gptj", "llama2-70b")
_UNITS: dict[str, dict[str, tuple[str, ...]]] = {
    "v3.1": {"gptj": SCENARIOS},
    "v4.0": {"gptj": SCENARIOS, "llama2-70b": ("Server",)},
}
"""Round -> model -> scenarios that count samples, or queries, where later rounds count tokens."""
MIN_UNIT_STEP = 10.0
"""Factor between rounds from which on a unit is wrong: the largest step of software is about 4."""
_RUN = ["round", "submitter", "system", "platform", "base", "scenario"]
_NUMBERS = ("result", "watts", "per_node", "nodes", "sockets", "cores")
_ENGINES = r"(tensorrt|pytorch|vllm|openvino|tgi|sdk|jax|tensorflow|deepsparse|onnxruntime)[^\d,]*(\d+\.\d+)?"
_SILICON = ("ampere", "ada", "hopper", "blackwell", "cdna3", "ai100")
"""Generations of accelerators with 75 results or more: those of processors have siblings of other names."""
_SAPPHIRE_RAPIDS = "Xeon Platinum 8480+"


def pack(folder: Path) -> Packed:
    """Return the fields of every entry that are read. Raises: UserError when the archive is broken."""
    return Packed(
        read_entries(read_archive(folder / ARCHIVE)),
        "the other fields of entries: logs, notes, links",
    )


def build(raw: Mapping[str, Path], options: Mapping[str, Any]) -> Standardized:
    """Standardize the results. Raises: UserError when the archive is broken or every entry is rejected."""
    records = _name_models(read_records(raw[SOURCE], SOURCE, pack))
    rows_in = len(records)
    repeated = records.duplicated(["round", "uid"]) & (records["round"] < "v5")
    single = _fold_power(records[~repeated])
    good, rejected = quarantine(SOURCE, ARCHIVE, single, _rules(single))
    require_rows(len(good), str(raw[SOURCE] / ARCHIVE), rejected)
    chosen = _keep_stricter(good)
    merged = {
        "written_twice": int(repeated.sum()),
        "power_entry": rows_in - int(repeated.sum()) - len(single),
        "same_run_at_lower_accuracy": len(good) - len(chosen),
    }
    frame = _describe(chosen)
    name = SOURCE
    if options.get("measured_power"):
        name = "mlperf_power"
        systems = frame["system"].where(frame["watts"].notna()).groupby(frame["task"]).transform("nunique")
        # a task that one system has is left without a level where that system is tested
        rules = {"no_power": frame["watts"].isna(), "task_of_one_system": systems < 2}
        details = {reason: frame["result_id"].where(hit) for reason, hit in rules.items()}
        frame, without = quarantine(SOURCE, ARCHIVE, frame, details)
        rejected = [*rejected, *without]
        frame = frame.assign(per_joule=frame["total"] / frame["watts"])
    return Standardized(
        table=build_table(name, frame, read_columns(__package__, "columns.csv", name)),
        rejected=build_rejected_frame(rejected),
        rows_in=rows_in,
        merged=merged,
        quality={
            "repaired": _count_repaired(good),
            "wrong_units": check_units(frame),
            **_summarize(frame),
        },
    )


def _name_models(records: pd.DataFrame) -> pd.DataFrame:
    """Add the numbers, the model of the catalog, its accuracy, the scenario, and the accelerator."""
    parsed = parse_numbers(records, _NUMBERS)
    lower = records["model"].str.lower()
    names = {name: model for model, text in read_models()["names"].items() for name in text.split("|")}
    stated = lower.str.extract(r"-(99(?:\.9)?)$", expand=False)
    is_interactive = lower.str.contains("interactive", regex=False)
    served = (records["scenario"] == "Server") & is_interactive
    # a processor computes where no accelerator is named
    text = records["accelerator_text"].where(~records["accelerator_text"].isin(["", "N/A"]), records["processor"])
    text = text.mask(text.str.contains("code named Sapphire Rapids", regex=False), _SAPPHIRE_RAPIDS)
    memory = records["system"].str.extract(r"GH200-(\d+GB)", expand=False)
    text = text.mask(text.str.endswith("GH200-GraceHopper-Superchip"), "GH200 " + memory.fillna("96GB"))
    one_node = records["system"].str.contains(r"^1-node", regex=True) & (parsed["nodes"] > 1)
    base = lower.str.replace(r"(?:-99(?:\.9)?)$", "", regex=True).map(names)
    factor = [
        TOKENS[model] if scenario in _UNITS.get(of_round, {}).get(str(model), ()) else 1.0
        for of_round, model, scenario in zip(records["round"], base, records["scenario"], strict=True)
    ]
    return parsed.assign(
        text=text,
        base=base,
        factor=factor,
        accuracy=stated.astype("float64"),
        scenario=records["scenario"].mask(served, "Interactive"),
        kept_offline=is_interactive & ~served,
        accelerator=text.map({name: find_accelerator(name) for name in text.unique()}),
        is_processor=records["accelerator_text"].isin(["", "N/A"]).astype(float),
        nodes=parsed["nodes"].mask(one_node, 1.0),
        one_node=one_node,
    )


def _fold_power(records: pd.DataFrame) -> pd.DataFrame:
    """Move the power of an entry without a result, in Watts, into the entry of its run; one without a run stays."""
    key = ["round", "submitter", "platform", "model", "scenario"]
    alone = (records["unit"] == "Watts") & records["result"].isna()
    power = records[alone].drop_duplicates(key).set_index(key)["watts"]
    results = pd.MultiIndex.from_frame(records[key])
    folded = alone & results.isin(results[~alone.to_numpy()])
    known = pd.Series(power.reindex(results).to_numpy(), records.index)
    return records.assign(watts=records["watts"].fillna(known))[~folded]


def _rules(records: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the reason and details of rejection, in order; missing where a row satisfies the rule."""
    text = records["text"]
    numbers = records[["result", "nodes"]].assign(
        per_node=records["per_node"].mask(records["is_processor"] == 1, records["sockets"])
    )
    return {
        "not_closed_datacenter": records["division"].where(records["division"].str.lower() != "closed"),
        "latency_scenario": records["scenario"].where(~records["scenario"].isin(SCENARIOS)),
        "offline_of_interactive": records["model"].where(records["kept_offline"]),
        "unknown_model": records["model"].where(records["base"].isna()),
        "unknown_round": records["round"].where(~records["round"].isin(PUBLISHED)),
        "slice_of_gpu": text.where(text.str.contains("MIG", regex=False)),
        "virtual_gpu": text.where(text.str.contains(r"^Virtualized|-\d+[CQ]$", regex=True)),
        "mixed_cluster": text.where(text.str.contains(r"\(x\d+\),", regex=True)),
        "inferred": records["uid"].where(records["inferred"] == "1"),
        "unknown_accelerator": text.where(records["accelerator"].isna()),
        "not_a_number": describe_first_bad(numbers.isna() | (numbers <= 0), records),
    }


def _keep_stricter(records: pd.DataFrame) -> pd.DataFrame:
    """Drop the result at 99 % that equals that of the same run at 99.9 %."""
    shared = records["base"].isin(_ONE_RUN)
    strict = records[shared & (records["accuracy"] == 99.9)].drop_duplicates(_RUN).set_index(_RUN)["result"]
    other = strict.reindex(pd.MultiIndex.from_frame(records[_RUN])).to_numpy(dtype=float)
    same = np.abs(records["result"] / other - 1) <= SAME_SHARE
    different: pd.DataFrame = records[~(shared & (records["accuracy"] == 99) & same)]
    return different


def _describe(chosen: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the columns of the table: target, names, facts."""
    models = read_models()
    facts = read_accelerators()
    base = chosen["base"]
    scenario = chosen["scenario"]
    by_accuracy = base.map(models["splits_accuracy"]).eq(1)
    name = base.where(~by_accuracy, base + "-" + chosen["accuracy"].map("{:g}".format))
    count = np.where(chosen["is_processor"] == 1, chosen["sockets"], chosen["per_node"]) * chosen["nodes"]
    total = chosen["result"] * chosen["factor"]
    system = chosen["submitter"] + " " + chosen["system"]
    engine = chosen["software"].str.lower().str.extract(_ENGINES)
    limits = models.filter(regex="_ms$").stack()
    limit_columns = MODEL_FACTS[2:]
    of_row = {}
    for column, field in zip(limit_columns, ("_ms", "_token_ms"), strict=True):
        key = pd.MultiIndex.from_arrays([base, scenario.str.lower() + field])
        of_row[column] = limits.reindex(key).to_numpy()
    words = (chosen["platform"] + " " + chosen["system"] + " " + chosen["text"]).str.lower()
    later = {"v5.0", "v5.1"}
    row_id = chosen["round"] + "/" + chosen["uid"]
    published = pd.to_datetime(chosen["round"].map(PUBLISHED))
    of_model = {column: base.map(models[column]) for column in MODEL_FACTS[:2]}
    of_name = {column: chosen["accelerator"].map(facts[column]) for column in (*FACTS, "generation", "vendor")}
    frame = chosen.assign(
        result_id=row_id.where(~chosen["round"].isin(later), row_id + "/" + chosen["model"] + "/" + scenario),
        task=name + "/" + scenario,
        model=base,
        kind=base.map(models["kind"]),
        **of_model,
        **of_row,
        **of_name,
        silicon=chosen["accelerator"].map(facts["generation"].where(facts["generation"].isin(_SILICON))),
        variant=np.select(
            [
                words.str.contains("cts"),
                words.str.contains("maxq"),
                words.str.contains(r"[ _-]ee\b|_ee_", regex=True),
            ],
            ["cts", "maxq", "ee"],
            "base",
        ),
        triton=chosen["system"].str.lower().str.contains("triton").astype(float),
        count=count,
        cpu=chosen["processor"],
        cores=chosen["cores"].where(chosen["cores"] > 0),
        engine=engine[0],
        engine_version=version_number(engine[1].astype(object).where(engine[1].notna(), None).to_numpy()),
        system=system,
        block=chosen["round"] + " " + system,
        published=published,
        year=decimal_year(published.to_numpy()),
        throughput=total / count,
        total=total,
        watts=chosen["watts"].where(~chosen["power_unit"].str.contains("joule")),
        source_file=chosen["file"],
        source_line=chosen["line"].astype(float),
    )
    known_from = pd.to_datetime(frame["accelerator"].map(facts["known_from"]))
    offline = (
        frame[scenario == "Offline"].groupby(["block", "platform", "model", "accuracy"], dropna=False)["total"].max()
    )
    of_system = offline.reindex(pd.MultiIndex.from_frame(frame[["block", "platform", "model", "accuracy"]])).to_numpy()
    low = (scenario == "Server") & (frame["total"] < MIN_SERVER_SHARE * of_system)
    return frame.assign(
        label_outlier=low,
        too_early=known_from > published,
        not_judged=(low | (known_from > published)).astype(float),
    )


def check_units(frame: pd.DataFrame) -> list[str]:
    """Return the pairs of task and accelerator whose median jumps between two rounds as another unit would.

    Software gains at most a factor of a few in a round; a sample of a language model has 69 tokens or more.
    """
    llm = frame[(frame["kind"] == "llm") & (frame["variant"] == "base")]
    medians = llm.groupby(["task", "accelerator", "round"], observed=True)["throughput"].median().unstack("round")
    steps = medians.ffill(axis=1).map(np.log).diff(axis=1).abs()
    jumps = steps[steps > np.log(MIN_UNIT_STEP)].stack().dropna()
    return [f"{task} on {name} in {of_round}: x {np.exp(step):.0f}" for (task, name, of_round), step in jumps.items()]


def _count_repaired(records: pd.DataFrame) -> dict[str, int]:
    """Return the counts of results in repaired units and of corrected nodes, by rule."""
    scaled = records["factor"] > 1
    is_llm = records["base"].map(read_models()["kind"]) == "llm"
    tokens = is_llm & ~scaled & records["unit"].isin(["Samples/s", "Queries/s"])
    in_tokens = {f"tokens_of_{name}": int((scaled & (records["base"] == name)).sum()) for name in TOKENS}
    return {
        **in_tokens,
        "relabeled_as_tokens": int(tokens.sum()),
        "one_node": int(records["one_node"].sum()),
    }


def _summarize(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the counts of rows that are not judged, and of rows by round, generation and software."""
    return {
        "not_judged": {name: int(frame[name].sum()) for name in ("label_outlier", "too_early")},
        "with_power": int(frame["watts"].notna().sum()),
        "by": {
            name: {str(value): int(count) for value, count in frame[name].value_counts().sort_index().items()}
            for name in ("round", "generation", "variant", "engine", "triton")
        },
    }
