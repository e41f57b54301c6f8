# The protocol's metrics from predictions alone, and plots of them.
from perfcast.report.plots.catalog import plot_modules, rst_captions


rule evaluate:
    input:
        leakage=rules.leakage.output[0],
        table=rules.features.output[0],
        runs=per_run("predictions.parquet"),
        backtest=per_run("backtest.parquet"),
        in_domain=per_split("in_domain"),
    output:
        directory(f"{RESULTS}/evaluation/{{dataset}}"),
    log:
        f"{RESULTS}/logs/evaluate/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/evaluate/{{dataset}}.tsv"
    resources:
        mem_mb=gigabytes(2),
        runtime=minutes(60),
    params:
        runs=folder("runs"),
        in_domain=folder("in_domain"),
        code=GRAPH.code("evaluate"),
        resamples=PARAMS.resamples,
        level=PARAMS.level,
        seed=PARAMS.split_seed,
        splits=lambda w: GRAPH.splits_of(w.dataset),
        predictors=lambda w: GRAPH.predictors_of(w.dataset),
        published=lambda w: [entry.model_dump() for entry in GRAPH.datasets[w.dataset].published],
    shell:
        "logged {log} perfcast pipeline evaluate {wildcards.dataset} --table {input.table} --runs {params.runs} "
        "--in-domain {params.in_domain} --level {params.level} --splits {params.splits} --predictors {params.predictors} "
        "--resamples {params.resamples} --seed {params.seed} --out {output}"


# Title and caption of each plot, where templates of captions in Snakemake's report can see them.
config["captions"] = rst_captions(PARAMS.plots)


rule plots:
    input:
        evaluation=rules.evaluate.output[0],
    output:
        report(
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
        mem_mb=gigabytes(1),
        runtime=minutes(20),
    params:
        code=GRAPH.code("plots", *plot_modules(PARAMS.plots)),
        plots=PARAMS.plots,
        labels=GRAPH.predictor_labels,
    shell:
        "logged {log} perfcast pipeline plots {wildcards.dataset} --evaluation {input.evaluation} --plots {params.plots} "
        "--out {output}"
