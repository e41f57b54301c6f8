"""Check of the data sources: present on this machine, or to be downloaded."""

from __future__ import annotations

from perfcast.config.conf_files import read_conf
from perfcast.config.dataset_conf import read_dataset
from perfcast.data.sources.locations import locate_source
from perfcast.data.sources.source_spec import parse_source
from perfcast.ops.doctor.findings import BROKEN, CARE, FINE, Finding, ProjectPlace


def check(place: ProjectPlace) -> list[Finding]:
    """Find every source that params.yaml lists, without the network."""
    if place.params is None:
        return []
    conf, params = place.project / "conf", place.params
    required = {source for name in params.datasets for source in read_dataset(conf, name).sources.required}
    specs = [parse_source(name, read_conf(conf, "source", name)) for name in params.sources]
    found = {
        spec.name: locate_source(spec, cache=place.cache, mirrors=place.mirrors, embedded=place.embedded)
        for spec in specs
    }
    here = [name for name, location in found.items() if location.is_local]
    absent = [name for name in found if name not in here]
    findings = [Finding("sources", FINE, f"on this machine: {', '.join(here)}")] if here else []
    if absent and params.network:
        findings.append(Finding("sources", CARE, f"to be downloaded: {', '.join(absent)}", "see perfcast sources"))
    elif absent:
        stops = params.strict and required & set(absent)
        fact = "the run stops" if stops else "the datasets that need them are left out"
        remedy = "set network to true, or name a folder that has them in mirrors or PERFCAST_MIRROR"
        findings.append(Finding("sources", BROKEN if stops else CARE, f"not here: {', '.join(absent)}; {fact}", remedy))
    return findings
