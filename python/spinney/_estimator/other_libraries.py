"""What parameters and arguments of `fit` are called in other libraries, and here.

The words of scikit-learn, LightGBM, XGBoost, CatBoost, rpart, ranger and randomForest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

# ours, the first of these that an estimator has, options of option objects as in "dart.rate": the words of others
_PARAMETERS = {
    ("n_estimators",): "max_iter n_iter iterations num_iterations num_iteration num_boost_round num_round num_rounds "
    "nrounds n_rounds num_trees num_tree n_trees ntree ntrees",
    ("max_leaf_nodes",): "num_leaves num_leaf max_leaves max_leaf",
    ("max_depth",): "depth maxdepth interaction_depth",
    ("learning_rate",): "eta shrinkage shrinkage_rate learn_rate",
    ("l2_regularization",): "reg_lambda lambda_l2 l2_leaf_reg reg_l2 l2 lambda",
    ("regularization.l1",): "reg_alpha lambda_l1 reg_l1 l1 l1_regularization",
    ("regularization.min_gain", "min_impurity_decrease"): "gamma min_split_loss min_split_gain min_gain_to_split "
    "min_impurity_split cegb_penalty_split min_gain",
    ("regularization.min_hessian_leaf",): "min_child_weight min_sum_hessian_in_leaf min_sum_hessian "
    "min_weight_fraction_leaf min_hessian_leaf",
    ("min_samples_leaf",): "min_data_in_leaf min_child_samples min_data min_node_size nodesize minbucket "
    "n_minobsinnode min_bucket",
    ("min_samples_split", "min_samples_leaf"): "minsplit",
    ("subsample", "max_samples"): "subsample max_samples bagging_fraction sub_row bagging bag_fraction "
    "sample_fraction sampsize",
    ("max_features_per_tree", "feature_sampling.per_tree", "max_features"): "colsample_bytree feature_fraction "
    "max_features_per_tree",
    ("feature_sampling.per_level", "max_features"): "colsample_bylevel max_features_per_level",
    ("max_features",): "colsample_bynode feature_fraction_bynode rsm mtry",
    ("max_bins",): "max_bin border_count n_bins max_bin_by_feature",
    ("regularization.max_step",): "max_delta_step poisson_max_delta_step max_step",
    ("loss", "criterion"): "objective loss_function application distribution criterion loss splitrule method",
    ("ccp_alpha", "regularization.l1"): "alpha",
    ("quantile",): "quantile_alpha",
    ("tweedie_power",): "tweedie_variance_power",
    ("scoring", "oob_score"): "metric metrics eval_metric custom_metric custom_loss",
    ("keep_best",): "use_best_model",
    ("validation_fraction",): "eval_fraction",
    ("n_jobs",): "nthread nthreads num_threads n_threads thread_count workers",
    ("random_state",): "seed random_seed data_random_seed bagging_seed feature_fraction_seed drop_seed objective_seed",
    ("distribution",): "aft_loss_distribution",
    ("scale",): "aft_loss_distribution_scale",
    ("huber_share",): "huber_slope huber_delta delta",
    ("verbose",): "verbosity verbose_eval logging_level silent metric_period",
    ("categorical_features",): "cat_features cat_feature categorical_feature categorical_column",
    ("monotonic_cst",): "monotone_constraints monotone_constraint monotonic_constraints",
    ("interaction_cst",): "interaction_constraints",
    ("class_weight",): "class_weights auto_class_weights is_unbalance unbalance",
    ("growth",): "grow_policy growing_strategy",
    ("categories.smoothing",): "cat_smooth min_data_per_group category_smoothing",
    ("categories.l2",): "cat_l2 category_l2",
    ("categories.max_one_hot",): "max_cat_to_onehot one_hot_max_size max_one_hot",
    ("init",): "base_score boost_from_average",
    ("callbacks",): "callback",
    ("estimator",): "base_estimator",
    ("replace", "bootstrap"): "replacement with_replacement",
    ("keep_rows",): "keep_inbag quantreg",
    ("feature_weights", "feature_sampling.weights", "feature_costs"): "split_select_weights feature_weights",
    ("dart.rate",): "rate_drop drop_rate",
    ("dart.skip",): "skip_drop",
    ("dart.max_rounds",): "max_drop",
    ("dart.by",): "sample_type drop_by",
    ("growth.forced_splits",): "forcedsplits_filename forced_splits_file forced_splits_filename fs forced_splits",
    ("regularization.hierarchical_shrinkage",): "path_smooth hierarchical_shrinkage",
    ("linear_leaves",): "linear_tree linear_trees",
    ("linear_leaves.l2",): "linear_lambda linear_l2",
    ("always_try",): "always_split_variables",
    ("oob_score",): "oob_error",
    ("max_competitors",): "maxcompete",
    ("max_surrogates",): "maxsurrogate",
    ("missing_fallback",): "usesurrogate",
    ("surrogate_style",): "surrogatestyle",
    ("cv",): "xval",
    ("priors",): "prior",
    ("feature_costs",): "cost costs first_feature_use_penalties penalties_coefficient "
    "per_object_feature_penalties cegb_tradeoff cegb_penalty_feature_lazy cegb_penalty_feature_coupled",
    ("growth.n_parallel_trees",): "num_parallel_tree num_parallel_trees n_parallel_trees",
    ("sampling",): "sampling_method bootstrap_type data_sample_strategy",
    ("leaves",): "multi_strategy",
    ("truncation",): "lambdarank_truncation_level max_position",
    ("gains",): "label_gain ndcg_exp_gain",
}

# words of others: a parameter that an estimator must have for the sentence to help, and the sentence
_SENTENCES = {
    "early_stopping_rounds early_stopping_round od_wait": (
        "n_iter_no_change",
        "Use early_stopping=True and n_iter_no_change.",
    ),
    "eval_at ndcg_eval_at": ("truncation", "Say it in scoring, such as scoring='ndcg@5'."),
    "scale_pos_weight": ("class_weight", "Use class_weight, such as class_weight={1: 10.0}, or 'balanced'."),
    "subsample_freq bagging_freq": ("subsample", "Rows are drawn anew for every round. Leave it out."),
    "enable_categorical": ("categorical_features", "Strings and categories are taken as they are. Leave it out."),
    "boosting_type booster boosting": (
        "dart",
        "Use dart for DART and sampling='goss' for GOSS; else leave it out.",
    ),
    "tree_method device task_type device_type predictor gpu_id n_gpus updater process_type refresh_leaf "
    "max_cached_hist_node deterministic force_row_wise force_col_wise use_quantized_grad num_grad_quant_bins "
    "quant_train_renew_leaf stochastic_rounding feature_pre_filter histogram_pool_size two_round save_memory "
    "write_forest": ("n_estimators", "There is one way only. Leave it out."),
    "sigmoid": ("regularization", "Scores are log-odds as they are. Leave it out."),
    "extra_trees extra_seed": (
        "regularization",
        "Thresholds are searched for, not drawn. Use max_features or subsample, or a forest of extra trees.",
    ),
    "probability": ("n_estimators", "Classes have shares: ask predict_proba. Leave it out."),
    "holdout inbag": ("keep_rows", "Rows of weight 0 are left out: pass sample_weight to fit."),
    "node_stats": ("keep_rows", "Nodes keep their rows and values. Leave it out."),
    "num_random_splits minprop regularization_factor regularization_usedepth": (
        "keep_rows",
        "It has no counterpart. Use feature_costs, feature_weights and min_samples_leaf.",
    ),
    "respect_unordered_factors": ("categorical_features", "Categories are split as they are. Leave it out."),
    "parms": ("cost_splits", "Its parts are parameters of their own: priors, cost_matrix and criterion."),
    "control": (
        "max_surrogates",
        "Its parts are parameters of their own, such as min_samples_split, min_samples_leaf, cp and max_depth.",
    ),
    "other_rate": ("dart", "Use subsample: the sum of LightGBM's top_rate and other_rate."),
    "top_share": ("dart", "Use spinney.Goss(top_rate=...) as the sampling."),
    "top_rate": ("dart", "Use spinney.Goss(top_rate=...) as the sampling."),
    "one_drop xgboost_dart_mode normalize_type uniform_drop": (
        "dart",
        "A round drops at least one other, unless it drops none. Leave it out.",
    ),
    "importance_type importance local_importance scale_permutation_importance": (
        "n_estimators",
        "Ask the fitted model: importances(kind=...).",
    ),
    "eval_set evals valid_sets": ("early_stopping", "Pass held-out rows to fit, as X_val and y_val."),
    "ccp_alpha": ("regularization", "Boosted trees are not pruned. Use min_impurity_decrease or max_leaf_nodes."),
    "od_pval od_type best_model_min_trees": ("n_iter_no_change", "Use early_stopping=True, n_iter_no_change and tol."),
    "feature_contri": (
        "feature_costs",
        "Use feature_costs: a column that costs more is chosen less often.",
    ),
    "class_weight": ("tweedie_power", "Values have no classes. Pass sample_weight to fit."),
    "has_time": ("regularization", "Pass the time of each row to fit, as time."),
    "missing nan_mode use_missing zero_as_missing": (
        "regularization",
        "Missing values take the side that saves more. Leave it out.",
    ),
    "feature_types": (
        "categorical_features",
        "Kinds are read off the table; numbers that are categories: categorical_features.",
    ),
    "ignored_features": ("n_estimators", "Leave these columns out of the table."),
    "validate_parameters": ("n_estimators", "Parameters are always checked. Leave it out."),
    "subsample_for_bin bin_construct_sample_cnt min_data_in_bin feature_border_type per_float_feature_quantization "
    "input_borders output_borders "
    "dev_efb_max_buckets sparse_features_conflict_fraction": (
        "max_bins",
        "It has no counterpart, because bins are made of the columns' own values. Use max_bins.",
    ),
    "max_cat_threshold simple_ctr combinations_ctr per_feature_ctr ctr_description ctr_target_border_count "
    "ctr_leaf_count_limit store_all_simple_ctr max_ctr_complexity final_ctr_computation_mode counter_calc_method "
    "ctr_history_unit fold_permutation_block fold_len_multiplier approx_on_full_history model_size_reg": (
        "categories",
        "It has no counterpart, because categories are sorted by their gradients in each node and cut like numbers. "
        "Use categories=spinney.CategoryOptions(...).",
    ),
    "leaf_estimation_iterations leaf_estimation_method leaf_estimation_backtracking": (
        "regularization",
        "It has no counterpart, because leaves take one step, which cannot run away. Use the max_step of "
        "spinney.Regularization(...).",
    ),
    "random_strength random_score_type bagging_temperature mvs_reg sampling_unit sampling_frequency": (
        "feature_sampling",
        "It has no counterpart, because cuts are scored without noise, and rows are drawn or not. Use subsample, "
        "sampling and max_features.",
    ),
    "langevin diffusion_temperature posterior_sampling model_shrink_rate model_shrink_mode score_function": (
        "learning_rate",
        "It has no counterpart, because a round follows the loss alone. Use learning_rate and subsample.",
    ),
    "devices device_config gpu_ram_part pinned_memory_size gpu_cat_features_storage data_partition used_ram_limit "
    "dev_score_calc_obj_block_size": (
        "n_jobs",
        "It has no counterpart, because it runs on processors alone. Use n_jobs, and spinney.scan for tables larger "
        "than memory.",
    ),
    "train_dir save_snapshot snapshot_file snapshot_interval allow_writing_files name metadata": (
        "warm_start",
        "It has no counterpart, because a fit writes no files. Use save, warm_start and callbacks.",
    ),
    "classes_count num_class num_classes class_names allow_const_label target_border": (
        "class_weight",
        "It has no counterpart, because classes are those of y, sorted. Leave it out.",
    ),
    "text_features tokenizers dictionaries feature_calcers text_processing embedding_features": (
        "n_estimators",
        "It has no counterpart, because columns are numbers, categories or times. Make numbers of texts and vectors "
        "first.",
    ),
    "monotone_constraints_method monotone_penalty": (
        "monotonic_cst",
        "Monotone columns are kept exactly, and splits by them pay no penalty. Leave it out.",
    ),
    "refit_decay_rate": ("n_estimators", "Ask the fitted model: refit(X, y, decay=...)."),
    "fair_c": ("huber_share", "Use loss='log_cosh' and huber_share."),
    "weight_column": ("n_estimators", "Pass the weights of rows to fit, as sample_weight."),
    "fixed_binary_splits": ("categories", "It has no counterpart, because each cut is searched for. Leave it out."),
}

# ours: the words of others for arguments of `fit`
_ARGUMENTS = {
    "sample_weight": "weights weight sample_weights case_weights w",
    "sample_weight_val": "sample_weight_eval_set eval_sample_weight weight_val sample_weights_val",
    "offset": "init_score base_margin baseline offsets",
    "offset_val": "eval_init_score base_margin_eval_set",
    "groups": "group qid group_id cluster",
    "X_val": "X_valid X_validation eval_X",
    "y_val": "y_valid y_validation eval_y",
}

PARAMETERS = {word: ours for ours, words in _PARAMETERS.items() for word in words.split()}
ARGUMENTS = {word: (ours,) for ours, words in _ARGUMENTS.items() for word in words.split()}
_ADVICE = {word: advice for words, advice in _SENTENCES.items() for word in words.split()}
_OPTIONS = {
    "n_estimators": "trees",
    "random_state": "seed",
    "sample_weight": "weight",
    "groups": "group",
    "dart.rate": "dart",
    "growth.n_parallel_trees": "parallel-trees",
    "regularization.hierarchical_shrinkage": "hierarchical-shrinkage",
}
_OPTION_CLASSES = {  # of the parameters that take option objects
    "categories": "CategoryOptions",
    "dart": "Dart",
    "feature_sampling": "FeatureSampling",
    "growth": "Growth",
    "linear_leaves": "LinearLeaves",
    "regularization": "Regularization",
}
_OURS = {name.partition(".")[0] for names in _PARAMETERS for name in names}
_OURS |= {needed for needed, _ in _SENTENCES.values()}
_COMMAND_WORDS = {  # where a command's answer is not that of a parameter
    "alpha": "It is '--quantile' with --loss quantile, and '--ccp-alpha' of trees. The share of --loss huber and the "
    "penalty of leaves are parameters in Python, huber_share and regularization.",
    **dict.fromkeys(
        ("n_jobs", "jobs", "threads", *_PARAMETERS[("n_jobs",)].split()),
        "A command uses all processors that it may. Leave it out.",
    ),
}
_HELD_OUT_WORDS = ("eval_set", "evals", "valid_sets", "validation_data", "eval_names")


def advise_parameter(word: str, known: Collection[str]) -> str | None:
    """Say what another library's parameter is here; None if nothing is known of it."""
    word = word.replace(".", "_")
    if word in _ADVICE and _ADVICE[word][0] in known:
        return _ADVICE[word][1]
    ours = _first_known(PARAMETERS.get(word, ()), known)
    return None if ours is None else f"Here it is {_quoted(ours)}."


def advise_argument(word: str, arguments: Collection[str], parameters: Collection[str], estimator: str) -> str | None:
    """Say what another library's argument of `fit` is here; None if nothing is known of it."""
    word = word.replace(".", "_")
    if word in _HELD_OUT_WORDS and "X_val" in arguments:
        return "Pass held-out rows as X_val and y_val."
    if word in _HELD_OUT_WORDS and "oob_score" in parameters:
        return (
            "It needs no held-out rows: with oob_score=True it judges itself by the rows that each member has not seen."
        )
    ours = argument_called(word, arguments)
    if ours is not None:
        return f"Here it is '{ours}'."
    if word in _ADVICE and _ADVICE[word][0] in parameters:
        return f"Parameters go to the estimator. {_ADVICE[word][1]}"
    name = _first_known((word, *PARAMETERS.get(word, ())), parameters)
    return None if name is None else f"Parameters go to the estimator: {estimator}({_assigned(name)})."


def _first_known(names: Iterable[str], known: Collection[str]) -> str | None:
    """Return the first name that an estimator has as a parameter, or as an option of one."""
    return next((name for name in names if name.partition(".")[0] in known), None)


def _assigned(name: str) -> str:
    """Return how a parameter is set, as in ``dart=spinney.Dart(rate=...)``."""
    parameter, _, option = name.partition(".")
    return f"{parameter}=spinney.{_OPTION_CLASSES[parameter]}({option}=...)" if option else f"{parameter}=..."


def _quoted(name: str) -> str:
    return _assigned(name) if "." in name else f"'{name}'"


def argument_called(word: str, arguments: Collection[str]) -> str | None:
    """Return the argument of `fit` that another library's word means; None if there is none."""
    return next((name for name in ARGUMENTS.get(word.replace(".", "_"), ()) if name in arguments), None)


def advise_option(word: str, options: Collection[str]) -> str | None:
    """Say what a library's word for an option of a command is here, spinney's own included; None if unknown."""
    word = word.lstrip("-").replace("-", "_").replace(".", "_")
    if word in _COMMAND_WORDS:
        return _COMMAND_WORDS[word]
    names = (word, *PARAMETERS.get(word, ()), *ARGUMENTS.get(word, ()))
    for name in names:
        if (found := _option_of(name, options)) is not None:
            return f"Here it is '{found}'."
    if word not in _OURS and word in _ADVICE:
        return _in_options(_ADVICE[word][1], options)
    if len(names) == 1 and word not in _OURS:
        return None
    return f"It is a parameter in Python, {_quoted(word if word in _OURS else names[1])}, and no option here."


def _option_of(parameter: str, options: Collection[str]) -> str | None:
    names = (_OPTIONS.get(parameter, parameter), parameter.removeprefix("n_"))
    return next((found for name in names if (found := f"--{name.replace('_', '-')}") in options), None)


def _in_options(advice: str, options: Collection[str]) -> str:
    """Put the options of a command in the place of parameters; say that others are for Python."""

    def option(found: re.Match[str]) -> str:
        name = _option_of(found["name"], options) if found["name"] in _OURS else None
        return found[0] if name is None else f"{name} {found['value']}" if found["value"] else name

    said = re.sub(r"\b(?P<name>[a-z]\w*)(?:='?(?P<value>[\w.]+)'?)?(?=[\s,;.:]|$)", option, advice)
    is_for_python = any(word in _OURS for word in re.findall(r"(?<![\w-])\w+", said)) or re.search(
        r"=|\(|\bto fit\b", said
    )
    return f"It is no option here. In Python: {advice}" if is_for_python else said
