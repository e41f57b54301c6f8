# The protocol's metrics from predictions alone, and plots of them.
from perfcast.report.plots.drawing import plot_modules, rst_captions


# Test machines of the champion's splits through the path of a user's description, level by level.
rule described:
    input:
        table=rules.features.output[0],
        standard=rules.standardize.output.table,
        manifests=lambda w: GRAPH.manifests(w.dataset),
        split_files=lambda w: GRAPH.split_files(w.dataset, "splits"),
        inner=lambda w: GRAPH.run_files(w.dataset, "validation.json"),
        backtest=lambda w: GRAPH.run_files(w.dataset, "backtest.parquet"),
        models=lambda w: GRAPH.run_files(w.dataset, "model"),
        distances=lambda w: GRAPH.split_files(w.dataset, "in_domain"),
    output:
        out=f"{RESULTS}/described/{{dataset}}.parquet",
    log:
        f"{RESULTS}/logs/described/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/described/{{dataset}}.tsv"
    priority: 1
    threads: 1
    resources:
        mem_mb=jobs.gigabytes(3),
        runtime=jobs.minutes(60),
    params:
        **arguments("described"),
        settings=GRAPH.all_settings(),
        code=lambda w: GRAPH.code("described", *GRAPH.predictor_modules(w.dataset), datasets=[w.dataset]),
    shell:
        RUN


rule evaluate:
    input:
        leakage=rules.leakage.output[0],
        table=rules.features.output[0],
        predictions=lambda w: GRAPH.run_files(w.dataset, "predictions.parquet"),
        backtest=lambda w: GRAPH.run_files(w.dataset, "backtest.parquet"),
        distances=lambda w: GRAPH.split_files(w.dataset, "in_domain"),
        described=lambda w: GRAPH.described_file(w.dataset),
    output:
        out=directory(f"{RESULTS}/evaluation/{{dataset}}"),
    log:
        f"{RESULTS}/logs/evaluate/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/evaluate/{{dataset}}.tsv"
    resources:
        mem_mb=jobs.gigabytes(2),
        runtime=jobs.minutes(60),
    params:
        **arguments("evaluate"),
        code=lambda w: GRAPH.code("evaluate", *GRAPH.table_modules(w.dataset), datasets=[w.dataset]),
        tables=lambda w: GRAPH.datasets[w.dataset].tables,
    shell:
        RUN


# Title and caption of each plot, where templates of captions in Snakemake's report can see them.
config["captions"] = rst_captions(PARAMS.plots)


rule plots:
    input:
        evaluation=rules.evaluate.output[0],
    output:
        out=report(
            directory(f"{RESULTS}/plots/{{dataset}}"),
            patterns=["{plot}.svg"],
            caption="../report/plot.rst",
            category="Plots",
            subcategory="{dataset}",
            labels=lambda w: {"plot": config["captions"][w.plot]["title"]},
        ),
    log:
        f"{RESULTS}/logs/plots/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/plots/{{dataset}}.tsv"
    resources:
        mem_mb=jobs.gigabytes(1),
        runtime=jobs.minutes(20),
    params:
        **arguments("plots"),
        code=lambda w: GRAPH.code("plots", *plot_modules(PARAMS.plots), datasets=[w.dataset]),
        labels=GRAPH.predictor_labels,
    shell:
        RUN
