# What people read: one table of metrics for DVC, one HTML file for everybody.
def evaluations(wildcards):
    """The evaluation of every data set that could be built."""
    return expand(f"{RESULTS}/evaluation/{{dataset}}", dataset=available())


def figure_folders(wildcards):
    """The figures of every data set that could be built."""
    return expand(f"{RESULTS}/figures/{{dataset}}", dataset=available())


rule metrics:
    input:
        evaluations,
    output:
        f"{RESULTS}/metrics.json",
    log:
        f"{RESULTS}/logs/metrics.log",
    params:
        code=code("metrics"),
    shell:
        "{PERFCAST} pipeline metrics {input} --out {output} 2> >(tee {log} >&2)"


rule report:
    input:
        metrics=f"{RESULTS}/metrics.json",
        evaluations=evaluations,
        figures=figure_folders,
        champions=champions,
        tables=lambda w: expand(f"{RESULTS}/features/{{dataset}}.parquet", dataset=available()),
        splits=lambda w: [
            f"{RESULTS}/splits/{dataset}/{split}.parquet" for dataset in available() for split in splits_of(dataset)
        ],
    output:
        html=report(
            f"{RESULTS}/report.html",
            caption="../report/report.rst",
            category="Report",
        ),
        cards=directory(f"{RESULTS}/model_cards"),
    log:
        f"{RESULTS}/logs/report.log",
    benchmark:
        f"{RESULTS}/benchmarks/report.tsv"
    resources:
        mem_mb=gigabytes(2),
        runtime=minutes(20),
    params:
        code=code("report"),
        experiment=PARAMS.model_dump_json(),
    shell:
        "{PERFCAST} pipeline report --results {RESULTS} --experiment {params.experiment:q} --out {output.html} "
        "--cards {output.cards} 2> >(tee {log} >&2)"


def removed(wildcards):
    """What a run made and somebody removed: asked for the last results alone, Snakemake would not miss it."""
    from snakemake.io import IOFile, strip_wildcard_constraints

    names = []
    for dataset in available():
        known = dict(
            source=PARAMS.sources,
            dataset=dataset,
            split=splits_of(dataset),
            predictor=predictors_of(dataset),
        )
        for rule in workflow.rules:
            names += [
                name for output in rule.output for name in expand(strip_wildcard_constraints(str(output)), **known)
            ]
    return [
        name for name in dict.fromkeys(names) if not Path(name).exists() and workflow.persistence.metadata(IOFile(name))
    ]
