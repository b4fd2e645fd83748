"""Docstrings hold the texts of the table and the defaults of the signatures, and this repository's are fresh."""

import ast
import tomllib
from pathlib import Path

import make_docstrings
import pytest
import spinney
from sklearn.base import BaseEstimator

REPOSITORY = Path(__file__).resolve().parents[3]

MODULE = '''"""Two estimators, one of which is documented elsewhere."""


class Tree:
    """A tree.

    It grows.

    Parameters
    ----------
    old : int
        Stale.

    Attributes
    ----------
    tree_ : ndarray
        The tree.

    Notes
    -----
    None.
    """

    def __init__(self, depth: int | None = None, *, rate: float = 1e-3, kind: str | None = "a") -> None:
        self.depth = depth


class Other:
    """Not in the table.

    Parameters
    ----------
    depth : int
        Left alone.
    """
'''

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

FRESH = """    Parameters
    ----------
    depth : int, optional
        Most splits.
    rate : float, default=1e-3
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
"""


@pytest.fixture
def root(tmp_path):
    """A small repository whose docstring is fresh."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "python" / "spinney").mkdir(parents=True)
    (tmp_path / "tools" / "parameter_texts.toml").write_text(TEXTS, encoding="utf-8")
    (tmp_path / "python" / "spinney" / "trees.py").write_text(MODULE, encoding="utf-8")
    assert make_docstrings.main([str(tmp_path)]) == 0
    return tmp_path


def change(root, path, old, new):
    """Replace a text that occurs once."""
    text = (root / path).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (root / path).write_text(text.replace(old, new), encoding="utf-8")


def complaint(root, capsys):
    """What --check says; it must fail."""
    assert make_docstrings.main(["--check", str(root)]) == 1
    return capsys.readouterr().err


def test_sections_are_written_and_nothing_else_is_touched(root):
    written = (root / "python" / "spinney" / "trees.py").read_text(encoding="utf-8")
    assert FRESH in written
    before, after = MODULE.split("    Parameters\n", 1)[0], MODULE.split("    Notes\n", 1)[1]
    assert written == before + FRESH + after
    assert make_docstrings.main(["--check", str(root)]) == 0


def test_a_type_that_fills_more_than_a_line_is_continued(root):
    names = ", ".join(f'"a_long_name_{i}"' for i in range(8))
    change(root, "tools/parameter_texts.toml", '{"a", "b"} or None', f"{{{names}}} or None")
    assert make_docstrings.main([str(root)]) == 0
    written = (root / "python" / "spinney" / "trees.py").read_text(encoding="utf-8")
    assert max(map(len, written.splitlines())) <= 120
    docstring = ast.get_docstring(ast.parse(written).body[1])
    assert " ".join(f'kind : {{{names}}} or None, default="a"'.split()) in " ".join(docstring.split())
    assert make_docstrings.main(["--check", str(root)]) == 0


def test_a_changed_text_makes_the_docstring_stale(root, capsys):
    change(root, "tools/parameter_texts.toml", "Most splits.", "Most splits on a path.")
    assert "trees.py: Tree, Parameters, line 12 is stale" in complaint(root, capsys)


def test_a_docstring_edited_by_hand_is_stale(root, capsys):
    change(root, "python/spinney/trees.py", "Its depth.", "Its depth!")
    assert "Tree, Attributes, line 24 is stale" in complaint(root, capsys)


def test_a_changed_default_makes_the_docstring_stale(root, capsys):
    change(root, "python/spinney/trees.py", "rate: float = 1e-3", "rate: float = 1e-2")
    assert "Tree, Parameters, line 13 is stale" in complaint(root, capsys)


def test_a_parameter_without_a_text_is_named(root, capsys):
    change(root, "python/spinney/trees.py", "*, rate", "*, width: int = 1, rate")
    assert "Tree: tools/parameter_texts.toml has no type for 'width' in parameters" in complaint(root, capsys)


def test_an_attribute_without_a_text_is_named(root, capsys):
    change(root, "tools/parameter_texts.toml", '["tree_", "depth_"]', '["tree_", "depth_", "leaves_"]')
    assert "has no type for 'leaves_' in attributes" in complaint(root, capsys)


@pytest.mark.parametrize(
    ("addition", "place"),
    [
        ('[parameters.width]\ntype = "int"\ntext = "Wide."', "parameters.width.type, parameters.width.text"),
        ('[parameters.depth.forests]\ntext = "Deep."', "parameters.depth.forests.text"),  # a family without classes
        ('[parameters.rate.plants]\ntext = "Fast."', "parameters.rate.plants.text"),  # the nearer family wins
        ('[attributes.leaves_]\ntext = "Leaves."', "attributes.leaves_.text"),
        ('[parameters.depth.Tree]\ntxt = "Deep."', "parameters.depth.Tree.txt"),  # misspelt
    ],
)
def test_a_text_that_no_class_uses_is_named(root, capsys, addition, place):
    path = root / "tools" / "parameter_texts.toml"
    path.write_text(TEXTS + "\n" + addition + "\n", encoding="utf-8")
    assert f"has texts that no class uses: {place}\n" in complaint(root, capsys)


def test_a_class_that_does_not_exist_is_named(root, capsys):
    path = root / "tools" / "parameter_texts.toml"
    path.write_text(TEXTS + "\n[classes.Shrub]\nfamilies = []\nattributes = []\n", encoding="utf-8")
    assert "names a class that does not exist: Shrub" in complaint(root, capsys)


def test_a_docstring_without_the_section_is_named(root, capsys):
    change(root, "python/spinney/trees.py", "    Attributes\n    ----------\n", "")
    assert "Tree: the docstring has no section 'Attributes'" in complaint(root, capsys)


@pytest.mark.slow  # a step of its own in CI
def test_this_repository_is_fresh():
    assert make_docstrings.main(["--check", str(REPOSITORY)]) == 0


def test_the_table_holds_every_public_estimator():
    table = tomllib.loads((REPOSITORY / make_docstrings.TEXTS).read_text(encoding="utf-8"))
    kinds = {name: getattr(spinney, name) for name in spinney.__all__}
    assert set(table["classes"]) == {
        name for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, BaseEstimator)
    }
