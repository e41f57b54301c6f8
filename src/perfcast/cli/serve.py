"""Serve predictions over HTTP: a web page and an API, by default for this machine only."""

from __future__ import annotations

import argparse
import sys

from perfcast.cli._prediction_options import add_champion, read_champion
from perfcast.utils.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_champion(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on, 0 for any (default: 8000)")
    parser.add_argument("--max-batch", type=int, default=200, metavar="N", help="machines per request (default: 200)")


def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    from perfcast.serving.http_server import address_of, is_loopback, listen, serve
    from perfcast.serving.request_limits import RequestLimits

    if not 1 <= options.max_batch <= 10_000:
        raise UserError("--max-batch must be from 1 to 10000", f"got {options.max_batch}")
    with listen(options.host, options.port) as listening:
        champion = read_champion(options)
        if not is_loopback(options.host):
            warning = f"perfcast serve: warning: {options.host} is open to other machines, without password or TLS"
            print(warning, file=sys.stderr, flush=True)
        address = address_of(listening, options.host)
        limits = RequestLimits(machines=options.max_batch)
        serve(champion, listening, options.host, limits, lambda: print(f"perfcast on {address}", flush=True))
    return 0
