"""Plan small training runs that narrow a prediction.

Of the runs that a budget of compute pays for, those are chosen that
narrow the interval of the large run most.

Examples:
    perfcast plan --dataset llm_ladder --params 32B --tokens 6T \\
      --task mmlu --budget 5e20 --results results/systems/scaling
    perfcast plan --dataset llm_overtraining --params 7B --tokens 1T \\
      --set training_set=rpj --task c4_val_loss --budget 1e20 --count 3
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from perfcast.cli import arguments, asking
from perfcast.utils.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    asking.add_machines(parser)
    arguments.add_shared(parser, "--task")
    parser.add_argument(
        "--budget",
        type=arguments.number(1e12, 1e30),
        required=True,
        metavar="FLOP",
        help="operations of all runs together, 6 x parameters x tokens each",
    )
    parser.add_argument("--count", type=arguments.whole(1, 50), default=5, metavar="N", help="most runs")
    asking.add_answer(parser)


def run(options: argparse.Namespace) -> int:
    """Plan, and print or write."""
    from perfcast.domains.scaling.run_plan import format_plan, plan_runs

    asking.check_out(options, ".csv", ".json")
    chosen = asking.read_options(options)
    champion = asking.read_champion(options)
    chosen = replace(chosen, tasks=asking.read_tasks(options, champion))
    entries = asking.read_entries(options, champion)
    if len(entries) != 1:
        raise UserError("the large run must be one", f"{options.machines} describes {len(entries)}", "keep one")
    measurements = asking.read_user_measurements(options, entries, champion)[0]
    limits = {"budget": options.budget, "count": options.count}
    plan = plan_runs(entries[0], champion, chosen, **limits, measurements=measurements)
    counted = f"{asking.count_words(len(plan.runs), 'run')} planned"
    return asking.finish(options, plan, format_plan, counted, level=chosen.level)
