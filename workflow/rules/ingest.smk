# Raw files, byte-exact and checked by sha256. The only rules that may use the network.
rule ingest:
    output:
        f"{RESULTS}/raw/{{source}}/manifest.json",
    log:
        f"{RESULTS}/logs/ingest/{{source}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/ingest/{{source}}.tsv"
    params:
        **arguments(
            "ingest",
            out=lambda w: f"{RESULTS}/raw/{w.source}",
            origin=lambda w: f"{RESULTS}/logs/ingest/{w.source}.json",
        ),
        # The checksums in conf decide the bytes, whichever code fetches them.
        conf=lambda w: GRAPH.conf_digest("source", w.source),
        # A missing source is ingested again when a mirror has it, or the network is switched on.
        means=lambda w: str(GRAPH.plan(w.source).means),
        embedded=lambda w: GRAPH.embedded_digest(w.source),
    shell:
        RUN + ' "${{ingest_options[@]}}"'


# A checkpoint for the first run that needs the network: which datasets it has is known after ingestion (see common.smk).
checkpoint available:
    input:
        expand(f"{RESULTS}/raw/{{source}}/manifest.json", source=PARAMS.sources),
    output:
        out=f"{RESULTS}/raw/available.json",
    log:
        f"{RESULTS}/logs/available.log",
    params:
        **arguments("available"),
        code=GRAPH.code("available"),
    shell:
        RUN
