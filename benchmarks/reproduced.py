"""Say whether metrics are those of a revision within a tolerance; `make reproduced` pipes `dvc metrics diff` here."""

from __future__ import annotations

import json
import sys

EXACT = 1e-4
"""Tolerance of a predictor without a network, as a share of the value: the last of six digits."""
NETWORK = 0.05
"""Tolerance of a network: vector units round differently. A value below SMALL is compared as if it were SMALL."""
SMALL = 2.0
NETWORKS = ("mlp", "ncpp")
"""Networks of the default run."""


def share_of_tolerance(name: str, before: float | None, after: float | None) -> float:
    if before is None or after is None:
        return float("inf")
    larger = max(abs(before), abs(after))
    _, _, predictor, *_ = name.split(".")
    tolerance = NETWORK * max(larger, SMALL) if predictor in NETWORKS else EXACT * larger
    return abs(after - before) / tolerance


def main() -> None:
    changed = {name: each for file in json.load(sys.stdin).values() for name, each in file.items()}
    shares = {name: share_of_tolerance(name, each["old"], each["new"]) for name, each in changed.items()}
    for name in sorted(shares, key=shares.__getitem__, reverse=True)[:5]:
        print(f"{name}: {changed[name]['old']} -> {changed[name]['new']}, {shares[name]:.0%} of the tolerance")
    beyond = sum(share > 1 for share in shares.values())
    print(f"{len(changed)} metrics differ, {beyond} of them by more than the tolerance")
    sys.exit(beyond > 0)


if __name__ == "__main__":
    main()
