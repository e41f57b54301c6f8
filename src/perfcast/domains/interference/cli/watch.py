"""Show the predicted degradation of control groups, once a second.

A champion of host_interference predicts from the last ten seconds of the
system's metrics. It needs Linux; Ctrl-C ends it.

Examples:
    perfcast watch --results results/systems/interference --once --json
    perfcast watch --groups /system.slice/web.service --seconds 60
"""

from __future__ import annotations

import argparse
import itertools
import json

from perfcast.cli.arguments import add_shared, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shared(parser, "--results", results="folder of a run with a champion of host_interference")
    parser.add_argument("--groups", metavar="PATH,...", help="control groups (default: the busiest)")
    parser.add_argument("--once", action="store_true", help="one answer, after a second")
    parser.add_argument("--seconds", type=whole(1, 10**9), metavar="N", help="end after so many seconds")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")


def run(options: argparse.Namespace) -> int:
    """Predict every second, and print."""
    from pathlib import Path

    from perfcast.domains.interference.measuring.groups import find_tree
    from perfcast.domains.interference.measuring.metrics import Sampler, require_linux
    from perfcast.domains.interference.measuring.watching import choose_groups, watch
    from perfcast.inference.champion import load_champion

    champion = load_champion(options.results / "champion" / "host_interference", "host_interference")
    require_linux()
    wanted = [name.strip() for name in (options.groups or "").split(",") if name.strip()]
    groups = choose_groups(find_tree(Path("/proc/self/mounts").read_text()), wanted)
    limit = 1 if options.once else options.seconds
    try:
        for observation in itertools.islice(watch(groups, champion, Sampler()), limit):
            text = json.dumps(observation.to_json()) if options.json else f"{observation.to_text()}\n"
            print(text, flush=True)
    except KeyboardInterrupt:
        pass  # the way to end it
    return 0
