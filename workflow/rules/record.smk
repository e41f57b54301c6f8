# Everything in MLflow, when all is done, or the finished trainings after a failure. A store that fails costs a line.
rule record:
    input:
        report=rules.report.output,
        champions=per_dataset("champion/{dataset}"),
    output:
        note=touch(f"{RESULTS}/logs/record.txt"),
    log:
        f"{RESULTS}/logs/record.log",
    benchmark:
        f"{RESULTS}/benchmarks/record.tsv"
    params:
        **arguments("record"),
        code=GRAPH.code("record"),
    shell:
        RUN


onerror:
    shell("perfcast pipeline record --trainings --results {RESULTS:q} --note {RESULTS:q}/logs/record_failed.txt")
