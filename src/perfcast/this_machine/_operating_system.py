"""Operating system, kernel and architecture, named as in published results."""

from __future__ import annotations

from perfcast.parsing.operating_system import parse_operating_system
from perfcast.this_machine import lscpu
from perfcast.this_machine.commands import Host
from perfcast.this_machine.reading import Gathering

_RELEASE_FILES = ("/etc/os-release", "/usr/lib/os-release")


def read_operating_system(gathering: Gathering, host: Host, fields: lscpu.Fields) -> None:
    """Read os_name, os_version, kernel_series and arch."""
    path = next((path for path in _RELEASE_FILES if host.text(path)), _RELEASE_FILES[0])
    release = _values(host.text(path))
    name = release.get("PRETTY_NAME") or " ".join(filter(None, (release.get("NAME"), release.get("VERSION"))))
    system = parse_operating_system(name)
    gathering.put("os_name", system.os_name, name, path)
    if system.os_name:
        gathering.put("os_version", system.os_version, name, path)
    why = f"published results know no system {name[:60]!r}" if name else f"{path} names no system"
    gathering.miss(["os_name", "os_version"], f"{why}: give the system and its release")

    # Only these options: others would tell the name of the machine.
    kernel = host.say("uname", "-r")
    gathering.put("kernel_series", parse_operating_system(f"kernel {kernel}").kernel_series, kernel, "uname")
    gathering.miss(["kernel_series"], "uname does not say it: give the first two numbers of the kernel")

    stated = lscpu.first(fields, "Architecture")
    for text, where in ((stated, "lscpu"), (host.say("uname", "-m"), "uname")):
        gathering.put("arch", parse_operating_system(text).arch if text else None, text, where)
    gathering.miss(["arch"], "neither lscpu nor uname says one that published results know: give it")


def _values(text: str) -> dict[str, str]:
    """Return the assignments of an os-release file without their quotes."""
    parts = (line.strip().partition("=") for line in text.splitlines())
    return {name: value.strip().strip("\"'") for name, equals, value in parts if equals and not name.startswith("#")}
