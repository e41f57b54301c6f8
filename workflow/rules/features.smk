# Derived columns by group, and which rows train and which test. Splits look at the standard table: derived columns such
# as ages would make equal configurations look different.
rule features:
    input:
        f"{RESULTS}/standard/{{dataset}}.parquet",
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
        conf=lambda w: DATASETS[w.dataset].features,
        code=lambda w: code("features", *[f"features.{name}" for name in DATASETS[w.dataset].features]),
    shell:
        "{PERFCAST} pipeline features {wildcards.dataset} --table {input} --out {output} 2> >(tee {log} >&2)"


rule split:
    input:
        f"{RESULTS}/standard/{{dataset}}.parquet",
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
        code=code("split"),
        seed=PARAMS.split_seed,
    shell:
        "{PERFCAST} pipeline split {wildcards.split} --table {input} --out {output} --seed {params.seed} 2> >(tee {log} >&2)"
