"""The base of option objects: small immutable values that group rare parameters of an estimator."""

from __future__ import annotations

from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any


@dataclass(frozen=True, repr=False)
class Options:
    """A group of parameters. Subclasses are frozen dataclasses, which a model file holds by the name of the class."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name, as scikit-learn asks for them.

        Parameters
        ----------
        deep : bool, default=True
            Accepted for scikit-learn; options hold no others.

        Returns
        -------
        dict
            Values by name.
        """
        return {option.name: getattr(self, option.name) for option in fields(self)}

    @classmethod
    def check_names(cls, names: set[str], parameter: str) -> None:
        """Refuse names of options that do not exist, naming the nearest that does."""
        known = [option.name for option in fields(cls)]
        for name in sorted(names - set(known)):
            nearest = get_close_matches(name, known, n=1)
            hint = f"Did you mean '{nearest[0]}'?" if nearest else f"It has {', '.join(known)}."
            raise ValueError(f"{parameter} ({cls.__name__}) has no option '{name}'. {hint}")

    def __repr__(self) -> str:
        given = {option.name: repr(getattr(self, option.name)) for option in fields(self)}
        default = {option.name: repr(option.default) for option in fields(self)}
        changed = [f"{name}={value}" for name, value in given.items() if value != default[name]]
        return f"{type(self).__name__}({', '.join(changed)})"
