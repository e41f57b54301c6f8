"""Constructor parameters by scikit-learn's conventions, without its import, which costs a cold forecast a second."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from sklearn.utils import Tags


class Parameters:
    """What scikit-learn's `clone`, searches and pipelines ask of a regressor, answered by the constructor's signature.

    The constructor stores every argument under its own name and does nothing else.
    Source: scikit-learn's developer guide, "APIs of scikit-learn objects".
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name, sorted. No parameter is an estimator, so `deep` adds nothing."""
        return {name: getattr(self, name) for name in sorted(inspect.signature(type(self)).parameters)}

    def set_params(self, **parameters: Any) -> Self:
        """Set constructor arguments and return self. Raises: ValueError when there is no such argument."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}, only {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def __sklearn_tags__(self) -> Tags:
        """Return what scikit-learn wants to know of an estimator: this one is a regressor."""
        from sklearn.utils import RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            regressor_tags=RegressorTags(),
            transformer_tags=None,
            classifier_tags=None,
        )
