"""Servers: published results of SPEC CPU and SPECpower, PerfCastDB, and the facts of their processors."""

from __future__ import annotations

from perfcast.domain import Domain

DOMAIN = Domain(
    name="servers",
    package=__name__,
    descriptions={
        "perfcastdb": "server_rules.SERVERS",
        "spec_cpu2017": "server_rules.SPEC_CPU2017",
        "spec_cpu2026": "server_rules.SPEC_CPU2026",
        "spec_cpu2026_unseen_2017": "server_rules.SPEC_CPU2026",
        "spec_power": "server_rules.SPEC_POWER",
    },
    shift="predictors.training_shift.TrainingShift",
    commands=("ledger",),
    leakage_checks=("leakage.ANNOUNCEMENTS", "leakage.FACT_DATES"),
    labels={
        "spec_cpu2017": "SPEC CPU2017",
        "spec_cpu2026": "SPEC CPU2026",
        "cores_per_chip_of_cpu_model": "cores per chip of the CPU model",
        "cpu_model": "CPU model",
        "cpu_series": "CPU series",
        "cpu_vendor": "CPU vendor",
        "hw_vendor": "system vendor",
        "sku_code": "SKU",
        "os": "operating system",
        "os_name": "operating system",
        "hw_avail": "hardware availability",
        "base_mhz": "nominal clock",
        "max_turbo_mhz": "highest clock",
        "all_core_turbo_mhz": "all-core clock",
        "l1i_kb": "L1 instruction cache",
        "l1d_kb": "L1 data cache",
        "l2_kb_per_core": "L2 cache per core",
        "l3_mb_per_chip": "L3 cache per chip",
        "l3_slice_mb": "L3 cache slice",
        "hbm_gb": "HBM",
        "tdp_w": "TDP",
        "mem_total_gb": "memory",
        "dimm_gb": "DIMM capacity",
        "sw_avail": "software availability",
        "isa": "ISA",
        "mem_rated_mts": "rated memory rate",
        "mem_eff_mts": "effective memory rate",
        "storage_gb": "storage size",
        "mem_max_mts_1dpc": "highest memory rate",
        "mem_channels_per_chip": "memory channels per chip",
    },
    flags={
        "servers (spec_cpu2017, spec_cpu2026)": {
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
