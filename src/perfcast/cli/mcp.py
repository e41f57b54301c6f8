"""Serve tools of the Model Context Protocol (MCP) to assistants.

They are predict, compare, rank, size, similar and published, on standard
input and output.

Examples:
    perfcast mcp
    perfcast mcp --champion champion
"""

from __future__ import annotations

import argparse

from perfcast.cli.asking import BOTH, add_champion, add_power, read_suites


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_champion(parser)
    add_power(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    from perfcast.serving.mcp_server import create_server, serve

    options.suite = options.suite or BOTH
    serve(create_server(read_suites(options)))
    return 0
