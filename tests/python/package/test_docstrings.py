"""Docstrings are complete when they are read: texts of one table, defaults of the signatures, the same for editors."""

import ast
import inspect
import itertools
import runpy
import tomllib
from pathlib import Path

import make_public_stub
import pytest
import spinney
from sklearn.base import BaseEstimator
from spinney._estimator.docstrings import ParameterTexts, parameter_texts

OWN = """A tree.

It grows.

Notes
-----
None."""

TEXTS = """
[classes.Tree]
families = ["trees", "plants"]
attributes = ["tree_", "depth_"]

[parameters.depth]
type = "int"
text = "Most splits."

[parameters.rate]
type = "float"

[parameters.rate.trees]
text = '''
A text that is long enough to be wrapped: it goes on and on, well beyond the width of a line, until the wrapping is seen
in the docstring.'''

[parameters.kind]
text = "Which kind."

[parameters.kind.Tree]
type = '{"a", "b"} or None'

[attributes.tree_]
type = "ndarray"
text = "The tree."

[attributes.depth_]
type = "int"
text = "Its depth."
"""

COMPLETE = """A tree.

It grows.

Parameters
----------
depth : int, optional
    Most splits.
rate : float, default=1e-7
    A text that is long enough to be wrapped: it goes on and on, well beyond the width of a line, until the wrapping
    is seen in the docstring.
kind : {"a", "b"} or None, default="a"
    Which kind.

Attributes
----------
tree_ : ndarray
    The tree.
depth_ : int
    Its depth.

Notes
-----
None."""

DEFAULTS = {"depth": None, "rate": 1e-7, "kind": "a"}


def texts(addition="", old="", new=""):
    return ParameterTexts(tomllib.loads((TEXTS + addition).replace(old, new) if old else TEXTS + addition))


def test_sections_are_put_before_those_of_the_class():
    assert texts().docstring("Tree", OWN, DEFAULTS) == COMPLETE


def test_a_docstring_without_sections_is_followed_by_them():
    found = texts().docstring("Tree", "A tree.", DEFAULTS)
    assert found.startswith("A tree.\n\nParameters\n")
    assert found.endswith("Its depth.\n")


def test_a_required_parameter_has_no_default():
    found = texts().docstring("Tree", OWN, DEFAULTS | {"depth": inspect.Parameter.empty})
    assert "depth : int\n" in found


def test_a_parameter_without_a_text_is_named():
    with pytest.raises(KeyError, match="Tree: the table of texts has no type for 'width' in parameters"):
        texts().docstring("Tree", OWN, DEFAULTS | {"width": 1})


def test_an_attribute_without_a_text_is_named():
    some = texts(old='["tree_", "depth_"]', new='["tree_", "leaves_"]')
    with pytest.raises(KeyError, match="no type for 'leaves_' in attributes"):
        some.docstring("Tree", OWN, DEFAULTS)


@pytest.mark.parametrize(
    ("addition", "place"),
    [
        ('[parameters.width]\ntype = "int"\ntext = "Wide."', ["parameters.width.type", "parameters.width.text"]),
        ('[parameters.depth.forests]\ntext = "Deep."', ["parameters.depth.forests.text"]),  # a family without classes
        ('[parameters.rate.plants]\ntext = "Fast."', ["parameters.rate.plants.text"]),  # the nearer family wins
        ('[attributes.leaves_]\ntext = "Leaves."', ["attributes.leaves_.text"]),
        ('[parameters.depth.Tree]\ntxt = "Deep."', ["parameters.depth.Tree.txt"]),  # misspelt
    ],
)
def test_a_text_that_no_class_uses_is_named(addition, place):
    some = texts("\n" + addition + "\n")
    some.docstring("Tree", OWN, DEFAULTS)
    assert list(some.unused()) == place


def test_every_text_of_this_package_is_used():
    table = parameter_texts()
    for name in table.tables["classes"]:
        docstring = getattr(spinney, name).__doc__
        assert "\nParameters\n----------\n" in docstring
        assert "\nAttributes\n----------\n" in docstring
    assert list(table.unused()) == []


def test_the_table_holds_every_public_estimator():
    kinds = {name: getattr(spinney, name) for name in spinney.__all__}
    assert set(parameter_texts().tables["classes"]) == {
        name for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, BaseEstimator)
    }


def test_every_parameter_is_in_a_group():
    groups_of = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "conf.py"))["groups_of"]
    shown = {}
    for name in parameter_texts().tables["classes"]:
        parameters = list(inspect.signature(getattr(spinney, name)).parameters)
        shown[name] = groups_of(name, parameters)
        assert sorted(itertools.chain(*shown[name].values())) == sorted(parameters)
    for heading, entries in parameter_texts().tables["groups"].items():
        for entry in entries:
            name, _, family = entry.partition(".")
            classes = [
                kind for kind in shown if family in ("", kind, *parameter_texts().tables["classes"][kind]["families"])
            ]
            assert any(name in shown[kind].get(heading, []) for kind in classes), f"no class uses {entry} of {heading}"
    assert "scoring" in shown["GradientBoostingClassifier"]["Early stopping"]  # a family's entry before the general one
    assert "scoring" in shown["DecisionTreeClassifier"]["Pruning"]


def test_a_class_of_the_same_name_elsewhere_keeps_its_docstring():
    kind = type("SVC", (spinney.SVC,), {"__doc__": "Mine.", "__module__": "elsewhere"})
    assert kind.__doc__ == "Mine."


@pytest.mark.slow
def test_editors_see_what_help_shows(tmp_path):
    stub = tmp_path / "__init__.pyi"
    assert make_public_stub.main([str(stub)]) == 0
    syntax = ast.parse(stub.read_text(encoding="utf-8"))
    classes = {node.name: ast.get_docstring(node) for node in syntax.body if isinstance(node, ast.ClassDef)}
    assert classes == {name: inspect.getdoc(getattr(spinney, name)) for name in parameter_texts().tables["classes"]}
    imported = {alias.asname for node in syntax.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert {*imported, *classes} >= set(spinney.__all__)
