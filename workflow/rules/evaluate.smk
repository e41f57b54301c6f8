# The protocol's metrics from predictions alone, and plots of them.
from perfcast.report.plots.catalog import plot_modules, rst_captions


rule evaluate:
    input:
        audit=rules.audit.output[0],
        table=rules.features.output[0],
        runs=per_run("predictions.parquet"),
        rehearsals=per_run("backtest.parquet"),
        support=per_split("support"),
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
        support=folder("support"),
        code=GRAPH.code("evaluate"),
        resamples=PARAMS.resamples,
        level=PARAMS.level,
        seed=PARAMS.split_seed,
        splits=lambda w: GRAPH.splits_of(w.dataset),
        predictors=lambda w: GRAPH.predictors_of(w.dataset),
        published=lambda w: [entry.model_dump() for entry in GRAPH.datasets[w.dataset].published],
    shell:
        "logged {log} perfcast pipeline evaluate {wildcards.dataset} --table {input.table} --runs {params.runs} "
        "--support {params.support} --level {params.level} --splits {params.splits} --predictors {params.predictors} "
        "--resamples {params.resamples} --seed {params.seed} --out {output}"


# Title and caption of each plot, where templates of captions in Snakemake's report can see them.
config["captions"] = rst_captions(PARAMS.figures)


rule figures:
    input:
        evaluation=rules.evaluate.output[0],
    output:
        report(
            directory(f"{RESULTS}/figures/{{dataset}}"),
            patterns=["{figure}.svg"],
            caption="../report/figure.rst",
            category="Figures",
            subcategory="{dataset}",
            labels=lambda w: {"figure": config["captions"][w.figure]["title"]},
        ),
    log:
        f"{RESULTS}/logs/figures/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/figures/{{dataset}}.tsv"
    resources:
        mem_mb=gigabytes(1),
        runtime=minutes(20),
    params:
        code=GRAPH.code("figures", *plot_modules(PARAMS.figures)),
        figures=PARAMS.figures,
    shell:
        "logged {log} perfcast pipeline figures {wildcards.dataset} --evaluation {input.evaluation} --figures {params.figures} "
        "--out {output}"
