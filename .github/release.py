"""Make the files of a release in dist/: the wheel with the champions of both suites, the site and their checksums.

`--check` only tells whether the version may be released: it has a section in CHANGELOG.md, nothing is left under
Unreleased, and no tag has its name, unless the tag is what started this.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from perfcast.utils.result_digests import record_digests

ROOT = Path(__file__).parents[1]
DATASET, BRIDGED = "spec_cpu2017", "spec_cpu2026"
MOST_BYTES = 12_000_000
"""Largest wheel: it is fetched in a few seconds."""


def read_version(root: Path) -> str:
    """Return the version of the package."""
    return re.findall(r'^__version__ = "(.+)"$', (root / "src/perfcast/__init__.py").read_text(), re.MULTILINE)[0]


def list_obstacles(root: Path, ref: str) -> list[str]:
    """Return why the version cannot be released; `ref` is what the workflow was started by, "" by hand."""
    version = read_version(root)
    sections = re.split(r"^## \[(.+)\].*\n", (root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    tags = subprocess.run(["git", "tag", "--list"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    obstacles = []
    if f"v{version}" in tags and ref != f"refs/tags/v{version}":
        obstacles.append(f"version {version} is tagged already: raise __version__ in src/perfcast/__init__.py")
    if ref.startswith("refs/tags/") and ref != f"refs/tags/v{version}":
        obstacles.append(f"the tag {ref.removeprefix('refs/tags/')} is not that of version {version}")
    if not texts.get(version, "").strip():
        obstacles.append(f"CHANGELOG.md has no section [{version}]")
    if texts.get("Unreleased", "").strip():
        obstacles.append(f"CHANGELOG.md has changes under [Unreleased]: move them to [{version}]")
    if f"version: {version}\n" not in (root / "CITATION.cff").read_text():
        obstacles.append(f"CITATION.cff has another version than {version}")
    return obstacles


def unpack_champions(root: Path, champions: Path, out: Path) -> None:
    """Write the champions of both suites as they lie in the package: each in a folder of its dataset, with its terms.

    The second rests on the first and has a copy of it, which becomes the first, so they belong together.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    exported = out / "both.zip"
    export = ["champion", "export", "--champion", champions / BRIDGED, "--dataset", BRIDGED, "--out", exported]
    subprocess.run([sys.executable, "-m", "perfcast", *export, "--project", root], check=True)
    with zipfile.ZipFile(exported) as archive:
        archive.extractall(out / BRIDGED)
    exported.unlink()
    (out / BRIDGED / "base").rename(out / DATASET)
    shutil.copy(out / BRIDGED / "terms.json", out / DATASET)
    for dataset in (DATASET, BRIDGED):
        record_digests(out / dataset)


def build_wheel(root: Path, champions: Path, dist: Path) -> Path:
    """Write the wheel of the source in `root` with the champions of both suites, and return its path."""
    packaged, built = root / "build" / "champions", root / "build" / "lib"
    unpack_champions(root, champions, packaged)
    shutil.rmtree(built, ignore_errors=True)  # files of an older version would go into the wheel
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    environment = {**os.environ, "PERFCAST_CHAMPIONS": str(packaged)}  # setup.py copies them
    subprocess.run([*build, "--wheel-dir", dist, root], env=environment, check=True)
    shutil.rmtree(built, ignore_errors=True)
    wheel = dist / f"perfcast-{read_version(root)}-py3-none-any.whl"
    if (size := wheel.stat().st_size) > MOST_BYTES:
        sys.exit(f"release: the wheel must have at most {MOST_BYTES:,} bytes, but has {size:,}")
    return wheel


def make_release(root: Path, champions: Path, site: Path, dist: Path) -> None:
    """Write the wheel with its champions, the site and the checksums."""
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    build_wheel(root, champions, dist)
    with tarfile.open(dist / f"perfcast-{read_version(root)}-site.tar.gz", "w:gz") as archive:
        archive.add(site, "site")
    files = sorted(dist.iterdir())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (dist / "SHA256SUMS").write_text("".join(lines))
    print(*(f"{path}: {path.stat().st_size:,} bytes" for path in files), sep="\n")


def main() -> None:
    """Check, and make the files unless `--check` is given; `--wheel` makes the wheel alone, of any version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check")
    parser.add_argument("--wheel", action="store_true", help="only the wheel, also of a version that is not released")
    parser.add_argument(
        "--champions", type=Path, default=ROOT / "results" / "champion", help="folder of both champions"
    )
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    if options.wheel:
        wheel = build_wheel(ROOT, options.champions, options.dist)
        print(f"{wheel}: {wheel.stat().st_size:,} bytes")
        return
    if obstacles := list_obstacles(ROOT, os.environ.get("GITHUB_REF", "")):
        sys.exit(f"release: {'; '.join(obstacles)}")
    if not options.check:
        make_release(ROOT, options.champions, options.site, options.dist)


if __name__ == "__main__":
    main()
