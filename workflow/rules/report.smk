# What people read: one table of metrics for DVC, pages of HTML for everybody.
rule metrics:
    input:
        available=rules.available.output[0],
        evaluations=per_dataset("evaluation/{dataset}"),
    output:
        f"{RESULTS}/metrics.json",
    log:
        f"{RESULTS}/logs/metrics.log",
    params:
        code=GRAPH.code("metrics"),
    shell:
        "logged {log:q} perfcast pipeline metrics {input.evaluations:q} --out {output:q}"


# The metrics that `dvc metrics` shows: few enough to read.
rule headline:
    input:
        metrics=rules.metrics.output[0],
        champions=per_dataset("champion/{dataset}"),
    output:
        directory(f"{RESULTS}/headline"),
    log:
        f"{RESULTS}/logs/headline.log",
    params:
        code=GRAPH.code("headline"),
        baselines=GRAPH.baselines,
    shell:
        "logged {log:q} perfcast pipeline headline {input.champions:q} --metrics {input.metrics:q} "
        "--baselines {params.baselines:q} --out {output:q}"


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
        splits=lambda w: [
            f"{RESULTS}/splits/{dataset}/{split}.parquet"
            for dataset in available()
            for split in GRAPH.splits_of(dataset)
        ],
    output:
        html=report(
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
        mem_mb=gigabytes(2),
        runtime=minutes(20),
    params:
        results=lambda w: RESULTS,
        code=GRAPH.code("report"),
        experiment=PARAMS.model_dump_json(),
        labels=GRAPH.predictor_labels,
    shell:
        "logged {log:q} perfcast pipeline report --results {params.results:q} --experiment {params.experiment:q} "
        "--out {output.html:q} --cards {output.cards:q}"
