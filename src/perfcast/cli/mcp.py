"""Serve tools of the Model Context Protocol (MCP) to assistants.

They are predict, compare, rank, size, similar and published, on standard
input and output.

Examples:
    perfcast mcp
    perfcast mcp --champion champion
"""

from __future__ import annotations

import argparse

from perfcast.cli.asking import add_champion, add_power, read_champion


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_champion(parser)
    add_power(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    from perfcast.serving.mcp_server import create_server, serve

    serve(create_server(read_champion(options)))
    return 0
