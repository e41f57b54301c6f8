# The protocol's metrics from predictions alone, and figures of them.
from perfcast.figures._captions import captions


rule evaluate:
    input:
        audit=f"{RESULTS}/audit/{{dataset}}.json",
        table=f"{RESULTS}/features/{{dataset}}.parquet",
        runs=lambda w: expand(
            f"{RESULTS}/runs/{w.dataset}/{{split}}/{{predictor}}/predictions.parquet",
            split=splits_of(w.dataset),
            predictor=predictors_of(w.dataset),
        ),
        rehearsals=lambda w: expand(
            f"{RESULTS}/runs/{w.dataset}/{{split}}/{{predictor}}/rehearsals.parquet",
            split=splits_of(w.dataset),
            predictor=predictors_of(w.dataset),
        ),
        support=lambda w: expand(f"{RESULTS}/support/{w.dataset}/{{split}}.parquet", split=splits_of(w.dataset)),
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
        code=code("evaluate"),
        resamples=PARAMS.resamples,
        level=PARAMS.level,
        seed=PARAMS.split_seed,
        splits=lambda w: splits_of(w.dataset),
        predictors=lambda w: predictors_of(w.dataset),
        published=lambda w: [one.model_dump() for one in DATASETS[w.dataset].published],
    shell:
        "{PERFCAST} pipeline evaluate {wildcards.dataset} --table {input.table} --runs {RESULTS}/runs/{wildcards.dataset} "
        "--support {RESULTS}/support/{wildcards.dataset} --level {params.level} "
        "--splits {params.splits} --predictors {params.predictors} --resamples {params.resamples} --seed {params.seed} "
        "--out {output} 2> >(tee {log} >&2)"


# Each figure's own title and caption, where templates of captions in Snakemake's report can see them.
config["captions"] = captions(PARAMS.figures)


rule figures:
    input:
        evaluation=f"{RESULTS}/evaluation/{{dataset}}",
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
        code=code("figures", *[f"figures.{name}" for name in PARAMS.figures]),
        figures=PARAMS.figures,
    shell:
        "{PERFCAST} pipeline figures {wildcards.dataset} --evaluation {input.evaluation} --figures {params.figures} "
        "--out {output} 2> >(tee {log} >&2)"
