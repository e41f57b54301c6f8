# Estimates of a dataset's rows by the champion of the dataset that its conf names.
rule bridge:
    input:
        table=rules.standardize.output.table,
        champion=lambda w: f"{RESULTS}/champion/{GRAPH.base_of(w.dataset)}",
    output:
        out=f"{RESULTS}/features/{{dataset}}.bridge",
    log:
        f"{RESULTS}/logs/bridge/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/bridge/{{dataset}}.tsv"
    threads: 1
    resources:
        mem_mb=jobs.gigabytes(3),
        runtime=jobs.minutes(240),
    params:
        **arguments("bridge"),
        conf=lambda w: str(GRAPH.datasets[w.dataset].bridge),
        settings=GRAPH.all_settings(),
        code=lambda w: GRAPH.bridge_code(w.dataset),
    shell:
        RUN


# Derived columns by group, and which rows train and which test. Splits read the standard table: derived columns such as
# ages would make equal configurations look different.
rule features:
    input:
        table=rules.standardize.output.table,
        bridge=lambda w: GRAPH.bridge_file(w.dataset),
    output:
        out=f"{RESULTS}/features/{{dataset}}.parquet",
    log:
        f"{RESULTS}/logs/features/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/features/{{dataset}}.tsv"
    resources:
        mem_mb=jobs.gigabytes(1),
        runtime=jobs.minutes(10),
    params:
        **arguments("features"),
        conf=lambda w: GRAPH.datasets[w.dataset].features,
        code=lambda w: GRAPH.code("features", *GRAPH.feature_modules(w.dataset)),
    shell:
        RUN


rule split:
    input:
        table=rules.standardize.output.table,
    output:
        out=f"{RESULTS}/splits/{{dataset}}/{{split}}.parquet",
    log:
        f"{RESULTS}/logs/split/{{dataset}}/{{split}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/split/{{dataset}}/{{split}}.tsv"
    resources:
        mem_mb=jobs.gigabytes(1),
        runtime=jobs.minutes(10),
    params:
        **arguments("split"),
        code=lambda w: GRAPH.code("split", datasets=[w.dataset]),
    shell:
        RUN
