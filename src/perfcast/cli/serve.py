"""Serve predictions over HTTP: a web page and an API.

Those beside the champion that rest on its estimates answer as well.
By default, this machine alone can reach them.

Examples:
    perfcast serve
    perfcast serve --champion champion --host 0.0.0.0 --port 80
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from perfcast.cli.arguments import whole
from perfcast.cli.asking import BOTH, add_champion, add_power, read_suites


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_champion(parser)
    add_power(parser)
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on")
    parser.add_argument("--port", type=whole(0, 65535), default=8000, metavar="N", help="port to listen on, 0 for any")
    parser.add_argument(
        "--workers",
        type=whole(1, 64),
        metavar="N",
        help="processes that answer (default: one for each core, at most 4)",
    )
    parser.add_argument("--max-batch", type=whole(1, 10_000), default=1000, metavar="N", help="machines per request")
    parser.add_argument(
        "--limit-concurrency",
        type=whole(2, 100_000),
        default=1000,
        metavar="N",
        help="connections of a worker; further requests get status 503",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    from perfcast.serving.http_server import address_of, is_loopback, listen, serve

    options.suite = options.suite or BOTH
    with listen(options.host, options.port) as listening:
        read_suites(options)  # refuse what is wrong with it once, before every worker reads it
        if not is_loopback(options.host):
            warning = f"perfcast serve: warning: {options.host} is open to other machines, without password or TLS"
            print(warning, file=sys.stderr, flush=True)
        print(f"perfcast on {address_of(listening, options.host)}", flush=True)
        serve(partial(_create_app, options), listening, options.workers, options.limit_concurrency)
    return 0


def _create_app(options: argparse.Namespace) -> Any:
    """Return the application of a worker; it is imported here, where the supervisor already watches the worker."""
    from perfcast.serving.http_server import create_worker_app

    return create_worker_app(partial(read_suites, options), options.host, options.max_batch)
