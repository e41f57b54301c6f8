# Everything in MLflow, when all is done, or the finished trainings after a failure. A store that fails costs a line.
rule record:
    input:
        report=rules.report.output,
        champions=per_dataset("champion/{dataset}"),
    output:
        touch(f"{RESULTS}/logs/record.txt"),
    log:
        f"{RESULTS}/logs/record.log",
    params:
        results=lambda w: RESULTS,
        code=GRAPH.code("record"),
    shell:
        "logged {log:q} perfcast pipeline record --results {params.results:q} --note {output:q}"


onerror:
    shell("perfcast pipeline record --trainings --results {RESULTS:q} --note {RESULTS:q}/logs/record_failed.txt")
