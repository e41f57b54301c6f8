"""Make the files of a release in dist/: wheel, champion, site and their checksums.

`--check` only tells whether the version may be released: it has a section in CHANGELOG.md, nothing is left under
Unreleased, and no tag has its name, unless the tag is what started this.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATASET = "spec_cpu2017"
MOST_BYTES = 6_000_000
"""Largest champion: it is fetched in a few seconds."""


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


def make_release(root: Path, champion: Path, site: Path, dist: Path) -> None:
    """Write the champion, the wheel that pins it, the site and the checksums."""
    version = read_version(root)
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    exported = dist / f"perfcast-{version}-{DATASET}.zip"
    export = ["champion", "export", "--champion", champion, "--dataset", DATASET, "--out", exported, "--project", root]
    subprocess.run([sys.executable, "-m", "perfcast", *export], check=True)
    if (size := exported.stat().st_size) > MOST_BYTES:
        sys.exit(f"release: the champion must have at most {MOST_BYTES} bytes, but has {size}")
    urls = tomllib.loads((root / "pyproject.toml").read_text())["project"]["urls"]
    url = f"{urls['Repository']}/releases/download/v{version}/{exported.name}"
    digest = hashlib.sha256(exported.read_bytes()).hexdigest()
    pin, built = root / "src/perfcast/champion.json", root / "build" / "lib"
    shutil.rmtree(built, ignore_errors=True)  # files of an older version would go into the wheel
    try:
        pin.write_text(json.dumps({"dataset": DATASET, "url": url, "sha256": digest, "bytes": size}) + "\n")
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*build, "--wheel-dir", dist, root], check=True)
    finally:
        pin.unlink()  # a clone is no release
        shutil.rmtree(built, ignore_errors=True)
    with tarfile.open(dist / f"perfcast-{version}-site.tar.gz", "w:gz") as archive:
        archive.add(site, "site")
    files = sorted(dist.iterdir())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (dist / "SHA256SUMS").write_text("".join(lines))
    print(*(f"{path}: {path.stat().st_size:,} bytes" for path in files), sep="\n")


def main() -> None:
    """Check, and make the files unless `--check` is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check")
    parser.add_argument("--champion", type=Path, default=ROOT / "results" / "champion" / DATASET)
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    if obstacles := list_obstacles(ROOT, os.environ.get("GITHUB_REF", "")):
        sys.exit(f"release: {'; '.join(obstacles)}")
    if not options.check:
        make_release(ROOT, options.champion, options.site, options.dist)


if __name__ == "__main__":
    main()
