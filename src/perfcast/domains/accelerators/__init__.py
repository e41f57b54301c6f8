"""Accelerators of machine learning: published throughput of real machines, and the energy of what they run."""

from __future__ import annotations

from perfcast.domain import Domain

DOMAIN = Domain(
    name="accelerators",
    package=__name__,
    shift="predictors.distance.PairShift",
    descriptions={
        "mlperf_inference": "accelerator_rules.MLPERF_INFERENCE",
        "mlperf_power": "accelerator_rules.MLPERF_POWER",
        "ml_energy": "energy_rules.ML_ENERGY",
        "ml_energy_diffusion": "energy_rules.ML_ENERGY_DIFFUSION",
    },
    flags={
        "systems of accelerators (mlperf_inference)": {
            ("accelerator",): "name: MI355X, or '8 x MI355X'",
            ("accelerators",): "number of accelerators, of all nodes",
        },
    },
)
