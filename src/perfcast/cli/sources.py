"""Show every source, or pack one for the repository.

The table names the way to get each source, its size and its license. `pack`
writes the table of a source to data/embedded from its official files: FILE, or
those of the cache, a mirror or their address.

Examples:
    perfcast sources
    perfcast sources pack spec_cpu2026
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from perfcast.cli.arguments import add_project
from perfcast.utils.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", nargs="?", choices=["pack"], help="write the table of a source to data/embedded")
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="name of a file in conf/source with `packed`")
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="official file of a source that has one file"
    )
    add_project(parser)


def run(options: argparse.Namespace) -> int:
    """Print the table of sources, or write a packed one."""
    if options.action is None:
        _print_table(options.project)
    else:
        _pack(options.project, options.source or "", options.file)
    return 0


def _print_table(project: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from perfcast.config.conf_files import read_conf, read_yaml
    from perfcast.config.experiment_params import validate
    from perfcast.sources.locations import find_places, tabulate_sources
    from perfcast.sources.source_spec import parse_source

    params = validate(read_yaml(project / "params.yaml"), project / "conf")
    specs = [parse_source(name, read_conf(project / "conf", "source", name)) for name in params.sources]
    rows = tabulate_sources(specs, find_places(project, params.mirrors, os.environ))
    table = Table(title="Sources", title_justify="left")
    for heading in rows[0]:
        table.add_column(str(heading).capitalize(), overflow="fold")
    for row in rows:
        table.add_row(*[str(value) for value in row.values()])
    Console().print(table)


def _pack(project: Path, source: str, file: Path | None) -> None:
    from perfcast import plugins
    from perfcast.config.conf_files import known, read_conf, read_yaml
    from perfcast.config.experiment_params import validate
    from perfcast.sources.ingestion import ingest_source
    from perfcast.sources.locations import embedded_folder, find_places
    from perfcast.sources.packed import packed_name, write_packed, write_readme
    from perfcast.sources.source_spec import parse_source
    from perfcast.utils.errors import unknown_name
    from perfcast.utils.io import sha256

    conf = project / "conf"
    specs = {name: parse_source(name, read_conf(conf, "source", name)) for name in known(conf, "source")}
    packable = {name: spec for name, spec in specs.items() if spec.packed}
    if source not in packable:
        raise unknown_name("SOURCE", source, packable)
    spec = packable[source]
    with tempfile.TemporaryDirectory(prefix="perfcast-") as temporary:
        folder = Path(temporary) / source
        if file is None:
            params = validate(read_yaml(project / "params.yaml"), conf)
            places = find_places(project, params.mirrors, os.environ)
            official = spec.model_copy(update={"packed": None})
            ingest_source(official, folder, places, network=params.network, strict=True)
        elif len(spec.files) > 1:
            remedy = "leave FILE out, and put the files into a mirror (PERFCAST_MIRROR)"
            raise UserError("FILE must be all of the source", f"{source} has {len(spec.files)} files", remedy)
        else:
            folder.mkdir()
            shutil.copyfile(file, folder / spec.files[0].name)
        packed = plugins.load_function(str(spec.packed), f"packed of conf/source/{source}.yaml")(folder)
    path = embedded_folder(project) / source / packed_name(source)
    write_packed(packed.records, path)
    write_readme(embedded_folder(project), packable)
    print(f"{path}: {len(packed.records):,} rows, {path.stat().st_size:,} bytes, sha256 {sha256(path)}")
    print(f"left out: {packed.left_out}", file=sys.stderr)
