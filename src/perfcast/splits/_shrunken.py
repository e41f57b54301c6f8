"""Forms of a question with less to learn from: the test rows stay, so that only the training differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perfcast.splits._audit import Audit, Make, Split


@dataclass(frozen=True)
class Shrunken:
    """Of which question a split is a form with less training, and how much is left.

    `share` is that of the training rows, where they are drawn; `years` are the last ones before the cut, where old ones
    are left out. Exactly one of the two is given. The question itself has a share of 1, and all years.
    """

    base: str
    share: float | None = None
    years: int | None = None

    def __post_init__(self) -> None:
        """Raises: ValueError when share and years are both given, or neither."""
        if (self.share is None) == (self.years is None):
            raise ValueError(f"a form of {self.base!r} with less training has a share or years, and not both")


def shrinks(
    base: Split, *audits: Audit, share: float | None = None, years: int | None = None
) -> Callable[[Make], Make]:
    """Declare a function to be a split with the test rows of `base` and a part of its training rows, the rest unused.

    Its folds pass the audits of `base` and the given ones. It is a point on a curve, no question: it counts neither
    when predictors are compared nor when one is chosen. What was tuned for `base` is used for it too.
    """

    def declare(make: Make) -> Make:
        form = Shrunken(base.__name__, share, years)
        vars(make).update(audits=(*vars(base)["audits"], *audits), question=False, shrunken=form)
        return make

    return declare
