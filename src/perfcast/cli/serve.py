"""Serve predictions over HTTP: a web page and an API.

By default, this machine alone can reach them.

Examples:
    perfcast serve
    perfcast serve --champion champion --host 0.0.0.0 --port 80
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from perfcast.cli.arguments import whole
from perfcast.cli.machine_arguments import add_champion, read_champion

if TYPE_CHECKING:
    from perfcast.serving.batching import RunBatch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_champion(parser)
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on")
    parser.add_argument("--port", type=whole(0, 65535), default=8000, metavar="N", help="port to listen on, 0 for any")
    parser.add_argument(
        "--workers",
        type=whole(1, 64),
        metavar="N",
        help="processes that predict (default: one for each core, at most 4); 1 predicts in the server itself",
    )
    parser.add_argument("--max-batch", type=whole(1, 10_000), default=200, metavar="N", help="machines per request")


def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    from perfcast.serving.http_server import address_of, is_loopback, listen, serve
    from perfcast.serving.prediction_processes import default_workers, start_processes
    from perfcast.serving.request_limits import RequestLimits

    # the processes start before anything is loaded or listened to
    with (
        start_processes(partial(_load, options), options.workers or default_workers()) as processes,
        listen(options.host, options.port) as listening,
    ):
        champion = read_champion(options)
        if not is_loopback(options.host):
            warning = f"perfcast serve: warning: {options.host} is open to other machines, without password or TLS"
            print(warning, file=sys.stderr, flush=True)
        address = address_of(listening, options.host)
        limits = RequestLimits(machines=options.max_batch)
        ready = partial(print, f"perfcast on {address}", flush=True)
        serve(champion, listening, options.host, limits, ready=ready, processes=processes)
    return 0


def _load(options: argparse.Namespace) -> RunBatch:
    from perfcast.serving.prediction_service import PredictionService

    service = PredictionService(read_champion(options))
    service.warm_up()
    return service.run
