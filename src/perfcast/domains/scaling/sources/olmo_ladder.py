"""OLMo's ladder: one CSV file per training run with its evaluations, and files of the two models it predicts."""

from __future__ import annotations

SIZES = ("190M", "370M", "760M", "1B", "3B")
MULTIPLIERS = ("0.5", "1", "2", "5", "10")
"""Tokens over 20 tokens per parameter, as in the file names."""
REPEATED = "1"
"""Multiplier of the runs that were trained twice."""
TARGETS = {"7B": "peteish7_eval_anneal.csv", "13B": "peteish13_eval_final.csv"}
"""Model size -> file of the model that the authors predict."""

STEP = "_step"
TOKENS = "throughput/total_tokens"
BATCH = "batch_size_in_tokens"
PEAK_RATE = "learning_rate_peak"
_VALIDATION_SETS = (
    "c4_en",
    "dolma_books",
    "dolma_common-crawl",
    "dolma_pes2o",
    "dolma_reddit",
    "dolma_stack",
    "dolma_wiki",
    "ice",
    "m2d2_s2orc",
    "pile",
    "wikitext_103",
)
LOSSES = {name: f"eval/{name}-validation/CrossEntropyLoss" for name in _VALIDATION_SETS}
"""Validation set -> column of its loss."""
MMLU = ("stem", "humanities", "social_sciences", "other")
QUESTIONS = {
    "mmlu": tuple(f"mmlu_{part}_test" for part in MMLU),
    "hellaswag": ("hellaswag_val",),
    "arc_challenge": ("arc_challenge_test",),
    "arc_easy": ("arc_easy_test",),
    "piqa": ("piqa_val",),
    "csqa": ("csqa_val",),
    "socialiqa": ("socialiqa_val",),
    "openbookqa": ("openbookqa_test",),
}
"""Task -> its parts, whose mean is the task's result."""


def bpb_column(part: str) -> str:
    """Return the column of the bits per byte of the correct answers."""
    return f"eval/downstream_bpb/{part}_rc_5shot_bpb"


def accuracy_column(part: str) -> str:
    """Return the column of the share of correct answers."""
    return f"eval/downstream/{part}_rc_5shot_len_norm"


def list_runs() -> dict[tuple[str, str, int], str]:
    """Return the file of every run in the source's folder by size, multiplier and repetition."""
    runs = {}
    for size in SIZES:
        for times in MULTIPLIERS:
            runs[size, times, 0] = f"{size}-{times}xC.csv"
    for size in SIZES:
        runs[size, REPEATED, 1] = f"{size}-{REPEATED}xC-rerun.csv"
    return runs


def result_columns() -> list[str]:
    """Return the columns of all results that a file must have."""
    parts = [part for names in QUESTIONS.values() for part in names]
    return [
        *LOSSES.values(),
        *map(bpb_column, parts),
        *map(accuracy_column, parts),
    ]


def progress_columns(size: str) -> list[str]:
    """Return the columns that tell how far a run is: the file of a target has one of step and tokens only."""
    return {"7B": [TOKENS], "13B": [STEP]}.get(size, [STEP, TOKENS])
