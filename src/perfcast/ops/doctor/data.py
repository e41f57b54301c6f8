"""The sources of the data: on this machine, or to be fetched."""

from __future__ import annotations

from perfcast.config import read_conf, read_dataset
from perfcast.ops.doctor.base import BROKEN, CARE, FINE, Finding, Place
from perfcast.sources import locate, parse_source

ORDER = 30


def look(place: Place) -> list[Finding]:
    """Look for every source that params.yaml lists; what the network would give is not tried."""
    if place.params is None:
        return []
    conf, params = place.project / "conf", place.params
    required = {one for name in params.datasets for one in read_dataset(conf, name).sources.required}
    specs = [parse_source(name, read_conf(conf, "source", name)) for name in params.sources]
    found = {
        spec.name: locate(spec, cache=place.cache, mirrors=place.mirrors, embedded=place.embedded) for spec in specs
    }
    here = [name for name, location in found.items() if location.found]
    absent = [name for name in found if name not in here]
    findings = [Finding("sources", FINE, f"on this machine: {', '.join(here)}")] if here else []
    if absent and params.network:
        findings.append(Finding("sources", CARE, f"to be downloaded: {', '.join(absent)}", "see perfcast sources"))
    elif absent:
        stops = params.strict and required & set(absent)
        told = "the run stops" if stops else "the data sets that need them are left out"
        remedy = "set network to true, or name a folder that has them in mirrors or PERFCAST_MIRROR"
        findings.append(Finding("sources", BROKEN if stops else CARE, f"not here: {', '.join(absent)}; {told}", remedy))
    return findings
