"""Tables of names for users of other libraries: every name of spinney in them exists."""

import inspect
import re
from dataclasses import is_dataclass
from pathlib import Path

import pytest
import spinney
from spinney._estimator.other_libraries import argument_called

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


# Objects, methods and arguments in the tables of boosting, which are no parameters
NO_PARAMETERS = {
    *(
        "DMatrix",
        "Pool",
        "XGBRanker",
        "LGBMRanker",
        "CatBoostRanker",
        "OrdinalEncoder",
        "OneHotEncoder",
        "SimpleImputer",
    ),
    *("pred_interactions", "feature_importances_", "calc_leaf_indexes", "export_text", "fit", "monitor"),
}


def rows_of(page):
    """Names in the first column of a page's table, and the text of the second."""
    lines = (DOCS / f"{page}.rst").read_text(encoding="utf-8").splitlines()
    top, middle, bottom = (k for k, line in enumerate(lines) if re.fullmatch(r"=+ +=+", line))
    start = lines[top].rindex(" ") + 1
    for line in lines[middle + 1 : bottom]:
        for code in re.findall(r"``(\w+)(?:=.*?)?``", line[:start]):
            yield code, line[start:]


@pytest.mark.parametrize("page", [page for page in PAGES if "coming_from" in page])
def test_tables_agree_with_the_errors(page):
    """For each name of another library, a page and the error for that name give the same answer."""
    kind = spinney.GradientBoostingRegressor if "sklearn" in page else spinney.GradientBoostingClassifier
    parameters = inspect.signature(kind).parameters
    arguments = inspect.signature(kind.fit).parameters
    rows = [(theirs, ours) for theirs, ours in rows_of(page) if theirs not in NO_PARAMETERS]
    assert len(rows) > 5
    for theirs, ours in rows:
        if theirs in kind._other_names:
            assert all(f"``{own}``" in ours for own in kind._other_names[theirs])
            continue
        if theirs in parameters:
            assert f"``{theirs}" in ours, theirs
            continue
        with pytest.raises(TypeError, match=f"'{theirs}'") as error:
            kind(**{theirs: 1})
        advice = str(error.value).partition(". ")[2]
        if (argument := argument_called(theirs, arguments)) is not None:
            advice = argument
        words = {name for name in re.findall(r"\w+", advice) if name in (*parameters, *arguments, "importances")}
        shown = set(re.findall(r"\w+", " ".join(re.findall(r"``(.+?)``", ours))))
        if "Leave it out" in advice:
            assert shown.isdisjoint(parameters), f"{theirs}: the page has {ours.strip()}, the error {advice}"
        else:
            assert words & shown or "else leave it out" in advice, f"{theirs}: {ours.strip()}; the error: {advice}"
