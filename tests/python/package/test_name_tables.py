"""Tables of names for users of other libraries: every name of spinney in them exists."""

import inspect
import re
from dataclasses import is_dataclass
from pathlib import Path

import pytest
import spinney

DOCS = Path(__file__).parents[3] / "docs"
BOOSTED = ("GradientBoostingClassifier", "GradientBoostingRegressor", "GradientBoostingRanker")
TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor")
PAGES = {
    "coming_from/xgboost": BOOSTED,
    "coming_from/lightgbm": BOOSTED,
    "coming_from/catboost": BOOSTED,
    "guide/coming_from_sklearn": (*BOOSTED, *TREES, "RandomForestClassifier"),
    "guide/rpart": TREES,
}
PLAIN = {"spinney", "True", "False", "None", "or", "X", "y"}


def words_of(page):
    """Code of the last column of a page's tables of words, with the line it stands in."""
    lines = (DOCS / f"{page}.rst").read_text(encoding="utf-8").splitlines()
    edges = [k for k, line in enumerate(lines) if re.fullmatch(r"=+ +=+", line)]
    found = []
    for top, middle, bottom in zip(edges[::3], edges[1::3], edges[2::3], strict=True):
        start = lines[top].rindex(" ") + 1
        assert middle == top + 2
        for line in lines[middle + 1 : bottom]:
            found += [(code, line) for code in re.findall(r"``(.+?)``", line[start:])]
    return found


def names_of(estimators):
    """Parameters, attributes and arguments of methods of some estimators, and what the library itself has."""
    known = set(dir(spinney)) | set(spinney.__all__)
    for kind in (getattr(spinney, name) for name in estimators):
        known |= set(inspect.signature(kind.__init__).parameters) | set(dir(kind))
        known |= set(re.findall(r"^    (\w+_) : ", kind.__doc__, re.MULTILINE))  # fitted attributes
        for _, method in inspect.getmembers(kind, lambda one: inspect.isfunction(one) or inspect.ismethod(one)):
            known |= set(inspect.signature(method).parameters)
    fitted = spinney.DecisionTreeRegressor.rpart().fit([[0.0], [1.0]], [0.0, 1.0])
    known |= set(dir(fitted)) | set(dir(fitted.rpart_)) | set(dir(fitted.tree_))
    for function in (getattr(spinney, name) for name in spinney.__all__):
        if inspect.isfunction(function) or is_dataclass(function):
            known |= set(inspect.signature(function).parameters)
    return known


@pytest.mark.parametrize("page", PAGES)
def test_names_of_ours_exist(page):
    known = names_of(PAGES[page]) | PLAIN
    words = words_of(page)
    assert len(words) > 10
    for code, line in words:
        bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", code)  # values in quotes are not names
        for name in re.findall(r"[A-Za-z_]\w*", bare):
            assert name in known, f"{page}: {name} in {line.strip()}"
