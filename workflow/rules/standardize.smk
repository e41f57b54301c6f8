# One tidy, self-describing table per dataset; no row disappears silently.
rule standardize:
    input:
        manifests,
    output:
        table=f"{RESULTS}/standard/{{dataset}}.parquet",
        rejected=f"{RESULTS}/standard/{{dataset}}.rejected.csv",
        quality=f"{RESULTS}/standard/{{dataset}}.quality.json",
    log:
        f"{RESULTS}/logs/standardize/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/standardize/{{dataset}}.tsv"
    resources:
        mem_mb=gigabytes(2),
        runtime=minutes(20),
    params:
        raw=lambda w: f"{RESULTS}/raw",
        conf=lambda w: str(GRAPH.datasets[w.dataset].options) + str(GRAPH.datasets[w.dataset].sources),
        code=lambda w: GRAPH.code("standardize", GRAPH.datasets[w.dataset].module),
    shell:
        "logged {log:q} perfcast pipeline standardize {wildcards.dataset:q} --raw {params.raw:q} --table {output.table:q} "
        "--rejected {output.rejected:q} --quality {output.quality:q}"
