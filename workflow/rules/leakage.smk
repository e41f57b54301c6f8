# Leakage checks over the files of all stages: a leak stops the run before any error is reported.
rule leakage:
    input:
        table=rules.features.output[0],
        standard=rules.standardize.output.table,
        split_files=lambda w: GRAPH.split_files(w.dataset, "splits"),
        predictions=lambda w: GRAPH.run_files(w.dataset, "predictions.parquet"),
        backtest=lambda w: GRAPH.run_files(w.dataset, "backtest.parquet"),
        models=lambda w: GRAPH.run_files(w.dataset, "model"),
    output:
        out=f"{RESULTS}/leakage/{{dataset}}.json",
    log:
        f"{RESULTS}/logs/leakage/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/leakage/{{dataset}}.tsv"
    threads: 1
    resources:
        mem_mb=jobs.gigabytes(2),
        runtime=jobs.minutes(60),
    params:
        **arguments("leakage"),
        control=GRAPH.leakage.model_dump(),
        conf=GRAPH.conf_digest("predictor", GRAPH.leakage.control),
        code=lambda w: GRAPH.code("leakage", *GRAPH.modules_of(GRAPH.leakage.control), datasets=[w.dataset]),
    shell:
        RUN
