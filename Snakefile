# The whole graph: raw results -> standard tables -> features and splits -> trainings -> evaluation -> report.
# DVC decides whether to run, Snakemake what. The library is in src/perfcast; a rule names files and parameters only.
#
# The environment of all rules is the project's own, requirements.lock: `docker build -t perfcast .` makes the image that has
# it. Snakemake runs inside of it, docs/cluster.md, so jobs need no container of their own.
container: "docker-daemon://perfcast:latest"


configfile: "params.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/ingest.smk"
include: "workflow/rules/standardize.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/leakage.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/record.smk"


# Every file between the raw sources and the evaluations: one that is missing is made again.
INTERMEDIATE = [
    str(path)
    for stage in (
        rules.ingest,
        rules.standardize,
        rules.features,
        rules.split,
        rules.in_domain,
        rules.train,
        rules.leakage,
        rules.evaluate,
    )
    for path in stage.output
]


# On a cluster these run where Snakemake runs: nodes often have no network, and a job of a second is not worth a queue.
localrules:
    all,
    ingest,
    available,
    metrics,
    headline,
    record,


rule all:
    default_target: True
    input:
        rules.report.output,
        rules.metrics.output,
        rules.headline.output,
        rules.record.output,
        per_dataset("champion/{dataset}"),
        per_dataset("plots/{dataset}"),
        lambda w: GRAPH.removed(available(), INTERMEDIATE),


onstart:
    try:
        planned = list(workflow.dag.needrun_jobs())
        read = {path for job in planned for path in job.input}
        made = {path for job in planned for path in job.output}
        jobs.start_run(GRAPH.results, read - made)
    except UserError as error:
        jobs.refuse(error, code=1)
    # for the time left and the first table, see src/snakemake_logger_plugin_perfcast
    titles = [" ".join([job.rule.name, *job.wildcards]) for job in planned]
    logger.info(f"{len(titles)} jobs are planned", extra={"planned": titles, "results": RESULTS})


onsuccess:
    jobs.print_record_note(GRAPH.results)
