# What must hold before any error is believed, looked at anew in the files of all stages: a leak stops the run here.
from perfcast import plugins
from perfcast.cli.audit import read_audit

try:
    AUDIT = read_audit(CONF)
except UserError as error:
    print(f"perfcast: {error}", file=sys.stderr)
    raise SystemExit(2)


rule audit:
    input:
        table=f"{RESULTS}/features/{{dataset}}.parquet",
        standard=f"{RESULTS}/standard/{{dataset}}.parquet",
        folds=lambda w: expand(f"{RESULTS}/splits/{w.dataset}/{{split}}.parquet", split=splits_of(w.dataset)),
        runs=lambda w: expand(
            f"{RESULTS}/runs/{w.dataset}/{{split}}/{{predictor}}/{{part}}",
            split=splits_of(w.dataset),
            predictor=predictors_of(w.dataset),
            part=["predictions.parquet", "rehearsals.parquet", "config.yaml", "model"],
        ),
    output:
        f"{RESULTS}/audit/{{dataset}}.json",
    log:
        f"{RESULTS}/logs/audit/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/audit/{{dataset}}.tsv"
    threads: 1
    resources:
        mem_mb=gigabytes(2),
        runtime=minutes(60),
    params:
        control=AUDIT.model_dump(),
        conf=conf_digest("predictor", AUDIT.control),
        code=code(
            "audit",
            *[f"audit.{name}" for name in plugins.names("audit")],
            perfcast_config.read_predictor(CONF, AUDIT.control).module.removeprefix("perfcast."),
        ),
        resamples=PARAMS.resamples,
        seed=PARAMS.split_seed,
        splits=lambda w: splits_of(w.dataset),
        predictors=lambda w: predictors_of(w.dataset),
    shell:
        "{PERFCAST} audit {wildcards.dataset} --table {input.table} --standard {input.standard} "
        "--folds {RESULTS}/splits/{wildcards.dataset} --runs {RESULTS}/runs/{wildcards.dataset} "
        "--splits {params.splits} --predictors {params.predictors} --resamples {params.resamples} --seed {params.seed} "
        "--out {output} 2> >(tee {log} >&2)"
