"""Stacking: scikit-learn's for the same folds and members, honest folds, every table, greedy selection, layers."""

import io
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import spinney
from every_estimator import CLASSES, MODELS, PAIR, TABLE, VALUES, WHOLE, rows_of
from oracle.greedy import greedy_weights
from scipy.sparse import csr_array
from sklearn import ensemble
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, StratifiedKFold, TimeSeriesSplit
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from spinney._data.display import with_article

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
EXACT = {"solver": "newton-cg", "tol": 1e-12, "max_iter": 10_000}


def classifiers(method):
    first = RidgeClassifier() if method == "decision_function" else DecisionTreeClassifier(max_depth=2, random_state=0)
    return [("one", first), ("two", LogisticRegression())]


@pytest.mark.parametrize("y", [PAIR, CLASSES], ids=["two", "three"])
@pytest.mark.parametrize("method", ["auto", "predict_proba", "decision_function", "predict"])
@pytest.mark.parametrize("passthrough", [False, True])
def test_classes_equal_scikit_learns(y, method, passthrough):
    options = {"cv": FOLDS, "stack_method": method, "passthrough": passthrough}
    final = LogisticRegression(**EXACT)
    theirs = ensemble.StackingClassifier(classifiers(method), final, **options).fit(WHOLE, y)
    for own in (final, None):
        ours = spinney.StackingClassifier(classifiers(method), own, **options).fit(WHOLE, y)
        np.testing.assert_allclose(ours.predict_proba(WHOLE), theirs.predict_proba(WHOLE), atol=1e-8)
        np.testing.assert_array_equal(ours.predict(WHOLE), theirs.predict(WHOLE))
        np.testing.assert_allclose(ours.transform(WHOLE), theirs.transform(WHOLE), atol=1e-12)
        assert ours.stack_method_ == theirs.stack_method_
        assert list(ours.named_estimators_) == list(theirs.named_estimators_)
        assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


@pytest.mark.parametrize("passthrough", [False, True])
@pytest.mark.parametrize("final", [None, DecisionTreeRegressor(random_state=0), Ridge(0.5)])
def test_values_equal_scikit_learns(passthrough, final):
    members = [("tree", DecisionTreeRegressor(max_depth=3, random_state=0)), ("near", KNeighborsRegressor())]
    options = {"cv": KFold(4, shuffle=True, random_state=1), "passthrough": passthrough}
    ours = spinney.StackingRegressor(members, final, **options).fit(WHOLE, VALUES)
    theirs = ensemble.StackingRegressor(members, final, **options).fit(WHOLE, VALUES)
    np.testing.assert_allclose(ours.predict(WHOLE), theirs.predict(WHOLE), rtol=1e-9)


def test_weights_reach_members_and_what_combines_them():
    weight = np.linspace(0.5, 2, len(VALUES))
    members = [("tree", DecisionTreeRegressor(max_depth=3, random_state=0)), ("line", Ridge())]
    options = {"cv": KFold(4), "final_estimator": Ridge()}
    ours = spinney.StackingRegressor(members, **options).fit(WHOLE, VALUES, weight)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = [(name, clone(one).set_fit_request(sample_weight=True)) for name, one in members]
        theirs = ensemble.StackingRegressor(routed, **options | {"final_estimator": Ridge()})
        theirs.final_estimator.set_fit_request(sample_weight=True)
        theirs.fit(WHOLE, VALUES, sample_weight=weight)
    # scikit-learn does not hand weights to its final estimator
    final = Ridge().fit(ours.oof_predictions_, VALUES, weight)
    np.testing.assert_allclose(ours.transform(WHOLE), theirs.transform(WHOLE))
    np.testing.assert_allclose(ours.predict(WHOLE), final.predict(ours.transform(WHOLE)))
    with pytest.warns(UserWarning, match="take no sample_weight and are fitted without weights: near"):
        spinney.StackingRegressor([("near", KNeighborsRegressor()), "tree"], cv=3).fit(WHOLE, VALUES, weight)
    with pytest.warns(UserWarning, match="final estimator, a KNeighborsRegressor, takes no sample_weight"):
        spinney.StackingRegressor(["tree"], KNeighborsRegressor(), cv=3).fit(WHOLE, VALUES, weight)


def test_rows_of_weight_zero_are_not_there():
    weight = np.ones(len(VALUES))
    weight[::5] = 0
    strange = np.where(weight > 0, VALUES, 1e6)
    cv = np.arange(len(VALUES)) % 3
    members = ["tree", ("near", KNeighborsRegressor())]
    with pytest.warns(UserWarning, match="take no sample_weight"):
        one = spinney.StackingRegressor(members, cv=cv, random_state=0).fit(WHOLE, strange, weight)
    other = spinney.StackingRegressor(members, cv=cv[weight > 0], random_state=0)
    other.fit(WHOLE[weight > 0], VALUES[weight > 0])
    np.testing.assert_allclose(one.predict(WHOLE), other.predict(WHOLE))
    assert np.isnan(one.oof_predictions_[::5]).all()


class Memory(ClassifierMixin, BaseEstimator):
    """Knows the labels of the rows that it has seen by heart, and is sure of a wrong one for others."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen_ = {row.tobytes(): label for row, label in zip(np.asarray(X), y, strict=True)}
        return self

    def predict_proba(self, X):
        codes = [self.seen_.get(row.tobytes(), -1) for row in np.asarray(X)]
        return np.array([[0.5, 0.5] if code == -1 else np.eye(2)[int(code)] for code in codes])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_what_combines_learns_from_rows_that_members_have_not_seen():
    X, y = WHOLE + np.arange(len(WHOLE))[:, None] / 1e3, PAIR
    model = spinney.StackingClassifier([("heart", Memory()), "tree"], cv=4, random_state=0).fit(X, y)
    assert (model.oof_predictions_[:, 0] == 0.5).all()
    assert model.final_estimator_.terms_ == ["tree"]
    groups = np.arange(len(y)) // 2
    duplicated = np.repeat(X[::2], 2, axis=0)[: len(y)]
    apart = spinney.StackingClassifier([("heart", Memory())], cv=4, random_state=0).fit(duplicated, y)
    together = spinney.StackingClassifier([("heart", Memory())], cv=4, random_state=0).fit(duplicated, y, groups=groups)
    assert (apart.oof_predictions_ != 0.5).any()
    assert (together.oof_predictions_ == 0.5).all()
    split = spinney.StackingClassifier([("heart", Memory())], cv=GroupKFold(4)).fit(duplicated, y, groups=groups)
    assert (split.oof_predictions_ == 0.5).all()


def test_folds_of_every_kind():
    members = ["tree", "linear"]
    time = spinney.StackingRegressor(members, cv=TimeSeriesSplit(3), random_state=0).fit(TABLE, VALUES)
    never = np.isnan(time.oof_predictions_).all(axis=1)
    assert never[:15].all()
    assert not never[15:].any()
    again = spinney.StackingRegressor(members, cv=RepeatedKFold(n_splits=2, n_repeats=3, random_state=0))
    assert not np.isnan(again.fit(TABLE, VALUES).oof_predictions_).any()
    splits = list(KFold(3).split(WHOLE))
    numbers = np.empty(len(VALUES), dtype=int)
    for k, (_, held_out) in enumerate(splits):
        numbers[held_out] = k
    one, other = (spinney.StackingRegressor(members, cv=cv).fit(TABLE, VALUES) for cv in (splits, numbers))
    np.testing.assert_array_equal(one.oof_predictions_, other.oof_predictions_)
    labels = spinney.StackingClassifier(members, cv=RepeatedKFold(n_repeats=2, random_state=0), stack_method="predict")
    assert set(np.unique(labels.fit(TABLE, CLASSES).oof_predictions_)) <= {0.0, 1.0, 2.0}


def test_a_class_that_a_fold_lacks_has_no_share_there():
    y = np.where(np.arange(len(VALUES)) < 2, "rare", PAIR)
    cv = np.arange(len(y)) // 20
    model = spinney.StackingClassifier(["tree", ("own", LogisticRegression())], cv=cv).fit(WHOLE, y)
    shares = model.oof_predictions_
    assert shares.shape == (len(y), 6)
    rare = list(model.classes_).index("rare")
    assert (shares[:20, [rare, rare + 3]] == 0).all()


def test_out_of_fold_scores():
    model = spinney.StackingClassifier(["tree", "forest"], cv=3, random_state=0).fit(TABLE, CLASSES)
    tree = model.classes_[model.oof_predictions_[:, :3].argmax(axis=1)]
    assert model.oof_scores_["tree"] == pytest.approx((tree == CLASSES).mean())
    decisions = spinney.StackingClassifier([RidgeClassifier()], cv=3, random_state=0).fit(WHOLE, PAIR)
    assert 0.5 < decisions.oof_scores_["ridgeclassifier"] <= 1


def tables():
    frame = pd.DataFrame(TABLE).astype({"colour": "category"})
    return {
        "dict": TABLE,
        "pandas": pd.DataFrame(TABLE),
        "categories": frame,
        "polars": pl.from_pandas(pd.DataFrame(TABLE)),
        "arrow": pa.Table.from_pandas(pd.DataFrame(TABLE), preserve_index=False),
    }


@pytest.mark.parametrize("kind", tables())
def test_every_kind_of_table_passes_through_with_its_kinds(kind):
    X = tables()[kind]
    options = {"final_estimator": "tree", "passthrough": True, "cv": 3, "random_state": 0}
    model = spinney.StackingClassifier(["tree", "linear"], **options).fit(X, CLASSES)
    final = model.final_estimator_
    assert [feature.kind for feature in final.schema_.features][-4:] == ["number"] * 3 + ["category"]
    assert list(final.feature_names_in_)[:2] == ["tree: no", "tree: perhaps"]
    base = spinney.StackingClassifier(["tree", "linear"], **options).fit(TABLE, CLASSES)
    np.testing.assert_array_equal(model.predict_proba(X), base.predict_proba(TABLE))


def test_arrays_sparse_tables_and_names_that_are_taken():
    for X in (WHOLE, csr_array(WHOLE), np.ma.masked_array(WHOLE, WHOLE > 2), WHOLE.tolist(), pd.DataFrame(WHOLE)):
        model = spinney.StackingRegressor(["tree"], "tree", passthrough=True, cv=3, random_state=0).fit(X, VALUES)
        assert model.final_estimator_.n_features_in_ == 4
        assert model.predict(X).shape == VALUES.shape
    named = pd.DataFrame(WHOLE, columns=["tree", "b", "c"])
    model = spinney.StackingRegressor(["tree"], "tree", passthrough=True, cv=3).fit(named, VALUES)
    assert list(model.final_estimator_.feature_names_in_) == ["tree'", "tree", "b", "c"]


def test_members_by_word_by_name_and_by_both():
    given = ["tree", ("second", "extra-trees"), DecisionTreeClassifier(), ("off", "drop"), DecisionTreeClassifier()]
    model = spinney.StackingClassifier(given, cv=3, random_state=0).fit(WHOLE, PAIR)
    names = ["tree", "second", "decisiontreeclassifier-1", "decisiontreeclassifier-2"]
    assert list(model.named_estimators_) == names
    assert isinstance(model.named_estimators_.second, spinney.ExtraTreesClassifier)
    by_dict = spinney.VotingRegressor({"a": "tree", "b": Ridge()}).fit(WHOLE, VALUES)
    assert list(by_dict.named_estimators_) == ["a", "b"]


def test_members_are_parameters():
    model = spinney.StackingClassifier([("a", spinney.DecisionTreeClassifier()), "forest"])
    model.set_params(a__max_depth=2, forest=LogisticRegression(), cv=4)
    assert model.get_params()["a"].max_depth == 2
    assert model.get_params()["a__max_depth"] == 2
    assert isinstance(dict(model.estimators)["forest"], LogisticRegression)
    model.set_params(a="drop")
    assert [name for name, _ in model.fit(WHOLE, PAIR)._members()] == ["forest"]
    with pytest.raises(ValueError, match=r"has no parameter 'passthru'. Did you mean 'passthrough'"):
        model.set_params(passthru=True)


@pytest.mark.parametrize(
    ("estimators", "message"),
    [
        ([], "has no estimator left"),
        (["forst"], "no model called 'forst'. Did you mean 'forest'"),
        ([("tree", "tree"), ("tree", "forest")], "has 'tree' twice"),
        ([("a__b", "tree")], "must not contain __"),
        ([Ridge()], "should be a classifier"),
        ([3], "neither an estimator"),
        ([spinney.DecisionTreeClassifier], "neither an estimator"),
    ],
)
def test_invalid_members_are_refused(estimators, message):
    with pytest.raises((ValueError, TypeError), match=message):
        spinney.StackingClassifier(estimators).fit(WHOLE, PAIR)


def test_invalid_settings_are_refused():
    fit = spinney.StackingClassifier(["tree"], "greedy", passthrough=True).fit
    with pytest.raises(ValueError, match="cannot use the columns of the table"):
        fit(WHOLE, PAIR)
    with pytest.raises(ValueError, match="averages probabilities, and 'ridgeclassifier'"):
        spinney.StackingClassifier([RidgeClassifier(), "tree"], "greedy").fit(WHOLE, PAIR)
    with pytest.raises(ValueError, match="does not implement the method decision_function"):
        spinney.StackingClassifier(["tree"], stack_method="decision_function").fit(WHOLE, PAIR)
    with pytest.raises(ValueError, match="makes no folds, and groups need them"):
        spinney.StackingClassifier(["tree"], cv="prefit").fit(WHOLE, PAIR, groups=np.arange(len(PAIR)))
    with pytest.raises(ValueError, match="only if metadata routing is enabled"):
        spinney.StackingClassifier(["tree"]).fit(WHOLE, PAIR, exposure=VALUES)
    with pytest.raises(ValueError, match="could not convert string to float") as found:
        spinney.StackingClassifier([("line", LogisticRegression())]).fit(pd.DataFrame(TABLE), PAIR)
    assert "while fitting 'line', a LogisticRegression; if it takes numbers only" in found.value.__notes__[0]
    hard = spinney.StackingClassifier(["tree"], RidgeClassifier())
    assert not hasattr(hard, "predict_proba")
    assert hasattr(hard, "decision_function")


def test_metadata_reaches_those_who_ask_for_it():
    exposure = np.linspace(1, 3, len(VALUES))
    counts = np.round(np.abs(VALUES))
    with sklearn.config_context(enable_metadata_routing=True):
        member = spinney.DecisionTreeRegressor(criterion="poisson", max_depth=2).set_fit_request(exposure=True)
        model = spinney.VotingRegressor([("rate", member), "tree"], random_state=0)
        model.fit(WHOLE, counts, exposure=exposure)
        stack = spinney.StackingRegressor([("rate", member), "tree"], cv=3).fit(WHOLE, counts, exposure=exposure)
    alone = spinney.DecisionTreeRegressor(criterion="poisson", max_depth=2, random_state=0)
    alone.fit(WHOLE, counts, exposure=exposure)
    np.testing.assert_array_equal(model.named_estimators_.rate.predict(WHOLE), alone.predict(WHOLE))
    assert stack.oof_predictions_.shape == (len(VALUES), 2)


def test_prefit_members_are_not_touched():
    trees = [("a", spinney.DecisionTreeClassifier(max_depth=2)), ("b", DecisionTreeClassifier(max_depth=3))]
    for _, tree in trees:
        tree.fit(WHOLE, PAIR)
    ours = spinney.StackingClassifier(trees, LogisticRegression(**EXACT), cv="prefit").fit(WHOLE, PAIR)
    theirs = ensemble.StackingClassifier(trees, LogisticRegression(**EXACT), cv="prefit").fit(WHOLE, PAIR)
    assert ours.estimators_[0] is trees[0][1]
    np.testing.assert_allclose(ours.predict_proba(WHOLE), theirs.predict_proba(WHOLE))
    with pytest.raises(sklearn.exceptions.NotFittedError):
        spinney.StackingClassifier(["tree"], cv="prefit").fit(WHOLE, PAIR)


def test_models_of_folds_are_averaged():
    cv = np.arange(len(VALUES)) % 3
    for y, kind in ((VALUES, "Regressor"), (CLASSES, "Classifier")):
        model = getattr(spinney, f"Stacking{kind}")(["tree", "linear"], refit=False, cv=cv, random_state=1).fit(
            TABLE, y
        )
        trees = model.estimators_[0].estimators_
        assert len(trees) == 3
        method = "predict" if kind == "Regressor" else "predict_proba"
        mean = np.mean([getattr(tree, method)(TABLE) for tree in trees], axis=0)
        np.testing.assert_allclose(getattr(model.estimators_[0], method)(TABLE), mean)
        predicted = model.transform(TABLE)
        np.testing.assert_allclose(predicted[:, 0] if kind == "Regressor" else predicted[:, :3], mean)
        alone = [trees[k].predict({name: column[cv == k] for name, column in TABLE.items()}) for k in range(3)]
        if kind == "Regressor":
            for k in range(3):
                np.testing.assert_array_equal(model.oof_predictions_[cv == k, 0], alone[k])


def test_greedy_weights_agree_with_the_reference():
    model = spinney.StackingRegressor(["tree", "forest", "linear"], "greedy", cv=4, random_state=0).fit(TABLE, VALUES)
    predicted = model.oof_predictions_.T
    wanted = greedy_weights(predicted, VALUES, lambda y, mean: ((y - mean) ** 2).sum(), 100)
    np.testing.assert_allclose(model.final_estimator_.weights_, wanted)
    np.testing.assert_allclose(model.predict(TABLE), model.transform(TABLE) @ wanted)
    several = spinney.StackingClassifier(["tree", "forest", "linear"], "greedy", cv=4, random_state=0)
    several.fit(TABLE, CLASSES)
    shares = several.oof_predictions_.reshape(-1, 3, 3).transpose(1, 0, 2)
    codes = np.searchsorted(several.classes_, CLASSES)

    def log_loss(y, mean):
        return -np.log(np.maximum(mean[np.arange(len(y)), y], 2.0**-52)).sum()

    np.testing.assert_allclose(several.final_estimator_.weights_, greedy_weights(shares, codes, log_loss, 100))
    pair = spinney.StackingClassifier(["tree", "forest"], "greedy", cv=4, random_state=0).fit(TABLE, PAIR)
    weights = pair.final_estimator_.weights_
    np.testing.assert_allclose(pair.predict_proba(TABLE)[:, 1], pair.transform(TABLE) @ weights)


def test_layers_are_stacks_of_stacks():
    cv = np.arange(len(VALUES)) % 3
    model = spinney.StackingRegressor(["tree", "linear"], layers=[["linear", "tree"]], cv=cv, random_state=0)
    model.fit(TABLE, VALUES)
    second = model.final_estimator_
    assert isinstance(second, spinney.StackingRegressor)
    assert list(second.feature_names_in_) == ["tree", "linear"]
    by_hand = spinney.StackingRegressor(["linear", "tree"], cv=cv, random_state=0).fit(
        dict(zip(["tree", "linear"], model.oof_predictions_.T, strict=True)), VALUES
    )
    np.testing.assert_array_equal(second.oof_predictions_[:, 0], by_hand.oof_predictions_[:, 0])
    time = spinney.StackingRegressor(["tree"], layers=[["linear"], ["tree"]], cv=TimeSeriesSplit(5), passthrough=True)
    assert time.fit(TABLE, VALUES).predict(TABLE).shape == VALUES.shape
    with pytest.raises(ValueError, match="too few rows for a further layer"):
        spinney.StackingRegressor(["tree"], layers=[["tree"]], cv=TimeSeriesSplit(2), random_state=0).set_params(
            cv=[(np.arange(30), np.arange(30, 60))]
        ).fit(TABLE, VALUES)


@pytest.mark.parametrize("refit", [True, False])
def test_bit_identical_for_any_number_of_threads(refit):
    prints = {
        spinney.StackingClassifier(["forest", "boosting", "tree"], refit=refit, cv=3, n_jobs=n, random_state=0)
        .set_params(forest="extra_trees")
        .fit(TABLE, CLASSES)
        .fingerprint()
        for n in (1, 3, None)
    }
    assert len(prints) == 1


def test_threads_are_shared_and_given_back():
    seen = []

    class Spy(spinney.DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(self.n_jobs)
            return super().fit(X, y, sample_weight)

    spinney.VotingClassifier([Spy()], n_jobs=4).fit(WHOLE, PAIR)
    model = spinney.StackingClassifier([Spy(), Spy(n_jobs=3)], cv=3, n_jobs=2).fit(WHOLE, PAIR)
    assert seen[0] == 4
    assert sorted(set(seen[1:])) == [1, 3]
    assert [member.n_jobs for member in model.estimators_] == [2, 3]


def test_an_interrupted_fit_leaves_the_old_one():
    class Impatient(spinney.DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            if len(y) < len(PAIR):
                raise KeyboardInterrupt
            return super().fit(X, y, sample_weight)

    model = spinney.StackingClassifier(["tree"], cv=3, random_state=0).fit(WHOLE, PAIR)
    before = model.predict_proba(WHOLE)
    model.set_params(estimators=[Impatient()])
    with pytest.raises(KeyboardInterrupt):
        model.fit(WHOLE, PAIR)
    np.testing.assert_array_equal(model.predict_proba(WHOLE), before)


def test_progress_is_reported(capsys):
    spinney.StackingClassifier(["tree", "linear"], cv=3, verbose=2).fit(WHOLE, PAIR)
    assert "8 of 8 fits" in capsys.readouterr().err


def test_members_of_other_libraries(tmp_path):
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    members = [
        ("light", lightgbm.LGBMClassifier(n_estimators=3, verbose=-1)),
        ("x", xgboost.XGBClassifier(n_estimators=3)),
        "boosting",
    ]
    model = spinney.StackingClassifier(members, cv=3, random_state=0).fit(WHOLE, PAIR)
    assert set(model.predict(WHOLE)) <= {"no", "yes"}
    assert list(model.named_estimators_.x.classes_) == [0, 1]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(WHOLE), model.predict_proba(WHOLE))
    with pytest.raises(TypeError, match=r"one of this ensemble is of the type LGBMClassifier. Pickle the ensemble"):
        model.save(tmp_path / "model")


def test_ensembles_of_ensembles_are_saved():
    inner = spinney.StackingClassifier(["tree", "linear"], "greedy", cv=3)
    bagged = spinney.BaggingClassifier(spinney.DecisionTreeClassifier(max_depth=2), 3)
    model = spinney.VotingClassifier([("stack", inner), ("bag", bagged), "adaboost"], random_state=0)
    model.fit(TABLE, CLASSES)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    again = spinney.load(file)
    np.testing.assert_array_equal(again.predict_proba(TABLE), model.predict_proba(TABLE))
    assert again.get_params()["bag__estimator__max_depth"] == 2
    file.seek(0)
    with pytest.raises(spinney.ModelFileError, match=r"holds a BaggingClassifier, an ensemble.*Read it with"):
        spinney.load_predictor(file)


def test_names_of_models_in_errors_have_their_article():
    file = io.BytesIO()
    spinney.AdaBoostClassifier("linear", n_estimators=2, random_state=0).fit(TABLE, CLASSES).save(file)
    file.seek(0)
    with pytest.raises(spinney.ModelFileError, match="holds an AdaBoostClassifier, an ensemble"):
        spinney.load_predictor(file)
    names = ["ExtraTreeClassifier", "SVC", "NuSVC", "OneClassSVM", "IsolationForest", "RandomForestRegressor"]
    articles = [with_article(name).split()[0] for name in names]
    assert articles == ["an", "an", "a", "a", "an", "a"]


@pytest.mark.parametrize("name", [name for name in MODELS if re.match("stack|vote|greedy", name)])
def test_files_predict_without_scikit_learn(name, tmp_path):
    model = MODELS[name]()
    model.save(tmp_path / "model")
    if "decision_function" in getattr(model, "stack_method_", ()):
        with pytest.raises(spinney.ModelFileError, match="uses decision functions of its members"):
            spinney.load_predictor(tmp_path / "model")
        return
    predictor = spinney.load_predictor(tmp_path / "model")
    X = rows_of(model)
    np.testing.assert_array_equal(predictor.predict(X), model.predict(X))
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(predictor.predict_proba(X), model.predict_proba(X))
    row = list(X[3]) if isinstance(X, np.ndarray) else {key: column[3] for key, column in X.items()}
    assert predictor.predict_one(row) == model.predict(X)[3]
    assert predictor.schema.n_features == model.n_features_in_
    assert type(model).__name__ in repr(predictor)


def test_near_neighbours_beside_trees():
    members = [("near", KNeighborsClassifier()), "forest"]
    model = spinney.StackingClassifier(members, passthrough=True, cv=3, random_state=0).fit(WHOLE, CLASSES)
    assert model.final_estimator_.coef_.shape == (3, 9)


def test_a_dropped_member_keeps_its_name_and_its_weight():
    X, y = WHOLE, PAIR
    tree, near, line = DecisionTreeClassifier(max_depth=2), KNeighborsClassifier(3), LogisticRegression()
    members = [("tree", tree), ("near", near), ("line", line)]
    model = spinney.VotingClassifier(members, voting="soft", weights=[1, 5, 2]).set_params(near="drop").fit(X, y)
    assert model.get_params()["near"] == "drop"
    assert list(model.named_estimators_) == ["tree", "line"]
    others = spinney.VotingClassifier([members[0], members[2]], voting="soft", weights=[1, 2]).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), others.predict_proba(X))
    assert len(model.set_params(near=KNeighborsClassifier(3)).fit(X, y).estimators_) == 3
    with pytest.raises(ValueError, match="got 2 weights, 3 estimators"):
        model.set_params(weights=[1, 2]).fit(X, y)


@pytest.mark.parametrize("make", [spinney.VotingRegressor, spinney.StackingRegressor, spinney.AdaBoostRegressor])
def test_members_whose_fit_returns_nothing(make):
    class Forgetful(Ridge):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y, sample_weight)

    model = make(Forgetful(), 3) if make is spinney.AdaBoostRegressor else make([Forgetful()])
    assert np.isfinite(model.fit(WHOLE, VALUES).predict(WHOLE)).all()
