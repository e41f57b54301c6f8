"""Columns of the tables of MLPerf inference results: throughput, and that per watt of measured power."""

from __future__ import annotations

from perfcast.domains.accelerators.catalog import FACTS, MODEL_FACTS
from perfcast.schema.declare import category, number
from perfcast.schema.table import Column, Kind, Role, Tag

_ACCELERATOR = (Tag.ENTITY, Tag.IDENTITY, Tag.CONFIG, Tag.PAIR)
_PROVENANCE = ("platform", "availability", "formats", "source_file")
COLUMNS = (
    category("result_id", Role.KEY, "result", "round and published id", Tag.ROW),
    category("task", Role.KEY, "benchmark", "model and scenario", Tag.TASK, Tag.CONFIG, Tag.PAIR),
    category("model", Role.FEATURE, "benchmark", "benchmarked model", Tag.LEVEL),
    category("scenario", Role.FEATURE, "benchmark", "Offline, or Server and Interactive under limits of the latency"),
    category("kind", Role.FEATURE, "benchmark", "kind of model"),
    number("accuracy", "benchmark", "share of the full accuracy that is kept", unit="%", low=90, high=100),
    *(number(name, "benchmark", meaning, unit=unit, low=0) for name, (unit, meaning) in MODEL_FACTS.items()),
    category("accelerator", Role.KEY, "accelerator", "accelerator, or processor", *_ACCELERATOR),
    category("generation", Role.FEATURE, "accelerator", "generation of the accelerator", Tag.SLICE),
    category("silicon", Role.KEY, "accelerator", "generation of many results, whose design others do not share"),
    category("vendor", Role.FEATURE, "accelerator", "maker of the accelerator", Tag.SLICE),
    *(number(name, "accelerator", meaning, unit=unit, low=0) for name, (unit, meaning) in FACTS.items()),
    number("is_processor", "accelerator", "1 where a processor computes alone", low=0, high=1),
    category("variant", Role.FEATURE, "system", "power mode: base, maxq, ee, cts", Tag.CONFIG, Tag.IDENTITY),
    number("triton", "system", "1 where the system names the Triton server", low=0, high=1),
    number("count", "system", "accelerators, or sockets of processors, of all nodes", tags=(Tag.PARALLEL, Tag.CONFIG)),
    number("nodes", "system", "nodes", high=1000),
    category("cpu", Role.KEY, "host", "processor of the host"),
    number("sockets", "host", "processors of a node", high=64),
    number("cores", "host", "cores of a processor", high=1000),
    category("software", Role.KEY, "software", "stated software"),
    category("engine", Role.FEATURE, "software", "inference software, its name"),
    number("engine_version", "software", "version of that software", low=0),
    number("year", "software", "year of the round, in which the software was made", low=2000, unit="year"),
    category("submitter", Role.KEY, "result", "who submitted the result"),
    category("system", Role.KEY, "result", "submitter and name of the system", Tag.CONFIG),
    category("block", Role.KEY, "result", "round, submitter and system", Tag.BLOCK),
    category("round", Role.KEY, "result", "round of MLPerf inference", Tag.CONFIG, Tag.SLICE, Tag.ROUND),
    Column("published", Kind.DATE, Role.KEY, "result", meaning="day of publication", tags=(Tag.TIME,)),
    Column(
        "throughput", Kind.NUMERICAL, Role.TARGET, "result", "per s", "rate per accelerator, a derived metric", 1e-6
    ),
    Column("total", Kind.NUMERICAL, Role.PROVENANCE, "result", "per s", "published result of the whole system", 0),
    Column("watts", Kind.NUMERICAL, Role.PROVENANCE, "result", "W", "measured power of the whole system", 0),
    Column("not_judged", Kind.NUMERICAL, Role.PROVENANCE, "result", "", "1: see the dataset", 0, 1, (Tag.EXCLUDED,)),
    *(category(name, Role.PROVENANCE, "result", name.replace("_", " ")) for name in _PROVENANCE),
    Column("source_line", Kind.NUMERICAL, Role.PROVENANCE, "result", meaning="entry of that file", low=1),
)
_MEANING = "work per joule of measured system power, a derived metric"
_PER_JOULE = Column("per_joule", Kind.NUMERICAL, Role.TARGET, "result", "per J", _MEANING, 1e-9)
POWER_COLUMNS = tuple(_PER_JOULE if column.role is Role.TARGET else column for column in COLUMNS)
