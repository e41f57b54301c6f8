"""Configurations of trainings, composed of conf/ and params.yaml by Hydra; the only module that knows Hydra."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from perfcast.config.conf_files import known, read_ablations, read_conf, read_yaml
from perfcast.config.predictor_conf import read_tuned
from perfcast.domain import conf_folders
from perfcast.utils.errors import UserError, unknown_name


def run_hydra(root: Path, words: Sequence[str], task: Callable[[dict[str, Any]], None]) -> None:
    """Run a task on every configuration that words in Hydra's grammar name; `--cfg job` prints it in place of that.

    An ablation is a predictor as well. A task that fails leaves the others running.
    Raises: UserError in one line for a wrong name, key or syntax; otherwise the error of the first task that failed.
    """
    import hydra
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    conf, failures, before = Path(root).resolve() / "conf", list[Exception](), sys.argv
    read_yaml(conf.parent / "params.yaml")
    for name, ablation in read_ablations(conf).items():
        content = ablation.apply(read_conf(conf, "predictor", ablation.predictor))
        ConfigStore.instance().store(name, content, "predictor")

    def run(composed: Any) -> None:
        try:
            config: Any = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
            config["predictor"]["tuned"] = read_tuned(conf, config["predictor_name"])
            task(config)
        except Exception as error:  # what Hydra would print is no single line
            failures.append(error)

    searched = ",".join(f"file://{folder}" for folder in (conf.parent, *conf_folders(conf)[1:]))
    sys.argv = ["perfcast", *words, f"hydra.searchpath=[{searched}]"]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # raise, where it would print and exit
    try:
        hydra.main(str(conf), "config", version_base="1.3")(run)()
        if failures and isinstance(failures[0], OmegaConfBaseException):  # as where no split is given
            raise failures[0]
    except Exception as error:  # whatever Hydra, OmegaConf or YAML raise about the configuration
        message = str(error).partition("Config search path")[0]
        if choice := re.search(r"Could not find '(\w+)/(\w+)'", message):
            raise unknown_name(f"a {choice[1]}", choice[2], known(conf, choice[1])) from None
        raise UserError("an override must name values of conf/ or params.yaml", message[:2000]) from None
    finally:
        sys.argv = before
    if failures:
        raise failures[0]
