"""One example per command, printed below its help."""

EXAMPLES = {
    "compare": "perfcast compare v1.0 results --fail-if-worse",
    "config": "perfcast config predictor=ridge split=random",
    "doctor": "perfcast doctor",
    "measure": "perfcast measure gemm --budget-minutes 5",
    "predict": "perfcast predict --processor 'AMD EPYC 9755' --chips 2 --memory '24 x 64 GB DDR5-6400'",
    "rank": "perfcast rank machines.csv",
    "reproduced": "perfcast reproduced HEAD",
    "serve": "perfcast serve --port 8000",
    "similar": "perfcast similar --processor 'AMD EPYC 9755'",
    "sources": "perfcast sources",
    "summary": "perfcast summary --results results",
    "tune": "perfcast tune spec_cpu2017 random ridge --table results/features/spec_cpu2017.parquet "
    "--folds results/splits/spec_cpu2017/random.parquet --out results/tuning",
    "ui": "perfcast ui --port 5000",
    "what_if": "perfcast what-if --this-machine --vary memory",
    "leakage": "perfcast pipeline leakage host_gemm --table features.parquet --standard standard.parquet --folds splits "
    "--runs runs --splits random --predictors ridge --out leakage check.json",
    "available": "perfcast pipeline available host_gemm --raw results/raw --out results/raw/available.json",
    "champion": "perfcast pipeline champion host_gemm --runs runs --table features.parquet --standard standard.parquet "
    "--raw results/raw --splits random --predictors ridge --out champion",
    "evaluate": "perfcast pipeline evaluate host_gemm --table features.parquet --runs runs --splits random "
    "--predictors ridge --out evaluation",
    "fake": "perfcast pipeline fake demo --rows 600",
    "features": "perfcast pipeline features host_gemm --table standard.parquet --out features.parquet",
    "plots": "perfcast pipeline plots host_gemm --evaluation evaluation --plots coverage --out plots",
    "ingest": "perfcast pipeline ingest host_gemm --out results/raw/host_gemm",
    "metrics": "perfcast pipeline metrics results/evaluation/host_gemm --out results/metrics.json",
    "report": "perfcast pipeline report --results results --out results/report.html",
    "split": "perfcast pipeline split random --table standard.parquet --out random.parquet",
    "standardize": "perfcast pipeline standardize host_gemm --raw results/raw --table standard.parquet "
    "--rejected rejected.csv --quality quality.json",
    "in_domain": "perfcast pipeline in-domain host_gemm random --table features.parquet --folds random.parquet "
    "--out support.parquet",
    "times": "perfcast pipeline times --results results",
    "train": "perfcast pipeline train host_gemm random ridge --table features.parquet --folds random.parquet --out run",
}
