"""Write tuned values into a predictor's conf file; every byte outside its `tuned:` block stays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from perfcast.config import Tuned, read_predictor
from perfcast.errors import UserError
from perfcast.io import write_text

# the key and what follows it that is indented or empty: a comment at the left margin already belongs to the next key
_BLOCK = re.compile(r"^tuned:.*\n?(?:[ \t]+.*\n?|[ \t]*\n)*", re.MULTILINE)
_LINE_WIDTH = 120


def write_tuned(
    conf: Path, predictor: str, question: tuple[str, str], command: str, folds: Sequence[Mapping[str, Any]]
) -> None:
    """Set the tuned values of one (data set, split) in conf/predictor/<predictor>.yaml; other questions keep theirs.

    The block is the program's own: comments inside it are not kept. Raises: UserError when the file cannot be edited
    so that it reads back as meant.
    """
    path = conf / "predictor" / f"{predictor}.yaml"
    before = read_predictor(conf, predictor)
    dataset, split = question
    entry = Tuned(command=command, folds=[dict(values) for values in folds])
    of_dataset = {**before.tuned.get(dataset, {}), split: entry}
    tuned = {
        name: {key: of_split.model_dump() for key, of_split in sorted(splits.items())}
        for name, splits in sorted({**before.tuned, dataset: of_dataset}.items())
    }
    block = yaml.safe_dump({"tuned": tuned}, sort_keys=False, default_flow_style=None, width=_LINE_WIDTH)
    text = path.read_text(encoding="utf-8")
    if _BLOCK.search(text):
        edited = _BLOCK.sub(lambda _: block, text, count=1)
    else:
        edited = text + ("" if text.endswith("\n") else "\n") + block
    if _read(edited) != {**_read(text), "tuned": tuned}:
        raise UserError(
            f"`tuned:` in {path} must be a plain indented block, at the left margin",
            "it is written in another way",
            "remove it and run again with --write",
        )
    write_text(path, edited)


def _read(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
