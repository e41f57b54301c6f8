# The whole graph: raw results -> standard tables -> features and splits -> trainings -> evaluation -> report.
# DVC decides whether to run, Snakemake what. Library code is in src/perfcast; a rule only names files and parameters.
configfile: "params.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/ingest.smk"
include: "workflow/rules/standardize.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/report.smk"


# On a cluster these stay where Snakemake runs: nodes often have no network, and a job of a second is not worth a queue.
localrules:
    all,
    ingest,
    available,
    metrics,


rule all:
    default_target: True
    input:
        f"{RESULTS}/report.html",
        f"{RESULTS}/metrics.json",
        champions,
        removed,


onsuccess:
    shell("{PERFCAST} pipeline times --results {RESULTS} --since {STARTED}")
