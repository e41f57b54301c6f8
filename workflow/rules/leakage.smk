# Leakage checks over the files of all stages: a leak stops the run before any error is reported.
rule leakage:
    input:
        table=rules.features.output[0],
        standard=rules.standardize.output.table,
        folds=per_split("splits"),
        predictions=per_run("predictions.parquet"),
        backtest=per_run("backtest.parquet"),
        configs=per_run("config.yaml"),
        models=per_run("model"),
    output:
        f"{RESULTS}/leakage/{{dataset}}.json",
    log:
        f"{RESULTS}/logs/leakage/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/leakage/{{dataset}}.tsv"
    threads: 1
    resources:
        mem_mb=gigabytes(2),
        runtime=minutes(60),
    params:
        folds=folder("splits"),
        runs=folder("runs"),
        control=LEAKAGE.model_dump(),
        conf=GRAPH.conf_digest("predictor", LEAKAGE.control),
        code=lambda w: GRAPH.code("leakage", *GRAPH.modules_of(LEAKAGE.control), datasets=[w.dataset]),
        seed=PARAMS.split_seed,
        splits=lambda w: GRAPH.splits_of(w.dataset),
        predictors=lambda w: GRAPH.predictors_of(w.dataset),
    shell:
        "logged {log:q} perfcast pipeline leakage {wildcards.dataset:q} --table {input.table:q} --standard {input.standard:q} "
        "--folds {params.folds:q} --runs {params.runs:q} --splits {params.splits:q} --predictors {params.predictors:q} "
        "--seed {params.seed:q} --out {output:q}"
