"""Fit random estimators to random tables in random containers, and compare whatever must agree.

After a fit: probabilities sum to 1, files and pickles predict the same, predictors of single rows too, Shapley values
sum to the prediction, and any number of threads gives a bit-identical model. A fit may be refused, in a sentence.
"""

import io
import pickle
import warnings
from importlib import import_module

import numpy as np
import scipy.sparse as sp
import spinney


def installed(name):
    """Return a library, or None: its containers are then dicts."""
    try:
        return import_module(name)
    except ImportError:
        return None


pd, pl, pa = (installed(name) for name in ("pandas", "polars", "pyarrow"))

# ---- tables ----------------------------------------------------------------------------------------------------------


def number_column(rng, n):
    kind = rng.integers(0, 8)
    if kind == 0:
        return rng.integers(0, rng.choice([2, 3, 10, 1000]), n).astype(float)
    if kind == 1:
        return np.full(n, rng.normal())
    if kind == 2:
        return rng.normal(size=n) * 10.0 ** rng.integers(-300, 300)
    if kind == 3:
        return rng.normal(size=n) * (rng.random(n) < 0.2)
    if kind == 4:
        return np.float32(rng.normal(size=n)).astype(float)
    if kind == 5:
        return np.exp(rng.normal(size=n) * 20)
    return rng.normal(size=n)


def with_missing(rng, column):
    column = column.astype(object) if column.dtype.kind in "OU" else column.astype(float)
    column[rng.random(len(column)) < rng.choice([0.05, 0.3, 0.95])] = None if column.dtype.kind == "O" else np.nan
    return column


def make_columns(rng, n, only_numbers):
    columns = {}
    for j in range(rng.integers(1, 6)):
        if only_numbers or rng.random() < 0.7:
            column = number_column(rng, n)
        else:
            n_words = int(rng.choice([1, 2, 5, 40]))
            column = np.array([f"w{i}é" for i in range(n_words)], dtype=object)[rng.integers(0, n_words, n)]
        if rng.random() < 0.3:
            column = with_missing(rng, column)
        columns[f"c{j}"] = column
    if rng.random() < 0.1:
        columns["again"] = columns["c0"].copy()
    return columns


def as_numpy(rng, columns):
    array = np.column_stack(list(columns.values()))
    if rng.random() < 0.3:
        array = np.asfortranarray(array)
    return array[:, ::-1][:, ::-1] if rng.random() < 0.2 else array


def as_pandas(rng, columns):
    if pd is None:
        return dict(columns)
    frame = pd.DataFrame(columns)
    for name in frame.columns:
        if frame[name].dtype == object and rng.random() < 0.5:
            frame[name] = frame[name].astype("category")
    return frame


def as_arrow(rng, columns):
    if pa is None:
        return dict(columns)
    table = pa.table({name: pa.array(column.tolist(), from_pandas=True) for name, column in columns.items()})
    return pa.concat_tables([table.slice(0, 3), table.slice(3)]) if rng.random() < 0.5 else table


def as_polars(rng, columns):
    return as_arrow(rng, columns) if pl is None or pa is None else pl.from_arrow(as_arrow(rng, columns))


def as_sparse(rng, columns):
    kind = str(rng.choice(["csr_array", "csc_array", "coo_array", "csr_matrix", "lil_array"]))
    return getattr(sp, kind)(np.column_stack(list(columns.values())))


CONTAINERS = {
    "numpy": (as_numpy, True),
    "sparse": (as_sparse, True),
    "list": (lambda rng, columns: [list(row) for row in zip(*columns.values(), strict=True)], True),
    "pandas": (as_pandas, False),
    "polars": (as_polars, False),
    "arrow": (as_arrow, False),
    "dict": (lambda rng, columns: dict(columns), False),
}


def rows_of(columns, rows):
    return {name: column[rows] for name, column in columns.items()}


# ---- targets and parameters ------------------------------------------------------------------------------------------


def signal(rng, columns):
    total = rng.normal(size=len(next(iter(columns.values())))) * rng.choice([0.0, 0.1, 1.0])
    for column in columns.values():
        if column.dtype.kind == "O":
            codes = np.unique(column.astype(str), return_inverse=True)[1]
            total = total + np.sin(codes * 2.0)
        else:
            rank = np.argsort(np.argsort(np.nan_to_num(column)))
            total = total + rng.normal() * rank / len(rank)
    return total


def values(rng, columns):
    y = signal(rng, columns)
    kind = rng.integers(0, 6)
    if kind == 0:
        return np.round(y)
    if kind == 1:
        return y * 10.0 ** rng.integers(-100, 100)
    if kind == 2:
        return np.full(len(y), 3.25)
    return y


def counts(rng, columns):
    return np.round(np.exp(np.clip(signal(rng, columns), -3, 3)))


def classes(rng, columns):
    n_classes = int(rng.choice([2, 2, 3, 7]))
    y = signal(rng, columns)
    codes = np.clip(np.floor((np.argsort(np.argsort(y)) / len(y)) * n_classes), 0, n_classes - 1).astype(int)
    kind = rng.integers(0, 4)
    if kind == 0:
        return codes
    if kind == 1:
        return np.array([f"class {c}" for c in range(n_classes)])[codes]
    if kind == 2 and n_classes == 2:
        return codes == 1
    return np.array([f"k{c}" for c in range(n_classes)], dtype=object)[codes]


def pick(rng, **choices):
    """Draw a value for some of the parameters; a callable draws from the generator."""
    found = {}
    for name, options in choices.items():
        if rng.random() < 0.3:
            found[name] = options[rng.integers(0, len(options))]
    return found


def tree_parameters(rng):
    return pick(
        rng,
        max_depth=[1, 3, 10],
        min_samples_leaf=[2, 5, 0.1],
        min_samples_split=[4, 0.3],
        max_leaf_nodes=[2, 7],
        max_features=[1, 0.5, "sqrt"],
        max_bins=[2, 16, 255],
        min_impurity_decrease=[0.01],
        ccp_alpha=[0.001, 0.1],
        unseen=["missing", "other"],
        interaction_cst=["no_interactions", "pairwise"],
    )


def single_tree(rng):
    more = pick(
        rng,
        missing=["surrogate"],
        max_competitors=[3],
        shrinkage=[1.0, 20.0],
        prune=["cv", "validation"],
        validation_fraction=[0.3],
    )
    if more.get("prune") == "cv":
        more["cv"] = 3
    return tree_parameters(rng) | more


def forest(rng):
    more = pick(
        rng,
        keep_rows=[True],
        oob_score=[True],
        bootstrap=[False],
        replace=[False],
        max_samples=[0.5, 3],
        oblique=[4],
        max_features_per_tree=[0.5],
        shrinkage=[2.0],
    )
    return tree_parameters(rng) | {"n_estimators": int(rng.integers(1, 7))} | more


def boosting(rng):
    more = pick(
        rng,
        learning_rate=[0.01, 0.5, 1.0],
        max_leaf_nodes=[2, 5, None],
        max_depth=[1, 4],
        growth=["depth", "symmetric", {"n_parallel_trees": 3}, {"forced_splits": {"feature": 0, "threshold": 0.5}}],
        min_samples_leaf=[1, 3, 0.1],
        regularization=[{"l1": 0.5}, spinney.Regularization(max_step=0.3, min_gain=0.1)],
        l2_regularization=[0.0, 10.0],
        subsample=[0.5],
        max_features=[0.5, 1],
        max_bins=[2, 16],
        categories=[{"max_one_hot": 0}, spinney.CategoryOptions(max_one_hot=50)],
        early_stopping=[True],
        interaction_cst=["no_interactions"],
        unseen=["missing", "other"],
        init=["zero"],
    )
    if rng.random() < 0.3:
        more |= pick(
            rng,
            dart=[True, 1.0, {"by": "weight", "max_rounds": 1}, spinney.Dart(rate=0.5, skip=0.5)],
            sampling=["goss", "gradient", spinney.Goss(top_rate=0.5)],
            regularization=[{"hierarchical_shrinkage": 3.0}],
            feature_sampling=[{"weights": [1.0, 0.0]}, {"weights": {"c0": 3.0}}, {"per_level": 0.5}],
            feature_costs=[{"c0": 0.5}],
            growth=[{"forced_splits": {"feature": "c0", "threshold": -1.0}}],
            leaves=["vector"],
            linear_leaves=[True],
            effort=[0.0],
        )
    return {"n_estimators": [*range(1, 8), "auto"][rng.integers(0, 8)]} | more


def regression_loss(rng):
    more = pick(rng, loss=["absolute_error", "huber", "quantile", "log_cosh", "normal"])
    return more | (pick(rng, quantile=[0.9, [0.1, 0.5, 0.9]]) if more.get("loss") == "quantile" else {})


CLASS_LOSSES = ["exponential", "smooth_hinge", "focal"]


def bagging(rng, kind):
    members = {
        "Classifier": [
            None,
            spinney.DecisionTreeClassifier(max_depth=3),
            spinney.RandomForestClassifier(2),
            spinney.GradientBoostingClassifier(n_estimators=2),
            spinney.ExtraTreeClassifier(),
        ],
        "Regressor": [
            None,
            spinney.DecisionTreeRegressor(max_depth=3),
            spinney.RandomForestRegressor(2),
            spinney.GradientBoostingRegressor(n_estimators=2),
            spinney.ExtraTreeRegressor(),
        ],
    }[kind]
    more = pick(rng, max_samples=[0.5, 3], max_features=[0.5], oob_score=[True], bootstrap=[False])
    return {"estimator": members[rng.integers(0, len(members))], "n_estimators": int(rng.integers(1, 5))} | more


def adaboost(rng, kind):
    more = pick(rng, max_depth=[2, 5], learning_rate=[0.3], resample=[True], early_stopping=[True], keep_best=[False])
    if kind == "Classifier":
        more |= pick(rng, algorithm=["m1", "real", "gentle", "logit"])
    else:
        more |= pick(rng, loss=["square", "exponential"])
    takes_values = kind == "Regressor" or more.get("algorithm") in ("gentle", "logit")
    if rng.random() < 0.3:
        more["estimator"] = (spinney.RandomForestRegressor if takes_values else spinney.RandomForestClassifier)(2)
    return {"n_estimators": int(rng.integers(1, 5))} | more


def functional(rng):
    learners = [
        "trees",
        "linear",
        "linear_pairs",
        "logistic",
        "splines",
        "neighbors",
        "kernel_ridge",
        ["linear", "stumps"],
    ]
    more = pick(rng, learners=learners, learning_rate=[1.0], step=["fixed"], subsample=[0.6])
    return {"n_estimators": int(rng.integers(1, 5))} | more


def neighbours(rng):
    more = pick(
        rng,
        metric=["manhattan", "chebyshev", "minkowski", "cosine", "mahalanobis", "hamming", "gower"],
        weights=["distance", "tricube"],
        scale=["range", None],
        ties=["all"],
        unseen=["missing", "other"],
    )
    return {"n_neighbors": [1, 3, 5, "cv"][rng.integers(0, 4)]} | more


def margin(rng):
    more = pick(
        rng,
        kernel=["linear", "poly", "sigmoid"],
        gamma=["auto", 0.1],
        scale=[False, "range"],
        shrinking=[False],
        precision=["double"],
        cv=[2],
        unseen=["missing", "other"],
    )
    return {"max_iter": 2000} | more


def plane(rng, kind):
    losses = ["hinge"] if kind == "Classifier" else ["squared_epsilon_insensitive"]
    return pick(rng, loss=losses, C=[0.01, 100.0, "cv"], scale=[False, "range"], cv=[2], unseen=["missing", "other"])


def of_margins(rng, kind):
    """Return a machine, a plane or a perceptron."""
    letter, which = ("C" if kind == "Classifier" else "R"), rng.integers(0, 4)
    if which == 0:
        return f"NuSV{letter}", margin(rng) | pick(rng, nu=[0.1, 0.9])
    if which == 1:
        return f"LinearSV{letter}", plane(rng, kind)
    if which == 2 and kind == "Classifier":
        return "Perceptron", pick(rng, averaged=[True], shuffle=[True], eta0=[0.1], scale=[False])
    more = pick(rng, C=[0.01, 100.0, [0.1, 1.0]])
    if kind == "Classifier":
        more |= pick(rng, probability=[True], multi_class=["ovr"], class_weight=["balanced"])
    return f"SV{letter}", margin(rng) | more


def linear(rng, kind):
    strength = {"C": [0.01, 100.0]} if kind == "Classifier" else {"alpha": [0.01, "cv"]}
    return pick(rng, scale=[False], unseen=["missing", "other"], **strength)


def together(rng):
    """Return members of a stack or a vote."""
    members = [["tree", "linear"], ["forest", "knn"], ["svm", "tree"], ["boosting", "extra-trees"]]
    return {"estimators": members[rng.integers(0, len(members))]}


def class_costs(rng):
    return pick(rng, class_weight=["balanced"], priors=["uniform"])


def drawn(rng):
    """Return (name of the estimator, its parameters, what makes its target)."""
    kind = str(rng.choice(["Classifier", "Regressor"]))
    make = classes if kind == "Classifier" else values
    extra = class_costs(rng) if kind == "Classifier" else {}
    family = rng.integers(0, 20)
    if family in (0, 1):
        if kind == "Regressor" and rng.random() < 0.3:
            return "DecisionTreeRegressor", tree_parameters(rng) | {"criterion": "poisson"}, counts
        if rng.random() < 0.3:
            rpart = {"dialect": "rpart", "missing": "surrogate", "cp": 0.01, "max_competitors": 4, "risk": "error"}
            return f"DecisionTree{kind}", rpart | pick(rng, max_depth=[2, 30], min_samples_leaf=[1, 7]), make
        return f"DecisionTree{kind}", single_tree(rng) | extra, make
    if family == 2:
        return f"ExtraTree{kind}", tree_parameters(rng) | extra, make
    if family in (3, 4):
        return f"RandomForest{kind}", forest(rng) | extra, make
    if family == 5:
        more = forest(rng) | extra
        return f"ExtraTrees{kind}", {n: v for n, v in more.items() if n not in ("oblique", "max_samples")}, make
    if family in (6, 7, 8):
        if kind == "Regressor" and rng.random() < 0.2:
            return "GradientBoostingRegressor", boosting(rng) | {"loss": "poisson"}, counts
        more = regression_loss(rng) if kind == "Regressor" else pick(rng, class_weight=["balanced"], loss=CLASS_LOSSES)
        return f"GradientBoosting{kind}", boosting(rng) | more, make
    if family == 9:
        return f"Bagging{kind}", bagging(rng, kind), make
    if family == 12:
        return f"AdaBoost{kind}", adaboost(rng, kind), make
    if family == 13:
        return f"FunctionalBoosting{kind}", functional(rng), make
    if family == 14:
        return f"KNeighbors{kind}", neighbours(rng), make
    if family == 15:
        return f"Histogram{kind}", pick(rng, cell=[0.25, "cv"], scale=["standard"], empty=["overall"]), make
    if family in (16, 17):
        return *of_margins(rng, kind), make
    if family == 18:
        return f"Linear{kind}", linear(rng, kind), make
    if family == 19 and rng.random() < 0.3:
        return f"Voting{kind}", together(rng), make
    if family == 19:
        return f"Stacking{kind}", together(rng) | {"cv": 2} | pick(rng, passthrough=[False]), make
    if family == 10 and rng.random() < 0.3:
        return "RandomTreesEmbedding", {"n_estimators": 3} | pick(rng, max_depth=[2], sparse_output=[False]), None
    if family == 10:
        return "IsolationForest", {"n_estimators": 4} | pick(rng, max_samples=[0.5, 7], contamination=[0.1]), None
    return "ProximityImputer", {"n_estimators": 3, "n_iter": 1} | pick(rng, kind=["all"], min_samples_leaf=[1]), make


# ---- one fit ---------------------------------------------------------------------------------------------------------


MANY_OUTPUTS = ("Decision", "Extra", "RandomForest")


class Case:
    """Everything that a seed stands for."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.name, self.parameters, make = drawn(rng)
        self.container = str(rng.choice(list(CONTAINERS)))
        if self.name == "ProximityImputer" and self.container == "sparse":
            self.container = "numpy"
        put, only_numbers = CONTAINERS[self.container]
        self.n_rows = int(rng.choice([2, 5, 12, 30, 60, 150]))
        self.columns = make_columns(rng, self.n_rows, only_numbers)
        self.table = put(rng, self.columns)
        self.few = put(np.random.default_rng(seed), rows_of(self.columns, slice(0, 7)))
        self.y = None if make is None else make(rng, self.columns)
        if make in (values, classes) and rng.random() < 0.1 and self.name.startswith(MANY_OUTPUTS):
            self.y = np.column_stack([self.y, make(rng, self.columns)]).astype(object if make is classes else float)
        self.weight = None
        if self.name != "ProximityImputer" and rng.random() < 0.3:
            self.weight = rng.choice([rng.random(self.n_rows), rng.integers(0, 4, self.n_rows) * 1.0])

    def __str__(self):
        return f"{self.name}({self.parameters}) on {self.n_rows} rows of {self.container}"

    def fit(self, n_jobs=1):
        make, jobs = getattr(spinney, self.name), {"random_state": 5}
        if not self.name.startswith("Bagging"):
            jobs["n_jobs"] = n_jobs
        known = make._get_param_names()
        model = make(**(self.parameters | {name: value for name, value in jobs.items() if name in known}))
        weight = {} if self.weight is None else {"sample_weight": self.weight}
        return model.fit(self.table, *(() if self.y is None else (self.y,)), **weight)


def outputs(model, X):
    found = {}
    for name in ("predict", "predict_proba", "score_samples", "transform"):
        if hasattr(model, name):
            answer = getattr(model, name)(X)
            if hasattr(answer, "to_numpy") or hasattr(answer, "to_pandas"):
                answer = (answer if hasattr(answer, "to_numpy") else answer.to_pandas()).to_numpy()
            found[name] = np.concatenate([*map(np.asarray, answer.values())]) if isinstance(answer, dict) else answer
    return {name: _array(answer) for name, answer in found.items()}


def _array(answer):
    if isinstance(answer, list):  # shares of several outputs
        return np.column_stack([np.asarray(part) for part in answer])
    return answer.toarray() if hasattr(answer, "toarray") else np.asarray(answer)


def check_equal(one, other, what):
    for name, answer in one.items():
        same = (answer == other[name]) | ((answer != answer) & (other[name] != other[name]))
        assert np.all(same), f"{name} differs after {what}"


SUMS = ("boosting_", "adaboost_", "functions_")  # models whose scores are what Shapley values add up to


def check_sums(case, model, found):
    if "predict_proba" in found:
        n_outputs = getattr(model, "n_outputs_", 1)
        np.testing.assert_allclose(found["predict_proba"].sum(axis=1), n_outputs, atol=1e-9)
    if "predict" in found and found["predict"].dtype.kind == "f":
        assert np.isfinite(found["predict"]).all(), "a prediction is not finite"
    if not is_parted(model):
        return
    explained = model.shap_values(case.few)
    if isinstance(explained, list):
        total = np.column_stack([part.predictions for part in explained])
        np.testing.assert_allclose(total, found["predict_proba"], atol=1e-9, err_msg="Shapley values do not sum up")
        return
    summed = next((getattr(model, name) for name in SUMS if hasattr(model, name)), None)
    if hasattr(model, "adaboost_") and hasattr(model, "decision_function"):
        expected = model.decision_function(case.few)  # the sum of the scores in another unit
    elif summed is not None:
        expected = summed.scores(model._columns(case.few), 1)
    else:
        expected = found["predict_proba"] if "predict_proba" in found else found["predict"]
    total = explained.predictions.reshape(len(expected), -1)
    expected = expected.reshape(len(expected), -1)
    if total.shape[1] == 1 and expected.shape[1] == 2:
        expected = expected[:, 1:]
    scale = np.abs(explained.values).sum(axis=1).max(initial=1e-300) + np.abs(expected).max()
    np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-9 * scale, err_msg="Shapley values do not sum up")


def is_parted(model):
    """Whether what the model predicts can be parted among the columns."""
    if not hasattr(model, "shap_values") or getattr(model, "oblique", None) or getattr(model, "linear_leaves", False):
        return False
    if hasattr(model, "functions_"):
        return model.learners not in ("linear_pairs", "neighbors", "kernel_ridge")
    return has_one_model(model) and not isinstance(model, spinney.AdaBoostRegressor)


def has_one_model(model):
    """Whether one model predicts, not members of any kind together."""
    return not hasattr(model, "_members")


def members_of(model):
    """Models of one kind that predict together; those of a stack keep the threads they were given."""
    found = getattr(model, "_members", ())
    return () if callable(found) else found


def check_handles(case, model, found):
    if not hasattr(model, "to_predictor") or not has_one_model(model):
        return
    handle = model.to_predictor()
    rows = rows_of(case.columns, slice(0, 3))
    for i, row in enumerate(zip(*rows.values(), strict=True)):
        named = dict(zip(rows, row, strict=True)) if hasattr(model, "feature_names_in_") else list(row)
        np.testing.assert_array_equal(handle.predict(named), found["predict"][i], err_msg="the handle differs")
        if "predict_proba" in found:
            shares = handle.predict_proba(named)
            shares = np.concatenate(shares) if isinstance(shares, list) else shares
            np.testing.assert_array_equal(shares, found["predict_proba"][i], err_msg="shares of the handle")


def check(case, model):
    found = outputs(model, case.few)
    file = io.BytesIO()
    model.save(file)
    check_equal(found, outputs(spinney.load(io.BytesIO(file.getvalue())), case.few), "a file")
    check_equal(found, outputs(pickle.loads(pickle.dumps(model)), case.few), "a pickle")
    if hasattr(model, "to_predictor") and has_one_model(model) and case.name != "IsolationForest":
        predictor = spinney.load_predictor(io.BytesIO(file.getvalue()))
        check_equal({"predict": found["predict"]}, {"predict": predictor.predict(case.few)}, "load_predictor")
    check_sums(case, model, found)
    check_handles(case, model, found)
    other, again = io.BytesIO(), case.fit(n_jobs=3)
    if callable(getattr(model, "_members", None)):  # whose members have parameters
        assert model.fingerprint() == again.fingerprint(), "three threads give another model"
        return
    for part in (again, getattr(again, "forest_", None)):  # the number of threads is a parameter that files hold
        if hasattr(part, "n_jobs"):
            part.n_jobs = getattr(model, "n_jobs", 1)
    for one, part in zip(members_of(model), members_of(again), strict=True):
        part.n_jobs = one.n_jobs
    again.save(other)
    assert file.getvalue() == other.getvalue(), "three threads give another model"


def is_sentence(error):
    text = str(error)
    return (
        isinstance(error, (ValueError, TypeError))
        and len(text) > 30
        and text.endswith((".", "!"))
        and text[0].isalpha()
    )


def outcome(seed):
    """Return what became of a fit, or raise what is wrong with it."""
    case, model = Case(seed), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model = case.fit()
            check(case, model)
        except Exception as error:
            if model is None and is_sentence(error):
                return f"refused: {str(error)[:60]}"
            raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error
    return case.name


class Area:
    """One seed: one fit."""

    def outcome(self, seed):
        return outcome(seed)
