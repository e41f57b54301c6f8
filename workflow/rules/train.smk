# The files of a run.
FOLDER = f"{RESULTS}/runs/{{dataset}}/{{split}}/{{predictor}}"
FILES = {
    "predictions": f"{FOLDER}/predictions.parquet",
    "backtest": f"{FOLDER}/backtest.parquet",
    "inner": f"{FOLDER}/validation.json",
    "config": f"{FOLDER}/config.yaml",
    "history": f"{FOLDER}/history.csv",
    "model": directory(f"{FOLDER}/model"),
    "explanation": directory(f"{FOLDER}/explanation"),
    "record": f"{FOLDER}/record.json",
}


# One job per dataset x split x predictor, with its folds and seeds inside; then the best predictor on all rows. How far
# machines are from the training data depends on the split alone.
rule train:
    input:
        table=rules.features.output[0],
        folds=rules.split.output[0],
    output:
        **FILES,
    log:
        f"{RESULTS}/logs/train/{{dataset}}/{{split}}/{{predictor}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/train/{{dataset}}/{{split}}/{{predictor}}.tsv"
    wildcard_constraints:
        split="(?!rolling_).*",
    threads: 1
    resources:
        mem_mb=jobs.gigabytes(3),
        runtime=lambda w, attempt: attempt * GRAPH.minutes_of_training(w.predictor),
    params:
        **arguments(
            "train",
            overrides=lambda w: GRAPH.training(w.dataset, w.split, w.predictor),
        ),
        settings=lambda w: GRAPH.settings_of(w.dataset, w.split, w.predictor),
        code=lambda w: GRAPH.code("train", *GRAPH.modules_of(w.predictor), datasets=[w.dataset]),
        outlier=lambda w: GRAPH.datasets[w.dataset].label_outlier,
    shell:
        RUN


# A rolling split trains nothing: it corrects the predictions of its forward split, month by month.
rule roll:
    input:
        table=rules.features.output[0],
        record=lambda w: GRAPH.frozen_run(w.dataset, w.split, w.predictor) / "record.json",
    output:
        **FILES,
    log:
        f"{RESULTS}/logs/roll/{{dataset}}/{{split}}/{{predictor}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/train/{{dataset}}/{{split}}/{{predictor}}.tsv"
    wildcard_constraints:
        split="rolling_.*",
    threads: 1
    resources:
        mem_mb=jobs.gigabytes(2),
        runtime=jobs.minutes(20),
    params:
        **arguments(
            "roll",
            run=lambda w: GRAPH.frozen_run(w.dataset, w.split, w.predictor),
            out=lambda w: GRAPH.run_folder(w.dataset, w.split, w.predictor),
        ),
        code=lambda w: GRAPH.code("roll", datasets=[w.dataset]),
    shell:
        RUN


rule in_domain:
    input:
        table=rules.features.output[0],
        folds=rules.split.output[0],
    output:
        out=f"{RESULTS}/in_domain/{{dataset}}/{{split}}.parquet",
    log:
        f"{RESULTS}/logs/in_domain/{{dataset}}/{{split}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/in_domain/{{dataset}}/{{split}}.tsv"
    threads: 1
    resources:
        mem_mb=jobs.gigabytes(1),
        runtime=jobs.minutes(20),
    params:
        **arguments("in_domain"),
        code=lambda w: GRAPH.code("in_domain", datasets=[w.dataset]),
        outlier=lambda w: GRAPH.datasets[w.dataset].label_outlier,
    shell:
        RUN


rule champion:
    input:
        table=rules.features.output[0],
        standard=rules.standardize.output.table,
        manifests=lambda w: GRAPH.manifests(w.dataset),
        inner=lambda w: GRAPH.run_files(w.dataset, "validation.json"),
    output:
        out=directory(f"{RESULTS}/champion/{{dataset}}"),
    log:
        f"{RESULTS}/logs/champion/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/champion/{{dataset}}.tsv"
    priority: 1
    threads: 1
    resources:
        mem_mb=jobs.gigabytes(3),
        runtime=jobs.minutes(240),
    params:
        **arguments("champion", seed=PARAMS.seeds[0]),
        settings=GRAPH.all_settings(),
        code=lambda w: GRAPH.code("champion", *GRAPH.predictor_modules(w.dataset), datasets=[w.dataset]),
    shell:
        RUN
