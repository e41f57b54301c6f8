# Raw files, byte-exact and checked by sha256. The only rules that may use the network.
from perfcast.data.sources.locations import embedded_folder


rule ingest:
    output:
        f"{RESULTS}/raw/{{source}}/manifest.json",
    log:
        f"{RESULTS}/logs/ingest/{{source}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/ingest/{{source}}.tsv"
    params:
        folder=subpath(output[0], parent=True),
        origin=lambda w: f"{RESULTS}/logs/ingest/{w.source}.json",
        conf=lambda w: GRAPH.conf_digest("source", w.source),
        code=lambda w: GRAPH.code("ingest", *GRAPH.source_modules(w.source)),
        # A missing source is ingested again when a mirror has it.
        at_hand=lambda w, output: GRAPH.is_at_hand(
            Path(output[0]),
            Path(f"{RESULTS}/logs/ingest/{w.source}.json"),
            lambda: GRAPH.is_local(w.source, os.environ),
        ),
        embedded=lambda w: GRAPH.embedded_digest(w.source, embedded_folder(Path())),
        options=GRAPH.ingest_options(),
    shell:
        "logged {log} perfcast pipeline ingest {wildcards.source} --out {params.folder} --origin {params.origin} {params.options}"


checkpoint available:
    input:
        expand(f"{RESULTS}/raw/{{source}}/manifest.json", source=PARAMS.sources),
    output:
        f"{RESULTS}/raw/available.json",
    log:
        f"{RESULTS}/logs/available.log",
    params:
        raw=subpath(output[0], parent=True),
        code=GRAPH.code("available"),
        datasets=PARAMS.datasets,
    shell:
        "logged {log} perfcast pipeline available {params.datasets} --raw {params.raw} --out {output}"
