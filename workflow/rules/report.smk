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
        "{PERFCAST} metrics {input} --out {output} 2> >(tee {log} >&2)"


rule report:
    input:
        metrics=f"{RESULTS}/metrics.json",
        evaluations=evaluations,
        figures=figure_folders,
        champions=champions,
    output:
        report(
            f"{RESULTS}/report.html",
            caption="../report/report.rst",
            category="Report",
        ),
    log:
        f"{RESULTS}/logs/report.log",
    benchmark:
        f"{RESULTS}/benchmarks/report.tsv"
    params:
        code=code("report"),
        experiment=PARAMS.model_dump_json(),
    shell:
        "{PERFCAST} report --results {RESULTS} --experiment {params.experiment:q} --out {output} 2> >(tee {log} >&2)"
