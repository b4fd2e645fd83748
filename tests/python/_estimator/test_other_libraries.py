"""Parameters and fit arguments by the names of other libraries are refused with the right name of ours."""

import inspect
import re

import numpy as np
import pytest
import spinney
from spinney._estimator.other_libraries import advise_parameter, other_names

ESTIMATORS = [name for name in spinney.__all__ if hasattr(getattr(spinney, name), "fit")]


@pytest.mark.parametrize(
    ("name", "word", "ours"),
    [
        ("GradientBoostingClassifier", "max_iter", "n_estimators"),
        ("GradientBoostingClassifier", "num_leaves", "max_leaf_nodes"),
        ("GradientBoostingClassifier", "reg_lambda", "l2_regularization"),
        ("GradientBoostingClassifier", "l2_leaf_reg", "l2_regularization"),
        ("GradientBoostingClassifier", "lambda_l1", "regularization=spinney.Regularization(l1=...)"),
        ("GradientBoostingClassifier", "iterations", "n_estimators"),
        ("GradientBoostingClassifier", "eta", "learning_rate"),
        ("GradientBoostingClassifier", "gamma", "regularization=spinney.Regularization(min_gain=...)"),
        (
            "GradientBoostingClassifier",
            "min_child_weight",
            "regularization=spinney.Regularization(min_hessian_leaf=...)",
        ),
        ("GradientBoostingClassifier", "colsample_bytree", "feature_sampling=spinney.FeatureSampling(per_tree=...)"),
        ("GradientBoostingClassifier", "scale_pos_weight", "class_weight"),
        ("GradientBoostingClassifier", "is_unbalance", "class_weight='balanced'"),
        ("GradientBoostingRegressor", "objective", "loss"),
        ("GradientBoostingRegressor", "early_stopping_rounds", "n_iter_no_change"),
        ("GradientBoostingRegressor", "thread_count", "n_jobs"),
        ("GradientBoostingRegressor", "cat_features", "categorical_features"),
        ("GradientBoostingRegressor", "eval_set", "y_val"),
        ("RandomForestClassifier", "ntree", "n_estimators"),
        ("RandomForestClassifier", "mtry", "max_features"),
        ("RandomForestClassifier", "num_leaves", "max_leaf_nodes"),
        ("RandomForestRegressor", "subsample", "max_samples"),
        ("RandomForestRegressor", "min_node_size", "min_samples_leaf"),
        ("DecisionTreeClassifier", "minsplit", "min_samples_split"),
        ("DecisionTreeClassifier", "gamma", "min_impurity_decrease"),
        ("DecisionTreeRegressor", "sample_weight", "to fit"),
        ("GradientBoostingClassifier", "lambda", "l2_regularization"),
        ("GradientBoostingClassifier", "alpha", "regularization=spinney.Regularization(l1=...)"),
        ("GradientBoostingClassifier", "max_bin_by_feature", "max_bins"),
        ("GradientBoostingClassifier", "poisson_max_delta_step", "regularization=spinney.Regularization(max_step=...)"),
        ("GradientBoostingClassifier", "deterministic", "Leave it out"),
        ("GradientBoostingClassifier", "num_class", "Leave it out"),
        ("GradientBoostingClassifier", "use_missing", "Leave it out"),
        ("GradientBoostingClassifier", "weights", "Pass it to fit, as sample_weight"),
        ("GradientBoostingClassifier", "shrinkage", "learning_rate"),
        ("GradientBoostingClassifier", "feature_contri", "costs more is chosen less often"),
        ("GradientBoostingRegressor", "bagging_seed", "random_state"),
        ("GradientBoostingRegressor", "huber_slope", "huber_share"),
        ("GradientBoostingRegressor", "monotone_penalty", "Leave it out"),
        ("GradientBoostingRegressor", "refit_decay_rate", "refit(X, y, decay=...)"),
        ("GradientBoostingRegressor", "min_data_per_group", "categories=spinney.CategoryOptions(smoothing=...)"),
        ("GradientBoostingRegressor", "drop_rate", "dart=spinney.Dart(rate=...)"),
        ("GradientBoostingRegressor", "skip_drop", "dart=spinney.Dart(skip=...)"),
        ("GradientBoostingRegressor", "top_rate", "spinney.Goss(top_rate=...) as the sampling"),
        ("GradientBoostingRegressor", "subsample_freq", "New rows are drawn for every round"),
        ("GradientBoostingRegressor", "forcedsplits_filename", "growth=spinney.Growth(forced_splits=...)"),
        ("GradientBoostingRegressor", "feature_weights", "feature_sampling=spinney.FeatureSampling(weights=...)"),
        ("GradientBoostingSurvival", "aft_loss_distribution", "In spinney it is called 'distribution'"),
        ("GradientBoostingSurvival", "aft_loss_distribution_scale", "In spinney it is called 'scale'"),
        ("GradientBoostingRanker", "lambdarank_truncation_level", "truncation"),
        ("GradientBoostingRanker", "label_gain", "gains"),
        ("GradientBoostingRanker", "eval_at", "ndcg@5"),
        ("RandomForestClassifier", "num.trees", "n_estimators"),
        ("RandomForestClassifier", "min.bucket", "min_samples_leaf"),
        ("RandomForestClassifier", "split.select.weights", "feature_weights"),
        ("RandomForestClassifier", "case.weights", "Pass it to fit, as sample_weight"),
        ("RandomForestClassifier", "importance", "importances(kind=...)"),
        ("DecisionTreeClassifier", "method", "criterion"),
        ("DecisionTreeClassifier", "parms", "priors"),
        ("DecisionTreeClassifier", "control", "min_samples_split"),
        ("BaggingClassifier", "base_estimator", "estimator"),
        ("BaggingClassifier", "max_depth", "estimator=DecisionTreeClassifier(max_depth=...)"),
    ],
)
def test_a_parameter_by_anothers_name(name, word, ours):
    kind = getattr(spinney, name)
    with pytest.raises(TypeError, match=f"{name} has no parameter '{word}'") as made:
        kind(**{word: 1})
    assert ours in str(made.value)
    with pytest.raises(ValueError, match=f"{name} has no parameter '{word}'") as changed:
        kind().set_params(**{word: 1})
    assert ours in str(changed.value)


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("--num-leaves", "In spinney it is called '--max-leaf-nodes'."),
        ("--max-iter", "In spinney it is called '--trees'."),
        ("--n-estimators", "In spinney it is called '--trees'."),
        ("--num.trees", "In spinney it is called '--trees'."),
        ("--random-state", "In spinney it is called '--seed'."),
        ("--case-weights", "In spinney it is called '--weight'."),
        ("--qid", "In spinney it is called '--group'."),
        ("--reg-lambda", "It is a parameter in Python, 'l2_regularization', and no option here."),
        ("--alpha", "Use '--quantile' with --loss quantile, or '--ccp-alpha' with trees."),
        ("--n-jobs", "A command uses all available processors. Leave it out."),
        ("--nthread", "A command uses all available processors. Leave it out."),
        ("--booster", "Use --dart for DART and --sampling goss for GOSS; else leave it out."),
        ("--device", "It has no counterpart, because there is only one implementation. Leave it out."),
        ("--task-type", "It has no counterpart, because there is only one implementation. Leave it out."),
        ("--subsample-freq", "New rows are drawn for every round. Leave it out."),
        ("--other-rate", "Set --subsample to the sum of LightGBM's top_rate and other_rate."),
        ("--early-stopping-rounds", "It is no option here. In Python: Use early_stopping=True and n_iter_no_change."),
        ("--eval-set", "It is no option here. In Python: Pass held-out rows to fit, as X_val and y_val."),
        ("--class-weight", "It is a parameter in Python, 'class_weight', and no option here."),
        ("--max-bins", "It is a parameter in Python, 'max_bins', and no option here."),
        ("--importance-type", "It is no option here. In Python: Call importances(kind=...) of the fitted model."),
        ("--targte", "(Did you mean one of:"),
    ],
)
def test_an_option_by_anothers_name(word, advice):
    from click.testing import CliRunner
    from spinney.cli.commands import spinney as command

    found = CliRunner().invoke(command, ["fit", "table.csv", "--target", "y", word, "3"])
    assert found.exit_code == 2
    assert f"No such option '{word}'. {advice}" in found.stderr


def test_every_word_of_the_table_has_an_answer_as_an_option_of_boosting():
    from spinney._estimator.other_libraries import advise_option
    from spinney.cli.commands import fit

    options = [name for option in fit.params for name in option.opts]
    for word in (*other_names().parameters, *other_names().arguments, *other_names().advice):
        option = f"--{word.replace('_', '-')}"
        if option in options:
            continue
        advice = advise_option(option, options)
        assert advice is not None, word
        assert advice.endswith("."), word
        for named in re.findall(r"--[\w-]+", advice):
            assert named in options, (word, advice)


def test_every_loss_of_boosting_is_one_of_the_command():
    from spinney import _engine
    from spinney.cli.commands import fit

    (loss,) = (option for option in fit.params if option.name == "loss")
    known = set()
    for name in ("Classifier", "Regressor", "Ranker", "Survival"):
        kind = getattr(spinney, f"GradientBoosting{name}")
        known |= {
            word for words in kind._parameter_constraints["loss"] if hasattr(words, "options") for word in words.options
        }
    assert known == set(loss.type.choices)
    assert known >= {traits.name for traits in _engine.boosting_losses() if traits.name == traits.public_name}


def test_every_parameter_of_the_other_boosters_is_ours_or_has_an_answer():
    from sklearn import ensemble

    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    catboost = pytest.importorskip("catboost")
    classifier, regressor = spinney.GradientBoostingClassifier, spinney.GradientBoostingRegressor
    others = [
        (lightgbm.LGBMClassifier, classifier),
        (lightgbm.LGBMRegressor, regressor),
        (catboost.CatBoostClassifier, classifier),
        (ensemble.HistGradientBoostingClassifier, classifier),
        (ensemble.HistGradientBoostingRegressor, regressor),
        (ensemble.GradientBoostingClassifier, classifier),
    ]
    words = [(word, ours) for kind, ours in others for word in inspect.signature(kind.__init__).parameters]
    words += [(word, classifier) for word in xgboost.XGBClassifier().get_params()]
    for word, ours in words:
        known = inspect.signature(ours.__init__).parameters
        if word not in known and word not in ("self", "kwargs"):
            assert advise_parameter(word, known) is not None, (ours.__name__, word)


@pytest.mark.parametrize(
    ("name", "word", "ours"),
    [
        ("GradientBoostingClassifier", "eval_set", "X_val and y_val"),
        ("GradientBoostingClassifier", "sample_weight_eval_set", "sample_weight_val"),
        ("GradientBoostingClassifier", "init_score", "offset"),
        ("GradientBoostingClassifier", "base_margin", "offset"),
        ("GradientBoostingClassifier", "verbose", "GradientBoostingClassifier(verbose=...)"),
        ("GradientBoostingClassifier", "early_stopping_rounds", "n_iter_no_change"),
        ("GradientBoostingRegressor", "categorical_feature", "GradientBoostingRegressor(categorical_features=...)"),
        ("GradientBoostingRegressor", "sample_weights", "sample_weight"),
        ("RandomForestClassifier", "eval_set", "oob_score"),
        ("RandomForestClassifier", "weights", "sample_weight"),
        ("DecisionTreeRegressor", "eval_set", "X_val and y_val"),
        ("IsolationForest", "colour", "It takes X, y and sample_weight."),
    ],
)
def test_an_argument_of_fit_by_anothers_name(name, word, ours):
    model = getattr(spinney, name)()
    with pytest.raises(TypeError, match=rf"{name}\.fit has no argument '{word}'") as found:
        model.fit([[1.0], [2.0]], [0, 1], **{word: 1})
    assert ours in str(found.value)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_hint_names_what_is_there(name):
    kind = getattr(spinney, name)
    known, arguments = set(inspect.signature(kind).parameters), set(inspect.signature(kind.fit).parameters)
    for word in other_names().parameters.keys() - known - set(kind._other_names):
        with pytest.raises(TypeError) as error:
            kind(**{word: 1})
        for quoted in re.findall(r"In spinney it is called '(\w+)'", str(error.value)):
            assert quoted in known, str(error.value)
        for parameter, options, option in re.findall(
            r"In spinney it is called (\w+)=spinney\.(\w+)\((\w+)=", str(error.value)
        ):
            assert parameter in known, str(error.value)
            assert option in inspect.signature(getattr(spinney, options)).parameters, str(error.value)
    for word in other_names().arguments.keys() - arguments:
        with pytest.raises(TypeError) as error:
            kind.fit(object.__new__(kind), [[1.0], [2.0]], **{word: 1})
        for quoted in re.findall(r"In spinney it is called '(\w+)'", str(error.value)):
            assert quoted in arguments, str(error.value)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_signature_of_fit_is_its_own(name):
    kind = getattr(spinney, name)
    assert list(inspect.signature(kind.fit).parameters)[:2] == ["self", "X"]
    assert kind.fit.__doc__


@pytest.mark.parametrize(
    ("name", "word", "ours"),
    [
        ("RandomForestRegressor", "quantiles", "Use the method predict_quantiles."),
        ("GradientBoostingRegressor", "quantiles", "Use the method predict_quantiles."),
        ("GradientBoostingClassifier", "ntree_limit", "Use the method staged_predict."),
        ("GradientBoostingClassifier", "num_iteration", "Use the method staged_predict."),
        ("GradientBoostingClassifier", "raw_score", "Use the method decision_function."),
        ("GradientBoostingClassifier", "output_margin", "Use the method decision_function."),
        (
            "GradientBoostingRegressor",
            "output_margin",
            "Predictions are the raw scores; with a log link, as of loss='poisson', raw scores are their logarithms.",
        ),
        ("RandomForestClassifier", "output_margin", "It takes X."),
        ("GradientBoostingRegressor", "pred_contrib", "Use the method shap_values."),
        ("GradientBoostingClassifier", "prediction_type", "Use the method predict_proba."),
        ("RandomForestClassifier", "type", "Use the method predict_proba."),
        (
            "GradientBoostingRegressor",
            "prediction_type",
            "predict returns numbers. For their uncertainty, use predict_interval if the model has it.",
        ),
        ("SVC", "raw_score", "Use the method decision_function."),
        ("GradientBoostingRegressor", "colour", "It takes X and offset."),
        ("KNeighborsRegressor", "colour", "It takes X."),
    ],
)
def test_an_argument_of_predict_by_anothers_name(name, word, ours):
    with pytest.raises(TypeError) as found:
        getattr(spinney, name)().predict([[1.0]], **{word: 1})
    assert str(found.value) == f"{name}.predict has no argument '{word}'. {ours}"


@pytest.mark.parametrize(
    ("function", "name", "ours"),
    [
        ("study", "metric", "scoring"),
        ("study", "group", "groups"),
        ("study", "max_seconds", "minutes"),
        ("compare", "metrics", "scoring"),
        ("compare", "folds", "cv"),
    ],
)
def test_study_and_compare_name_the_argument_that_is_meant(function, name, ours):
    with pytest.raises(TypeError, match=f"{function} has no argument '{name}'. In spinney it is called '{ours}'"):
        getattr(spinney, function)([[0.0]], [0], **{name: 1})
    with pytest.raises(TypeError, match=rf"{function} has no argument 'colour'\. It takes .*, random_state, "):
        getattr(spinney, function)([[0.0]], [0], colour=1)
    with pytest.raises(TypeError, match=rf"{function} has no argument 'repeat'\. Did you mean 'repeats'\?"):
        getattr(spinney, function)([[0.0]], [0], repeat=1)


def test_other_evaluations_name_the_argument_that_is_meant():
    for function in (spinney.permutation_importance, spinney.plot_tuning):
        with pytest.raises(TypeError, match=r"has no argument 'metric'\. In spinney it is called 'scoring'"):
            function(spinney.DecisionTreeClassifier(), [[0.0]], [0], metric="auc")


def test_a_wrong_option_gets_the_options_in_order_and_the_nearest():
    X, y = [[0.0], [1.0]], ["a", "b"]
    with pytest.raises(
        ValueError, match=r"'chi2', 'entropy', 'gain_ratio', .* Got 'entopy' .* Did you mean 'entropy'\?"
    ):
        spinney.DecisionTreeClassifier(criterion="entopy").fit(X, y)
    with pytest.raises(ValueError, match=r"Got 'fifty' instead\.$"):
        spinney.BaggingClassifier(n_estimators="fifty").fit(X, y)


WORDS = {
    "best_iteration_": "n_iter_",
    "best_score_": "validation_score_",
    "evals_result": "history_",
    "get_booster": "spinney.to_xgboost",
    "booster_": "spinney.to_lightgbm",
    "save_model": "save(file)",
    "load_model": "spinney.load",
    "feature_name_": "feature_names_in_",
    "get_feature_importance": "importances(kind=...)",
}


@pytest.mark.parametrize("word", WORDS)
def test_an_attribute_of_another_booster_names_ours(word):
    model = spinney.GradientBoostingRegressor()
    with pytest.raises(AttributeError) as found:
        getattr(model, word)
    assert str(found.value).startswith(f"GradientBoostingRegressor has no attribute '{word}'. ")
    assert WORDS[word] in str(found.value)
    assert not hasattr(model, word)
    with pytest.raises(AttributeError, match="object has no attribute"):  # a tree has no rounds
        getattr(spinney.DecisionTreeRegressor(), word)


@pytest.mark.parametrize(
    ("name", "word", "ours"),
    [
        ("SVC", "probA_", "predict_proba"),
        ("Perceptron", "t_", "n_updates_"),
        ("LinearSVC", "sparsify", "scipy.sparse.csr_array"),
        ("GradientBoostingClassifier", "do_early_stopping_", "n_iter_"),
    ],
)
def test_an_attribute_of_scikit_learn_names_ours(name, word, ours):
    model = getattr(spinney, name)()
    with pytest.raises(AttributeError, match=rf"{name} has no attribute '{word}'\. .*{ours}"):
        getattr(model, word)
    assert not hasattr(model, word)


@pytest.mark.parametrize(
    ("name", "parameter", "value", "ours"),
    [
        ("GradientBoostingClassifier", "loss", "binary:logistic", "log_loss"),
        ("GradientBoostingRegressor", "loss", "reg:squarederror", "squared_error"),
        ("GradientBoostingRegressor", "growth", "lossguide", "leaf"),
        ("RandomForestRegressor", "criterion", "mse", "squared_error"),
        ("AdaBoostClassifier", "algorithm", "SAMME.R", "real"),
    ],
)
def test_values_of_other_libraries_name_ours(name, parameter, value, ours):
    model = getattr(spinney, name)(**{parameter: value})
    with pytest.raises(ValueError, match=rf"Got '{value}' instead\. In spinney it is called '{ours}'\.$"):
        model.fit([[0.0], [1.0]], [0, 1])


def test_values_of_spinney_are_options_of_some_estimator():
    kinds = [getattr(spinney, name) for name in spinney.__all__]
    allowed = [c for kind in kinds for words in getattr(kind, "_parameter_constraints", {}).values() for c in words]
    options = {option for one in allowed for option in getattr(one, "options", ())}
    assert {name for ours in other_names().values.values() for name in ours} <= options


@pytest.mark.parametrize("name", ["SVC", "KNeighborsRegressor", "LinearClassifier"])
def test_models_without_shapley_values_name_other_explanations(name):
    model = getattr(spinney, name)()
    with pytest.raises(AttributeError, match=rf"{name} has no attribute 'shap_values'.*permutation_importance"):
        model.shap_values([[0.0]])
    assert not hasattr(model, "shap_values")


def test_advice_on_attributes_names_what_is_there():
    X, y = np.arange(60.0).reshape(30, 2), np.arange(30.0)
    model = spinney.GradientBoostingRegressor(n_estimators=3).fit(X, y, X_val=X, y_val=y)
    model.set_params(loss="squared_error").feature_names_in_ = np.array(["a", "b"])
    model.history_ = {}  # of several validation sets
    perceptron = spinney.Perceptron().partial_fit(X, y > 9, classes=[False, True])
    machine = spinney.SVC(probability=True, random_state=0).fit(X, y > 9)
    for needed, text in other_names().attributes.values():
        owner = next(one for one in (model, perceptron, machine) if not needed or needed in vars(one))
        for name in re.findall(r"(?<![\w.])([a-z_]+_)(?![\w])|(?<![\w.])([a-z_]+)\(", text):
            assert hasattr(owner, "".join(name)), text
        for name in re.findall(r"spinney\.(\w+)", text):
            assert hasattr(spinney, name), text


def test_words_of_predictions_apply_to_probabilities_too():
    X, y = np.arange(60.0).reshape(30, 2), np.arange(30) % 2
    model = spinney.GradientBoostingClassifier(n_estimators=3).fit(X, y)
    with pytest.raises(TypeError, match=r"predict_proba has no argument 'raw_score'. Use the method decision_function"):
        model.predict_proba(X, raw_score=True)
    with pytest.raises(TypeError, match=r"'base_margin'. In spinney it is called 'offset'"):
        model.predict(X, base_margin=y)
    with pytest.raises(TypeError, match=r"'validate_features'. It has no counterpart"):
        model.predict(X, validate_features=False)
    with pytest.raises(TypeError, match=r"'base_margin'. It takes X"):
        spinney.DecisionTreeClassifier().fit(X, y).predict(X, base_margin=y)


@pytest.mark.parametrize("word", ["xgb_model", "init_model"])
def test_a_model_to_start_from_is_a_warm_start(word):
    with pytest.raises(TypeError, match="Use warm_start=True"):
        spinney.GradientBoostingRegressor().fit([[1.0], [2.0]], [0, 1], **{word: None})
