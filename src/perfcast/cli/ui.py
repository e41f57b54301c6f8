"""Open the MLflow UI on the project's tracking store.

Examples:
    perfcast ui
    perfcast ui --port 5001
"""

from __future__ import annotations

import argparse
import os
import sys

from perfcast.cli.arguments import add_shared, whole
from perfcast.utils.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--port", type=whole(1, 65535), default=5000, metavar="N", help="port to listen on")
    add_shared(parser, "--project")


def run(options: argparse.Namespace) -> int:
    """Replace this process by `mlflow ui` on the project's store."""
    from perfcast import tracking
    from perfcast.config.conf_files import read_yaml

    conf = read_yaml(options.project / "conf" / "tracking" / "default.yaml")
    store = tracking.store_from(conf, options.project, os.environ)
    if store is None:
        raise UserError("tracking must be on for a UI", "conf/tracking/default.yaml has enabled: false")
    client = tracking.open_client(store)
    # the job runner starts helper processes that this store has no use for
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    command = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", store.uri, "--port", str(options.port)]
    print(f"MLflow UI on http://127.0.0.1:{options.port}   store: {store.uri}")
    for name, address in tracking.page_addresses(client).items():
        print(f"{name}: http://127.0.0.1:{options.port}/{address}")
    sys.stdout.flush()
    os.execv(sys.executable, command)
    return 0
