"""Champions of generated results of accelerators and of served models, made once for all tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from generated_champions import write_champion

from perfcast.domains.accelerators.datasets import ml_energy, mlperf_inference
from perfcast.domains.accelerators.predictors.pooled_effects import PooledEffectsPredictor
from perfcast.inference import Champion, load_champion
from perfcast.predictors.linear import Ridge

_OPTIONS = {"mlperf_power": {"measured_power": True}, "ml_energy": {"load": "llm"}}
_OPTIONS["ml_energy_diffusion"] = {"load": "diffusion"}


@cache
def results(dataset: str) -> Path:
    """Return a folder of results with the champion of a dataset."""
    module = mlperf_inference if dataset.startswith("mlperf") else ml_energy
    feature = dataset.replace("power", "inference")
    chosen = _OPTIONS.get(dataset, {})
    make = PooledEffectsPredictor if module is mlperf_inference else Ridge
    return write_champion(dataset, (feature,), lambda raw, _: module.build(raw, chosen), module.SOURCE, 500, make)


@cache
def champion(dataset: str) -> Champion:
    """Return the champion of a dataset."""
    return load_champion(results(dataset) / "champion" / dataset, dataset)
