"""Servers: published results of SPEC CPU, SPECpower and SPECjbb, PerfCastDB, and the facts of their processors."""

from __future__ import annotations

from perfcast.domain import Domain

DOMAIN = Domain(
    name="servers",
    package=__name__,
    descriptions={
        **dict.fromkeys(("perfcastdb", "spec_cpu2017_detail", "spec_jbb2015", "spec_power"), "server_rules.SERVERS"),
        **dict.fromkeys(("spec_cpu2026", "spec_cpu2026_unseen_2017"), "server_rules.SPEC_CPU2026"),
        **dict.fromkeys(("spec_cpu2017", "spec_cpu2017_from_2006"), "server_rules.SPEC_CPU2017"),
        "spec_cpu2006": "server_rules.SPEC_CPU2006",
    },
    commands=("facts add", "facts list"),
    tables={"error_sources": "error_sources.tabulate_error_sources"},
    sections={"error_sources": "error_sources.error_sources_section"},
    shift="predictors.training_shift.TrainingShift",
    leakage_checks=("leakage.ANNOUNCEMENTS", "leakage.FACT_DATES"),
    labels={
        "cores_per_chip_of_cpu_model": "cores per chip of the CPU model",
        "cpu_model": "CPU model",
        "cpu_series": "CPU series",
        "cpu_vendor": "CPU vendor",
        "hw_vendor": "system vendor",
        "sku_code": "SKU",
    },
    flags={
        "servers (spec_cpu2017, spec_cpu2006)": {
            ("processor", "cpu"): "name, as typed on the box: 'AMD EPYC 9755'",
            ("chips", "sockets"): "number of processors",
            ("cores",): "enabled cores of each processor",
            ("memory",): "modules: '24 x 64 GB DDR5-6400'",
            ("os", "operating-system"): "operating system: 'SLES 15 SP6, kernel 6.4'",
            ("compiler",): "name and version: 'AOCC 5.0'",
            ("storage",): "devices: '1 x 960 GB NVMe SSD'",
        },
    },
)
