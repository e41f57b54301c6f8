# Estimates of a dataset's rows by the champion of the dataset that its conf names.
rule bridge:
    input:
        table=rules.standardize.output.table,
        champion=lambda w: f"{RESULTS}/champion/{base(w)}",
    output:
        f"{RESULTS}/features/{{dataset}}.bridge",
    log:
        f"{RESULTS}/logs/bridge/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/bridge/{{dataset}}.tsv"
    threads: 1
    resources:
        mem_mb=gigabytes(3),
        runtime=minutes(240),
    params:
        conf=lambda w: str(GRAPH.datasets[w.dataset].bridge),
        settings=GRAPH.all_settings(),
        code=lambda w: GRAPH.code(
            "bridge", *GRAPH.predictor_modules(base(w)), *GRAPH.feature_modules(base(w)), datasets=[base(w)]
        ),
    shell:
        "logged {log:q} perfcast pipeline bridge --table {input.table:q} --champion {input.champion:q} --out {output:q}"


# Derived columns by group, and which rows train and which test. Splits read the standard table: derived columns such as
# ages would make equal configurations look different.
rule features:
    input:
        table=rules.standardize.output.table,
        bridge=bridge,
    output:
        f"{RESULTS}/features/{{dataset}}.parquet",
    log:
        f"{RESULTS}/logs/features/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/features/{{dataset}}.tsv"
    resources:
        mem_mb=gigabytes(1),
        runtime=minutes(10),
    params:
        conf=lambda w: GRAPH.datasets[w.dataset].features,
        code=lambda w: GRAPH.code("features", *GRAPH.feature_modules(w.dataset)),
        bridge=lambda w, input: ["--bridge", input.bridge] if input.bridge else [],
    shell:
        "logged {log:q} perfcast pipeline features {wildcards.dataset:q} --table {input.table:q} {params.bridge:q} --out {output:q}"


rule split:
    input:
        rules.standardize.output.table,
    output:
        f"{RESULTS}/splits/{{dataset}}/{{split}}.parquet",
    log:
        f"{RESULTS}/logs/split/{{dataset}}/{{split}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/split/{{dataset}}/{{split}}.tsv"
    resources:
        mem_mb=gigabytes(1),
        runtime=minutes(10),
    params:
        code=lambda w: GRAPH.code("split", datasets=[w.dataset]),
        seed=PARAMS.split_seed,
        until=lambda w: GRAPH.until_option(w.dataset),
    shell:
        "logged {log:q} perfcast pipeline split {wildcards.split:q} --table {input:q} --out {output:q} --seed {params.seed:q} {params.until}"
