# The protocol's metrics from predictions alone, and plots of them.
from perfcast.report.plots.drawing import plot_modules, rst_captions


# Test machines of the champion's splits through the path of a user's description, level by level.
rule described:
    input:
        table=rules.features.output[0],
        standard=rules.standardize.output.table,
        raw=manifests,
        folds=per_split("splits"),
        inner=per_run("validation.json"),
        backtest=per_run("backtest.parquet"),
        models=per_run("model"),
        in_domain=per_split("in_domain"),
    output:
        f"{RESULTS}/described/{{dataset}}.parquet",
    log:
        f"{RESULTS}/logs/described/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/described/{{dataset}}.tsv"
    priority: 1
    threads: 1
    resources:
        mem_mb=gigabytes(3),
        runtime=minutes(60),
    params:
        runs=folder("runs"),
        raw=lambda w: f"{RESULTS}/raw",
        folds=folder("splits"),
        in_domain=folder("in_domain"),
        settings=GRAPH.all_settings(),
        code=lambda w: GRAPH.code("described", *GRAPH.predictor_modules(w.dataset), datasets=[w.dataset]),
        level=PARAMS.level,
        seed=PARAMS.split_seed,
        described=lambda w: GRAPH.described_splits_of(w.dataset),
        splits=lambda w: GRAPH.splits_of(w.dataset),
        predictors=lambda w: GRAPH.predictors_of(w.dataset),
    shell:
        "logged {log:q} perfcast pipeline described {wildcards.dataset:q} --described {params.described:q} --runs {params.runs:q} "
        "--table {input.table:q} --standard {input.standard:q} --raw {params.raw:q} --folds {params.folds:q} "
        "--in-domain {params.in_domain:q} --predictors {params.predictors:q} --splits {params.splits:q} "
        "--level {params.level:q} --seed {params.seed:q} --out {output:q}"


rule evaluate:
    input:
        leakage=rules.leakage.output[0],
        table=rules.features.output[0],
        runs=per_run("predictions.parquet"),
        backtest=per_run("backtest.parquet"),
        in_domain=per_split("in_domain"),
        described=described,
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
        described=lambda w, input: ["--described", input.described] if input.described else [],
        code=lambda w: GRAPH.code("evaluate", *GRAPH.table_modules(w.dataset), datasets=[w.dataset]),
        resamples=PARAMS.resamples,
        level=PARAMS.level,
        seed=PARAMS.split_seed,
        splits=lambda w: GRAPH.splits_of(w.dataset),
        predictors=lambda w: GRAPH.predictors_of(w.dataset),
        published=lambda w: [entry.model_dump() for entry in GRAPH.datasets[w.dataset].published],
        tables=lambda w: GRAPH.datasets[w.dataset].tables,
    shell:
        "logged {log:q} perfcast pipeline evaluate {wildcards.dataset:q} --table {input.table:q} --runs {params.runs:q} "
        "--in-domain {params.in_domain:q} --level {params.level:q} --splits {params.splits:q} --predictors {params.predictors:q} "
        "--resamples {params.resamples:q} --seed {params.seed:q} {params.described:q} --out {output:q}"


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
        code=lambda w: GRAPH.code("plots", *plot_modules(PARAMS.plots), datasets=[w.dataset]),
        plots=PARAMS.plots,
        labels=GRAPH.predictor_labels,
    shell:
        "logged {log:q} perfcast pipeline plots {wildcards.dataset:q} --evaluation {input.evaluation:q} --plots {params.plots:q} "
        "--out {output:q}"
