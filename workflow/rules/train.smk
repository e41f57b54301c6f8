# The files of a run.
RUN = {
    "predictions": f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/predictions.parquet",
    "backtest": f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/backtest.parquet",
    "inner": f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/validation.json",
    "config": f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/config.yaml",
    "history": f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/history.csv",
    "model": directory(f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/model"),
    "explanation": directory(f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/explanation"),
    "record": f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}/record.json",
}


# One job per dataset x split x predictor, with its folds and seeds inside; then the best predictor on all rows. How far
# machines are from the training data depends on the split alone.
rule train:
    input:
        table=rules.features.output[0],
        folds=rules.split.output[0],
    output:
        **RUN,
    log:
        f"{RESULTS}/logs/train/{{dataset}}/{{split}}/{{predictor}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/train/{{dataset}}/{{split}}/{{predictor}}.tsv"
    wildcard_constraints:
        split="(?!rolling_).*",
    threads: 1
    resources:
        mem_mb=gigabytes(3),
        runtime=lambda w, attempt: attempt * GRAPH.minutes_of_training(w.predictor),
    params:
        folder=subpath(output.predictions, parent=True),
        settings=lambda w: GRAPH.settings_of(w.dataset, w.split, w.predictor),
        code=lambda w: GRAPH.code("train", *GRAPH.modules_of(w.predictor), datasets=[w.dataset]),
        outlier=lambda w: GRAPH.datasets[w.dataset].label_outlier,
        preset=PARAMS.preset,
        backtest_windows=PARAMS.backtest_windows,
        seeds=lambda w: str(GRAPH.seeds_of(w.predictor)),
    shell:
        "logged {log:q} perfcast pipeline train dataset={wildcards.dataset:q} split={wildcards.split:q} predictor={wildcards.predictor:q} "
        "table={input.table:q} folds={input.folds:q} out={params.folder:q} preset={params.preset:q} "
        "backtest_windows={params.backtest_windows:q} seeds={params.seeds:q}"


# A rolling split trains nothing: it corrects the predictions of its forward split, month by month.
rule roll:
    input:
        table=rules.features.output[0],
        record=lambda w: f"{RESULTS}/runs/{w.dataset}/{frozen_split(w.split)}/{w.predictor}/record.json",
    output:
        **RUN,
    log:
        f"{RESULTS}/logs/roll/{{dataset}}/{{split}}/{{predictor}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/train/{{dataset}}/{{split}}/{{predictor}}.tsv"
    wildcard_constraints:
        split="rolling_.*",
    threads: 1
    resources:
        mem_mb=gigabytes(2),
        runtime=minutes(20),
    params:
        run=subpath(input.record, parent=True),
        folder=subpath(output.predictions, parent=True),
        code=lambda w: GRAPH.code("roll", datasets=[w.dataset]),
    shell:
        "logged {log:q} perfcast pipeline roll {wildcards.split:q} --run {params.run:q} --table {input.table:q} --out {params.folder:q}"


rule in_domain:
    input:
        table=rules.features.output[0],
        folds=rules.split.output[0],
    output:
        f"{RESULTS}/in_domain/{{dataset}}/{{split}}.parquet",
    log:
        f"{RESULTS}/logs/in_domain/{{dataset}}/{{split}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/in_domain/{{dataset}}/{{split}}.tsv"
    threads: 1
    resources:
        mem_mb=gigabytes(1),
        runtime=minutes(20),
    params:
        code=lambda w: GRAPH.code("in_domain", datasets=[w.dataset]),
        outlier=lambda w: GRAPH.datasets[w.dataset].label_outlier,
        backtest_windows=PARAMS.backtest_windows,
    shell:
        "logged {log:q} perfcast pipeline in-domain {wildcards.dataset:q} {wildcards.split:q} --table {input.table:q} --folds {input.folds:q} "
        "--backtest-windows {params.backtest_windows:q} --out {output:q}"


rule champion:
    input:
        table=rules.features.output[0],
        standard=rules.standardize.output.table,
        raw=manifests,
        inner=per_run("validation.json"),
    output:
        directory(f"{RESULTS}/champion/{{dataset}}"),
    log:
        f"{RESULTS}/logs/champion/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/champion/{{dataset}}.tsv"
    priority: 1
    threads: 1
    resources:
        mem_mb=gigabytes(3),
        runtime=minutes(240),
    params:
        runs=folder("runs"),
        raw=lambda w: f"{RESULTS}/raw",
        settings=GRAPH.all_settings(),
        code=lambda w: GRAPH.code("champion", *GRAPH.predictor_modules(w.dataset), datasets=[w.dataset]),
        preset=PARAMS.preset,
        seed=PARAMS.seeds[0],
        backtest_windows=PARAMS.backtest_windows,
        splits=lambda w: GRAPH.splits_of(w.dataset),
        predictors=lambda w: GRAPH.predictors_of(w.dataset),
    shell:
        "logged {log:q} perfcast pipeline champion {wildcards.dataset:q} --runs {params.runs:q} --table {input.table:q} "
        "--standard {input.standard:q} --raw {params.raw:q} --predictors {params.predictors:q} --splits {params.splits:q} "
        "--out {output:q} --preset {params.preset:q} --backtest-windows {params.backtest_windows:q} --seed {params.seed:q}"
