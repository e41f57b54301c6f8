# One job per data set x split x predictor, its folds and seeds inside; then the best one on all rows. How far machines are
# from what was seen depends on the split alone.
from perfcast.splits import shrunken


def settings_of(wildcards):
    """What a job's folds use: their tuned values where the question is tuned, else what each chooses among."""
    conf = PREDICTORS[wildcards.predictor]
    form = shrunken(wildcards.split)
    asked = [wildcards.split, *([form.base] if form else [])]
    tuned = conf.tuned_settings(PARAMS.schedule, wildcards.dataset, *asked)
    return tuned or conf.settings(PARAMS.schedule), conf.without_columns


def minutes_of_training(wildcards, attempt):
    """Half an hour in the quick schedule, an hour and more for every seed in the full one."""
    return attempt * (90 * len(seeds_of(wildcards.predictor)) if PARAMS.schedule == "full" else 30)


rule train:
    input:
        table=f"{RESULTS}/features/{{dataset}}.parquet",
        folds=f"{RESULTS}/splits/{{dataset}}/{{split}}.parquet",
    output:
        predictions=f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/predictions.parquet",
        rehearsals=f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/rehearsals.parquet",
        inner=f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/inner.json",
        config=f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/config.yaml",
        history=f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/history.csv",
        model=directory(f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/model"),
        explanation=directory(f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/explanation"),
    log:
        f"{RESULTS}/logs/train/{{dataset}}/{{split}}/{{predictor}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/train/{{dataset}}/{{split}}/{{predictor}}.tsv"
    threads: 1
    resources:
        mem_mb=gigabytes(3),
        runtime=minutes_of_training,
    params:
        settings=settings_of,
        code=lambda w: code("train", f"predictors.{PREDICTORS[w.predictor].module}"),
        outlier=lambda w: DATASETS[w.dataset].label_outlier,
        schedule=PARAMS.schedule,
        rehearsals=PARAMS.rehearsals,
        seeds=lambda w: " ".join(map(str, seeds_of(w.predictor))),
    shell:
        "{PERFCAST} train {wildcards.dataset} {wildcards.split} {wildcards.predictor} --table {input.table} "
        "--folds {input.folds} --out $(dirname {output.predictions}) --schedule {params.schedule} "
        "--rehearsals {params.rehearsals} --seeds {params.seeds} 2> >(tee {log} >&2)"


rule support:
    input:
        table=f"{RESULTS}/features/{{dataset}}.parquet",
        folds=f"{RESULTS}/splits/{{dataset}}/{{split}}.parquet",
    output:
        f"{RESULTS}/support/{{dataset}}/{{split}}.parquet",
    log:
        f"{RESULTS}/logs/support/{{dataset}}/{{split}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/support/{{dataset}}/{{split}}.tsv"
    threads: 1
    resources:
        mem_mb=gigabytes(1),
        runtime=minutes(20),
    params:
        code=code("support"),
        outlier=lambda w: DATASETS[w.dataset].label_outlier,
        rehearsals=PARAMS.rehearsals,
    shell:
        "{PERFCAST} support {wildcards.dataset} {wildcards.split} --table {input.table} --folds {input.folds} "
        "--rehearsals {params.rehearsals} --out {output} 2> >(tee {log} >&2)"


rule champion:
    input:
        table=f"{RESULTS}/features/{{dataset}}.parquet",
        standard=f"{RESULTS}/standard/{{dataset}}.parquet",
        raw=lambda w: [
            f"{RESULTS}/raw/{source}/manifest.json"
            for source in (*DATASETS[w.dataset].sources.required, *DATASETS[w.dataset].sources.optional)
        ],
        inner=lambda w: expand(
            f"{RESULTS}/runs/{w.dataset}/{{split}}/{{predictor}}/inner.json",
            split=splits_of(w.dataset),
            predictor=predictors_of(w.dataset),
        ),
    output:
        directory(f"{RESULTS}/champion/{{dataset}}"),
    log:
        f"{RESULTS}/logs/champion/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/champion/{{dataset}}.tsv"
    threads: 1
    resources:
        mem_mb=gigabytes(3),
        runtime=minutes(240),
    params:
        settings=lambda w: {name: conf.settings(PARAMS.schedule) for name, conf in PREDICTORS.items()},
        code=lambda w: code(
            "champion",
            *[f"predictors.{conf.module}" for conf in PREDICTORS.values()],
            *[f"inference.imputation.{name}" for name in plugins.names("inference.imputation") if name == w.dataset],
        ),
        schedule=PARAMS.schedule,
        seed=PARAMS.seeds[0],
        rehearsals=PARAMS.rehearsals,
        splits=lambda w: splits_of(w.dataset),
        predictors=lambda w: predictors_of(w.dataset),
    shell:
        "{PERFCAST} champion {wildcards.dataset} --runs {RESULTS}/runs/{wildcards.dataset} --table {input.table} "
        "--standard {input.standard} --raw {RESULTS}/raw "
        "--predictors {params.predictors} --splits {params.splits} "
        "--out {output} --schedule {params.schedule} --rehearsals {params.rehearsals} --seed {params.seed} "
        "2> >(tee {log} >&2)"


def champions(wildcards):
    """The champion of every data set that could be built."""
    return expand(f"{RESULTS}/champion/{{dataset}}", dataset=available())
