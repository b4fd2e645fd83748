"""Parameters of estimators as dataclass fields."""

import inspect

import pytest
import spinney
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import InvalidParameterError, StrOptions, validate_parameter_constraints
from spinney._estimator.parameters import estimator, parameter


@estimator
class Base(BaseEstimator):
    depth: int | None = parameter(int, None, default=None, kw_only=False)
    kind: str = parameter(StrOptions({"a", "b"}), default="a")


@estimator
class Derived(Base):
    rate: float = parameter(float, default=0.5)
    kind: str = parameter(default="b")


def test_parameters_are_inherited_and_a_class_may_change_a_default():
    assert Base().get_params() == {"depth": None, "kind": "a"}
    assert Derived(3).get_params() == {"depth": 3, "kind": "b", "rate": 0.5}
    assert clone(Derived(3, rate=1.0)).get_params() == {"depth": 3, "kind": "b", "rate": 1.0}


def test_signatures_name_positions_first_and_then_the_class_itself():
    assert list(inspect.signature(Derived).parameters) == ["depth", "rate", "kind"]
    assert inspect.signature(Derived).parameters["rate"].kind is inspect.Parameter.KEYWORD_ONLY
    with pytest.raises(TypeError, match="positional"):
        Derived(3, 0.5)


def test_what_a_base_allows_holds_for_a_default_that_is_changed():
    with pytest.raises(InvalidParameterError, match="kind"):
        Derived(kind="c")._validate_params()
    with pytest.raises(InvalidParameterError, match="rate"):
        Derived(rate="c")._validate_params()
    Derived()._validate_params()


def test_a_default_is_allowed_so_that_it_needs_no_check():
    """`_validate_params` checks only parameters that are not their defaults."""
    found = [getattr(spinney, name) for name in spinney.__all__]
    for kind in [kind for kind in found if isinstance(kind, type) and hasattr(kind, "_parameter_constraints")]:
        for name, known in inspect.signature(kind).parameters.items():
            if known.default is not known.empty:
                assert getattr(kind, name) is known.default
                validate_parameter_constraints(kind._parameter_constraints, {name: known.default}, kind.__name__)


def test_estimators_are_not_compared_by_their_parameters():
    assert Base() != Base()
    assert repr(Derived(rate=1.0)) == "Derived(rate=1.0)"
