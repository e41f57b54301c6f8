# Everything in MLflow, when all is done, or the finished trainings after a failure. A store that fails costs a line.
rule record:
    input:
        report=rules.report.output,
        champions=per_dataset("champion/{dataset}"),
    output:
        # a pull of results makes it too, without the command
        touch(f"{RESULTS}/logs/record.txt"),
    log:
        f"{RESULTS}/logs/record.log",
    localrule: True
    params:
        results=lambda w: RESULTS,
        code=GRAPH.code("record"),
        experiment=PARAMS.model_dump_json(),
    shell:
        "logged {log} perfcast pipeline record --results {params.results} --experiment {params.experiment:q} --note {output}"


onerror:
    shell(f"perfcast pipeline record --trainings --results {RESULTS} --note {RESULTS}/logs/record_failed.txt")
