"""Configurations of trainings, composed of conf/ and params.yaml by Hydra; the only module that knows Hydra."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perfcast.config.conf_files import conf_files, known, read_ablations, read_conf, read_yaml, require_mapping
from perfcast.config.experiment_params import RESULTS, Params, read_params
from perfcast.config.predictor_conf import read_tuned
from perfcast.domain import conf_folders
from perfcast.utils.errors import UserError, unknown_name

_GROUPS = ("dataset", "predictor", "trainer", "tracking")
_DEFAULTS = ("params@_global_", *_GROUPS, "_self_")
_OWN_KEYS = ("split", "preset", "dataset_name", "predictor_name", "table", "folds", "out")
"""Keys of conf/config.yaml beside its defaults list."""
_KEYS = {*_GROUPS, *_OWN_KEYS, *Params.model_fields, RESULTS}
_EXCLUDED = ("dataset", "split", "table", "folds", "out")
"""Keys that do not name the folder of a training."""
_HYDRA = (
    "hydra/hydra_logging=none",
    "hydra/job_logging=none",
    "hydra.output_subdir=null",
    "hydra.run.dir=.",
    "hydra.sweep.dir=results/trials",
    "hydra.sweep.subdir=.",
    f"hydra.job.config.override_dirname.exclude_keys=[{','.join(_EXCLUDED)}]",
)
"""Settings of Hydra itself. No file and no user has others: Hydra instantiates classes that they name."""
_PACKAGE = re.compile(r"^\W*#\s*@package", re.MULTILINE)

_CHECK = "_check_help"
"""Method by which parsers check a help text, since Python 3.14."""


@contextmanager
def _unchecked_help() -> Iterator[None]:
    """Let parsers take any help text: one of Hydra's is no string, and Hydra's parser could not be made."""
    setattr(ArgumentParser, _CHECK, lambda parser, action: None)  # the one of its base class is hidden
    try:
        yield
    finally:
        delattr(ArgumentParser, _CHECK)


def run_hydra(root: Path, words: Sequence[str], task: Callable[[dict[str, Any]], None]) -> None:
    """Run a task on every configuration that words in Hydra's grammar name; `--cfg job` prints it in place of that.

    An ablation is a predictor as well. A task that fails leaves the others running.
    Raises: UserError in one line for a wrong name, key or syntax; otherwise the error of the first task that failed.
    """
    import hydra
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    conf = Path(root).resolve() / "conf"
    failures = list[Exception]()
    before = sys.argv
    _check_words(words)
    _check_files(conf)
    for name, ablation in read_ablations(conf).items():
        content = ablation.apply(read_conf(conf, "predictor", ablation.predictor))
        ConfigStore.instance().store(name, content, "predictor")

    def run(composed: Any) -> None:
        try:
            config: Any = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
            if unknown := [name for name in config if name not in _KEYS]:
                raise unknown_name("a key of the configuration", unknown[0], _KEYS)
            config["predictor"]["tuned"] = read_tuned(conf, config["predictor_name"])
            task(config)
        except Exception as error:  # what Hydra would print is no single line
            failures.append(error)

    searched = ",".join(f"file://{folder}" for folder in (conf.parent, *conf_folders(conf)[1:]))
    sys.argv = ["perfcast", *words, *_HYDRA, f"hydra.searchpath=[{searched}]"]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # raise, where it would print and exit
    try:
        with _unchecked_help():
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


def _check_words(words: Sequence[str]) -> None:
    """Check that words change values alone. Raises: UserError for one that changes Hydra, or is none of its grammar."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import OverrideParseException

    for word in words:
        if word == "--multirun" or word.startswith("--cfg="):
            continue
        try:
            (override,) = OverridesParser.create().parse_overrides([word])
        except OverrideParseException:
            raise UserError("an override must be KEY=VALUE", f"it is {word[:80]!r}") from None
        key = override.key_or_group
        if override.package is not None or re.match(r"hydra\b", key):
            fact = f"{word[:80]!r} changes {'the place of one' if override.package else 'Hydra itself'}"
            raise UserError("an override must change values of conf/ or params.yaml", fact, "leave it out")


def _check_files(conf: Path) -> None:
    """Check that files give values at their own place alone.

    Raises: UserError for an unknown key of params.yaml or conf/config.yaml, and a file that says where its values go.
    """
    read_params(conf.parent)
    config = require_mapping(read_yaml(conf / "config.yaml"), "conf/config.yaml")
    names = [next(iter(each)) if isinstance(each, dict) else each for each in config.get("defaults") or ()]
    if tuple(names) != _DEFAULTS:
        raise UserError("defaults of conf/config.yaml must be those of perfcast", f"they are {names!r:.200}")
    if unknown := [str(key) for key in config if key not in ("defaults", *_OWN_KEYS)]:
        raise unknown_name("a key of conf/config.yaml", unknown[0], _OWN_KEYS)
    for path in (conf / "config.yaml", *(path for group in _GROUPS for path in conf_files(conf, group).values())):
        text = path.read_text(encoding="utf-8-sig")
        if _PACKAGE.search(text):
            raise UserError(f"{path} must not say where its values go", "a line has `# @package`", "leave it out")
        if "defaults" in text and "defaults" in require_mapping(read_yaml(path), str(path)) and path.parent != conf:
            raise UserError(f"{path} must not have defaults", "it has the key 'defaults'", "leave it out")
