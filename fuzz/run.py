"""Fuzz every target, one after the other, each in a process of its own; exit with 1 when one found something."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent
TARGETS = HERE / "targets"
sys.path.insert(0, str(TARGETS))  # targets import `_refusing`
INSTRUMENTED = ["perfcast", "yaml", "tarfile", "openpyxl", "json"]
LARGEST, SLOWEST, MEMORY = 8192, 20, 4096
"""Bytes of an input, seconds that one may take, MiB that all may need together."""


def names() -> list[str]:
    """Return the targets: the files of the folder."""
    return sorted(path.stem for path in TARGETS.glob("*.py") if not path.stem.startswith("_"))


def load(name: str) -> ModuleType:
    """Import a target by its file."""
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", TARGETS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fuzz(name: str, seconds: int) -> None:
    """Fuzz one target until its time is over; ends the process."""
    import atheris

    corpus, findings = HERE / "corpus" / name, HERE / "findings" / name
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    with atheris.instrument_imports(include=INSTRUMENTED):
        target = load(name)
    for number, seed in enumerate(target.SEEDS):
        (corpus / f"seed_{number}").write_bytes(seed)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={LARGEST}",
        f"-timeout={SLOWEST}",
        f"-rss_limit_mb={MEMORY}",
        f"-artifact_prefix={findings}/",
        "-print_final_stats=1",
    ]
    atheris.Setup([name, *options, str(corpus)], target.check)
    atheris.Fuzz()


def main() -> int:
    """Fuzz the targets that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"which (default: all): {', '.join(names())}")
    parser.add_argument("--seconds", type=int, default=120, help="time of each target (default 120)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.targets) - set(names()):
        parser.error(f"there is no target {sorted(unknown)[0]!r}")
    if options.here:
        fuzz(options.targets[0], options.seconds)
        return 0
    failed = []
    for name in options.targets or names():
        command = [sys.executable, __file__, "--here", "--seconds", str(options.seconds), name]
        with tempfile.TemporaryDirectory(prefix="perfcast-fuzz-") as folder:
            variables = {**os.environ, "TMPDIR": folder}
            done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace", env=variables)
        output = done.stdout + done.stderr
        stats = {
            key: line.split()[-1]
            for line in output.splitlines()
            if line.startswith("stat::")
            for key in [line.split(":")[2]]
        }
        covered = [line.split("cov: ")[1].split()[0] for line in output.splitlines() if "cov: " in line]
        print(
            f"{name}: {stats.get('number_of_executed_units', '?')} inputs in {options.seconds} s, "
            f"{covered[-1] if covered else '?'} edges, peak {stats.get('peak_rss_mb', '?')} MiB, "
            f"{'found something, see fuzz/findings' if done.returncode else 'nothing found'}",
            flush=True,
        )
        if done.returncode:
            failed.append(name)
            print("\n".join(output.splitlines()[-40:]), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
