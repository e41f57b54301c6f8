# What people read: one table of metrics for DVC, pages of HTML for everybody.
rule metrics:
    input:
        available=rules.available.output[0],
        evaluations=per_dataset("evaluation/{dataset}"),
    output:
        out=f"{RESULTS}/metrics.json",
    log:
        f"{RESULTS}/logs/metrics.log",
    params:
        **arguments("metrics"),
        code=GRAPH.code("metrics"),
    shell:
        RUN


# The metrics that `dvc metrics` shows: few enough to read.
rule headline:
    input:
        metrics=rules.metrics.output[0],
        champions=per_dataset("champion/{dataset}"),
    output:
        out=directory(f"{RESULTS}/headline"),
    log:
        f"{RESULTS}/logs/headline.log",
    params:
        **arguments("headline"),
        code=GRAPH.code("headline"),
    shell:
        RUN


rule report:
    input:
        available=rules.available.output[0],
        metrics=rules.metrics.output[0],
        evaluations=per_dataset("evaluation/{dataset}"),
        plots=per_dataset("plots/{dataset}"),
        champions=per_dataset("champion/{dataset}"),
        tables=per_dataset("features/{dataset}.parquet"),
        standard=per_dataset("standard/{dataset}.parquet"),
        quality=per_dataset("standard/{dataset}.quality.json"),
        leakage=per_dataset("leakage/{dataset}.json"),
        splits=lambda w: [path for dataset in available() for path in GRAPH.split_files(dataset, "splits")],
    output:
        out=report(
            f"{RESULTS}/report.html",
            caption="../report/report.rst",
            category="Report",
        ),
        pages=directory(f"{RESULTS}/report"),
        cards=directory(f"{RESULTS}/model_cards"),
    log:
        f"{RESULTS}/logs/report.log",
    benchmark:
        f"{RESULTS}/benchmarks/report.tsv"
    resources:
        mem_mb=jobs.gigabytes(2),
        runtime=jobs.minutes(20),
    params:
        **arguments("report"),
        code=GRAPH.code("report"),
        labels=GRAPH.predictor_labels,
    shell:
        RUN
