"""Domains: kinds of measured things, such as servers, each with everything of its own in one package.

The core knows no domain. It finds them by the entry point group `perfcast.domain`, those of perfcast and those of other
distributions in the same way.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from perfcast.utils.errors import UserError

GROUP = "perfcast.domain"


@dataclass(frozen=True)
class Domain:
    """Everything that a kind of measured things brings; modules and objects are named, and imported at first use.

    The `package` may have the folder `conf`, with files as in the project's own, and `data`, a mirror of sources. Its
    packages `sources`, `splits`, `features`, `testing` and `cli` hold plug-ins (see `perfcast.plugins`).
    """

    name: str
    package: str
    descriptions: Mapping[str, str] = field(default_factory=dict)
    """Dataset -> its `DescriptionRules`, as a dotted path below the package."""
    commands: tuple[str, ...] = ()
    """Commands of users, such as `measure gemm`, each a module of the package `cli`."""
    flags: Mapping[str, Mapping[tuple[str, ...], str]] = field(default_factory=dict)
    """Title -> options of the most common fields with synonyms and meaning, as files and HTTP requests name them."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Further table of an evaluation -> the function that makes it, as a dotted path below the package."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Column -> its label in reports, where its name with spaces is no name in plain words."""
    shift: str = ""
    """Class that labels how new rows are to training rows: `fit(X, columns)`, then `of(X)`; by default the entity."""
    leakage_checks: tuple[str, ...] = ()
    """Further leakage checks, `LeakageCheck`s, as dotted paths below the package."""

    @property
    def folder(self) -> Path:
        """The folder of the package."""
        return Path(str(importlib.import_module(self.package).__file__)).parent

    @property
    def conf(self) -> Path:
        """The folder of its configuration files, which may not exist."""
        return self.folder / "conf"

    def modules(self) -> list[str]:
        """Return the modules of its descriptions, shift and leakage checks."""
        return self.modules_of([*self.descriptions.values(), *self.leakage_checks, *filter(None, [self.shift])])

    def modules_of(self, paths: Iterable[str]) -> list[str]:
        """Return the modules of objects by their dotted paths below the package."""
        return sorted({f"{self.package}.{path.rpartition('.')[0]}" for path in paths})

    def load(self, path: str) -> Any:
        """Return an object by its dotted path below the package."""
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(f"{self.package}.{module}"), name)


CORE = Domain(name="core", package="perfcast")
"""What belongs to no domain."""


@cache
def domains() -> tuple[Domain, ...]:
    """Return the core and the installed domains, by name; a domain whose package was removed is left out.

    Raises: UserError when two domains have one name, or the metadata of perfcast lack one of its own.
    """
    by_name: dict[str, Domain] = {}
    entries = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))
    for package in iter_modules([str(Path(__file__).parent / "domains")], "perfcast.domains."):
        if package.name not in {entry.module for entry in entries}:
            remedy = "delete src/perfcast.egg-info if it is there, then run `rm -f .venv/.ready && make setup`"
            raise UserError("perfcast must be installed as it is", f"its metadata lack {package.name}", remedy)
    for entry in entries:
        if not exists(entry.module):
            continue
        loaded = entry.load()
        if by_name.setdefault(loaded.name, loaded) != loaded:
            raise UserError("each domain must have a name of its own", f"two are named {loaded.name!r}", "remove one")
    return (CORE, *by_name.values())


def exists(module: str) -> bool:
    """Return whether a module can be imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package above it
        return False


def domain_of(path: str) -> Domain:
    """Return the domain that a dotted path belongs to; the core where it belongs to no other."""
    owners = [domain for domain in domains() if path.startswith(f"{domain.package}.")]
    return max(owners, key=lambda domain: len(domain.package), default=CORE)


def find_description(dataset: str) -> Any:
    """Return the rules of the machines of a dataset, None where no domain has any."""
    for domain in domains():
        if path := domain.descriptions.get(dataset):
            return domain.load(path)
    return None


def conf_folders(conf: Path) -> list[Path]:
    """Return the folders of configuration: that of a project, which comes first, and those of the domains."""
    return [Path(conf), *(domain.conf for domain in domains()[1:] if domain.conf.is_dir())]
