"""Composition of conf/ and params.yaml by Hydra; the only module that knows Hydra."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfcast.config.conf_files import Ablation, read_ablations, read_conf, read_yaml
from perfcast.config.predictor_conf import read_tuned
from perfcast.domain import conf_folders
from perfcast.utils.errors import UserError
from perfcast.utils.nested import flattened

_ALWAYS = ("trainer=default", "tracking=default")
"""Choices of config.yaml that an override may replace."""


def _check_chosen(conf: Path, overrides: Sequence[str]) -> None:
    """Read each file that an override chooses by name, so that a wrong name is one line."""
    groups = {path.name for folder in conf_folders(conf) for path in folder.glob("*") if path.is_dir()}
    for override in (*_ALWAYS, *overrides):
        group, equals, name = override.lstrip("+").partition("=")
        group = group.partition("@")[0]
        if equals and group in groups:
            read_conf(conf, group, name.strip("'\""))


def _resolve_ablation(conf: Path, override: str, ablations: Mapping[str, Ablation]) -> list[str]:
    """Replace the choice of an ablation by the choice of its predictor and the values that it changes."""
    group, _, name = override.partition("=")
    if group != "predictor" or name not in ablations:
        return [override]
    ablation = ablations[name]
    values = [
        f"++predictor.{block}.{key}={json.dumps(value)}"
        for block in ("params", "quick")
        for key, value in flattened(ablation.params).items()
    ]
    hidden = read_conf(conf, "predictor", name)["without_columns"]
    return [f"predictor={ablation.predictor}", *values, f"++predictor.without_columns={json.dumps(hidden)}"]


def compose(root: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """Compose conf/config.yaml with params.yaml and overrides by Hydra; return plain nested values.

    Raises: UserError in one line for a wrong name, key or syntax.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    root = Path(root).resolve()
    _check_chosen(root / "conf", overrides)
    read_yaml(root / "params.yaml")
    ablations = read_ablations(root / "conf")
    predictor = next((text.partition("=")[2] for text in reversed(overrides) if text.startswith("predictor=")), "")
    overrides = [word for override in overrides for word in _resolve_ablation(root / "conf", override, ablations)]
    try:
        with initialize_config_dir(str(root / "conf"), version_base="1.3"):
            searched = ",".join(f"file://{folder}" for folder in (root, *conf_folders(root / "conf")[1:]))
            composed = hydra_compose("config", [f"hydra.searchpath=[{searched}]", *overrides])
            resolved: Any = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException) as error:
        message = str(error).partition("Config search path")[0]
        raise UserError("an override must name values of conf/ or params.yaml", message[:2000]) from None
    if tuned := read_tuned(root / "conf", predictor):
        resolved["predictor"]["tuned"] = {
            dataset: {split: entry.model_dump() for split, entry in splits.items()} for dataset, splits in tuned.items()
        }
    return dict(resolved)
