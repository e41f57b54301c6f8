# Raw files, byte-exact and checked by sha256. The only rules that may touch the network.
rule ingest:
    output:
        f"{RESULTS}/raw/{{source}}/manifest.json",
    log:
        f"{RESULTS}/logs/ingest/{{source}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/ingest/{{source}}.tsv"
    params:
        conf=lambda w: conf_digest("source", w.source),
        code=lambda w: code("ingest", f"sources.{w.source}"),
        # A source that was missing is asked for again when a mirror has it by now.
        found=lambda w: located(w.source),
        embedded=lambda w: embedded_digest(w.source),
        strict="--strict" if PARAMS.strict else "",
        offline="" if PARAMS.network else "--offline",
        mirrors=" ".join(f"--mirror {mirror}" for mirror in PARAMS.mirrors),
    shell:
        "{PERFCAST} pipeline ingest {wildcards.source} --out {RESULTS}/raw/{wildcards.source} --origin {RESULTS}/logs/ingest/{wildcards.source}.json "
        "{params.mirrors} {params.strict} {params.offline} 2> >(tee {log} >&2)"


checkpoint available:
    input:
        expand(f"{RESULTS}/raw/{{source}}/manifest.json", source=PARAMS.sources),
    output:
        f"{RESULTS}/raw/available.json",
    log:
        f"{RESULTS}/logs/available.log",
    params:
        code=code("available"),
        datasets=PARAMS.datasets,
    shell:
        "{PERFCAST} pipeline available {params.datasets} --raw {RESULTS}/raw --out {output} 2> >(tee {log} >&2)"


def located(source):
    """Whether a source was at hand when it was ingested, or, if it was missing, whether it is now."""
    import json

    from perfcast.cli.pipeline.ingest import at_hand

    manifest = Path(RESULTS) / "raw" / source / "manifest.json"
    origin = Path(RESULTS) / "logs" / "ingest" / f"{source}.json"
    if manifest.exists() and origin.exists() and json.loads(manifest.read_text())["status"] == "present":
        return json.loads(origin.read_text())["at_hand"]
    return at_hand(source, Path("."), PARAMS.mirrors)


def embedded_digest(source):
    """Digest of a source's files that are versioned with the project itself, empty for the others."""
    import hashlib

    from perfcast.cli._common import embedded_folder

    conf = perfcast_config.read_conf(CONF, "source", source)
    if not conf.get("embedded"):
        return ""
    files = [embedded_folder(Path()) / file["name"] for file in conf["files"]]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files if file.exists())).hexdigest()[:16]
