# One tidy, self-describing table per dataset; no row disappears silently.
rule standardize:
    input:
        lambda w: GRAPH.manifests(w.dataset),
    output:
        table=f"{RESULTS}/standard/{{dataset}}.parquet",
        rejected=f"{RESULTS}/standard/{{dataset}}.rejected.csv",
        quality=f"{RESULTS}/standard/{{dataset}}.quality.json",
    log:
        f"{RESULTS}/logs/standardize/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/standardize/{{dataset}}.tsv"
    resources:
        mem_mb=jobs.gigabytes(2),
        runtime=jobs.minutes(20),
    params:
        **arguments("standardize"),
        conf=lambda w: str(GRAPH.datasets[w.dataset].options) + str(GRAPH.datasets[w.dataset].sources),
        code=lambda w: GRAPH.code("standardize", GRAPH.datasets[w.dataset].module),
    shell:
        RUN
