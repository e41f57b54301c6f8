"""Print the lines that complete commands and options in a shell.

Examples:
    eval "$(perfcast completion bash)"
    perfcast completion fish > ~/.config/fish/completions/perfcast.fish
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="shell that reads the lines")


def run(options: argparse.Namespace) -> int:
    """Print the lines."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["perfcast"], shell=options.shell))
    return 0
