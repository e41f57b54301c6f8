"""CPU models of a table of facts that a champion answers by name and number of chips alone.

Run: python benchmarks/known_cpu_models.py CHAMPION FACTS_CSV
FACTS_CSV has the columns part_key and sockets_max. Models are asked about with 2 chips, or 1 where it is the most.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from pathlib import Path

from perfcast.inference import load_champion, parse_machines, predict_machines, read_machines
from perfcast.inference.predict import PredictOptions
from perfcast.utils.errors import UserError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("champion", type=Path)
    parser.add_argument("facts", type=Path)
    options = parser.parse_args()
    champion = load_champion(options.champion)
    with options.facts.open(encoding="utf-8", newline="") as file:
        models = {row["part_key"]: 1 if row["sockets_max"] == "1" else 2 for row in csv.DictReader(file)}
    kinds: Counter[str] = Counter()
    for name, chips in models.items():
        kinds[_ask(name, chips, champion)] += 1
    for kind, count in kinds.most_common():
        print(f"{count:5} of {len(models)} {kind}")


def _ask(name: str, chips: int, champion: object) -> str:
    """Return the outcome of one question."""
    try:
        machines = parse_machines(read_machines({"processor": name, "chips": chips}), champion)
        answer = predict_machines(machines, champion, PredictOptions(neighbors=0, explain=False))
    except UserError as error:
        return f"refused: {error.requirement}"
    known = machines.frame["cpu_model"].iloc[0]
    if champion.entity_names.find(name).key is None:
        return "answered by the family of the name"
    same = known == champion.entity_names.find(name).key and answer.machines
    exact = champion.entity_names.find(name).exact
    return "answered by name" if same and exact else f"read as another spelling, such as {known} for {name}"


if __name__ == "__main__":
    main()
