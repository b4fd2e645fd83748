"""The dependency rule catches what it forbids, and this repository obeys it."""

from pathlib import Path

import check_dependencies
import pytest

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def tree(tmp_path):
    """A small tree that obeys every rule."""
    write(tmp_path, "cpp/base/types.h", "#include <cstdint>\n")
    write(tmp_path, "cpp/data/column.h", '#include "base/types.h"\n')
    write(tmp_path, "cpp/grow/grow.h", '#include "base/types.h"\n#include "data/column.h"\n')
    write(tmp_path, "bindings/data.cpp", "#include <nanobind/nanobind.h>\n")
    write(tmp_path, "python/spinney/_data/__init__.py", "import numpy\n\n\ndef f():\n    import pandas\n")
    write(tmp_path, "python/spinney/_data/b.py", "def f():\n    from spinney._data import a\n")
    write(tmp_path, "python/spinney/_data/c.py", "")
    write(
        tmp_path, "python/spinney/_tree/tree_estimator.py", "from spinney import _engine\nfrom spinney._data import c\n"
    )
    write(tmp_path, "python/spinney/_boosting/boosting.py", "import sklearn\n")
    write(tmp_path, "python/spinney/cli/commands.py", "import click\nimport rich.table\n")
    return tmp_path


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def run(root, capsys):
    code = check_dependencies.main([str(root)])
    return code, capsys.readouterr().out


def test_a_lawful_tree_passes(tree, capsys):
    code, out = run(tree, capsys)
    assert code == 0
    assert "9 files, 0 violations" in out  # bindings are free and not counted


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("cpp/base/a.h", '#include "data/column.h"\n', "base may not include data"),
        ("cpp/tree/a.h", '#include "data/column.h"\n', "tree may not include data"),
        ("cpp/predict/a.h", '#include "grow/grow.h"\n', "predict may not include grow"),
        ("cpp/criterion/a.h", '  #  include "cells/sorted.h"\n', "criterion may not include cells"),
        ("cpp/loss/a.h", '#include "tree/tree.h"\n', "loss may not include tree"),
        ("cpp/grow/a.cpp", '#include "grow.h"\n', "write the path from cpp/"),
        ("cpp/data/a.h", '#include "../base/types.h"\n', "write the path from cpp/"),
        ("cpp/data/a.h", "#include <nanobind/ndarray.h>\n", "only bindings/"),
        ("cpp/data/a.h", "#include <sys/mman.h>\n", "operating system"),
        ("bindings/a.cpp", "#include <unistd.h>\n", "operating system"),
        ("cpp/data/a.h", "#include <Python.h>\n", "only bindings/"),
        ("tests/cpp/test_a.cpp", "#include <Python.h>\n", "only bindings/"),
        ("cpp/misc/a.h", "", "cpp/misc has no place"),
        ("cpp/a.h", "", "live in a folder"),
        ("python/spinney/_data/x.py", "import pandas as pd\n", "imports pandas at module level"),
        ("python/spinney/_data/x.py", "try:\n    from polars import A\nexcept E:\n    pass\n", "imports polars"),
        ("python/spinney/_data/x.py", "class A:\n    import pyarrow.lib\n", "imports pyarrow"),
        ("python/spinney/_data/x.py", "import click\n", "imports click"),
        ("python/spinney/cli/x.py", "import matplotlib.pyplot as plt\n", "imports matplotlib"),
        (
            "python/spinney/_data/a.py",
            "from spinney._tree.tree_estimator import T\n",
            "imports spinney._tree.tree_estimator, which stands above",
        ),
        (
            "python/spinney/_data/a.py",
            "def f():\n    from spinney._tree.tree_estimator import T\n",
            "which stands above",
        ),
        (
            "python/spinney/_data/a.py",
            "if TYPE_CHECKING:\n    import spinney._tree.tree_estimator\n",
            "which stands above",
        ),
        ("python/spinney/_data/a.py", "from .._tree import tree_estimator\n", "which stands above"),
        ("python/spinney/_model/saving/a.py", "from spinney._tree.tree_estimator import T\n", "imports only go down"),
        ("python/spinney/_forest/a.py", "from spinney._boosting.boosting import B\n", "which stands beside it"),
        ("python/spinney/_model/a.py", "import spinney\n", "imports spinney itself"),
        ("python/spinney/_model/a.py", "def f():\n    from spinney import load\n", "imports spinney itself"),
        (
            "python/spinney/_model/saving/a.py",
            "def f():\n    import sklearn.base\n",
            "imports scikit-learn below _estimator",
        ),
        ("python/spinney/_loose.py", "", "spinney._loose has no layer"),
        ("python/spinney/_data/a.py", "from spinney._data import b\n", "a circle of imports"),
        ("python/spinney/_data/a.py", "if TYPE_CHECKING:\n    from spinney._data.b import B\n", "a circle of imports"),
    ],
)
def test_a_violation_is_caught(tree, capsys, path, text, message):
    write(tree, path, text)
    code, out = run(tree, capsys)
    assert code == 1
    assert message in out
    assert path in out or path.removesuffix(".py").removeprefix("python/").replace("/", ".") in out
    assert "1 violations" in out


def test_type_checkers_may_import_optional_packages(tree, capsys):
    write(tree, "python/spinney/_data/x.py", "if TYPE_CHECKING:\n    import pandas\n")
    assert run(tree, capsys)[0] == 0


def test_a_wrong_root_is_not_a_pass(tmp_path, capsys):
    assert check_dependencies.main([str(tmp_path)]) == 2
    assert "nothing to check" in capsys.readouterr().err


@pytest.mark.slow  # a separate step in CI
def test_this_repository_obeys(capsys):
    code, out = run(REPOSITORY, capsys)
    assert code == 0, out
