# One tidy, self-describing table per data set; no row disappears silently.
rule standardize:
    input:
        lambda w: [
            f"{RESULTS}/raw/{source}/manifest.json"
            for source in (*DATASETS[w.dataset].sources.required, *DATASETS[w.dataset].sources.optional)
        ],
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
        conf=lambda w: str(DATASETS[w.dataset].options) + str(DATASETS[w.dataset].sources),
        code=lambda w: code("standardize", f"datasets.{w.dataset}"),
        options=lambda w: (
            f"--published-until {PARAMS.published_until}" if "published_until" in DATASETS[w.dataset].options else ""
        ),
    shell:
        "{PERFCAST} pipeline standardize {wildcards.dataset} --raw {RESULTS}/raw --table {output.table} --rejected {output.rejected} "
        "--quality {output.quality} {params.options} 2> >(tee {log} >&2)"
