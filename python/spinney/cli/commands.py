"""The commands of ``spinney``: options and help only; what they do lives in a module of its own each."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import click
import rich  # noqa: F401  (asked for here, so that a missing extra shows at once)

import spinney._engine as _engine
from spinney._names import FITTED_BY_COMMAND, FITTED_BY_COMMAND_ALONE
from spinney.cli.options import (
    BOOSTING_OPTIONS,
    FILE,
    LARGEST_SEED,
    Number,
    NumberOrWord,
    Whole,
    boosting_options,
    delimiter_option,
    drop_option,
    encoding_option,
    json_option,
    spinney,
    target_option,
    task_option,
)

__all__ = ["spinney"]

if find_spec("polars") is None:
    raise ModuleNotFoundError("No module named 'polars'", name="polars")


def _quantiles(_context: click.Context, _option: click.Parameter, given: str | None) -> float | list[float] | None:
    """Read one quantile, or several with commas between them."""
    if given is None:
        return None
    try:
        levels = [float(part) for part in given.split(",")]
    except ValueError:
        levels = []
    if not levels or not all(0 < level < 1 for level in levels) or sorted(set(levels)) != levels:
        raise click.BadParameter("Give numbers between 0 and 1 in ascending order, such as 0.05,0.5,0.95.")
    return levels[0] if len(levels) == 1 else levels


_NUMBER_LOSSES = tuple(traits.name for traits in _engine.boosting_losses() if not traits.of_classes)
_CLASS_LOSSES = ("log_loss", *(traits.name for traits in _engine.boosting_losses() if traits.of_two_classes))
_LOSSES_ALONE = {"ranker": ("lambdamart", "pairwise"), "survival": ("cox", "aft")}
_CRITERIA = (
    *("gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio"),
    *("squared_error", "friedman_mse", "absolute_error", "poisson"),
)
_LEARNERS = (
    *("stumps", "trees", "linear", "linear_pairs", "logistic", "logistic_pairs"),
    *("splines", "neighbors", "kernel_ridge"),
)
_KERNELS = ("linear", "poly", "rbf", "sigmoid")
_OF_TREES = ("tree", "forest", "extra-trees")
_OF_BOOSTING = ("boosting", *FITTED_BY_COMMAND_ALONE)
_OF_MARGINS = ("svm", "linear_svm")
_OF_KERNELS = ("svm", "nu_svm")
_ONLY_OF = {  # models that an option is for, where it is not for all of them
    "n_neighbors": ("knn",),
    "group": ("ranker",),
    "event": ("survival",),
    "learning_rate": (*_OF_BOOSTING, "adaboost", "functional"),
    "learners": ("functional",),
    "loss": _OF_BOOSTING,
    "offset": _OF_BOOSTING,
    "quantile": ("boosting",),
    **BOOSTING_OPTIONS,
    "ccp_alpha": _OF_TREES,
    "criterion": _OF_TREES,
    "min_samples_leaf": (*_OF_TREES, *_OF_BOOSTING),
    "max_leaf_nodes": (*_OF_TREES, *_OF_BOOSTING),
    "max_depth": (*_OF_TREES, *_OF_BOOSTING, "adaboost"),
    "n_estimators": (*_OF_TREES, *_OF_BOOSTING, "adaboost", "functional"),
    "C": _OF_MARGINS,
    "kernel": _OF_KERNELS,
    "nu": ("nu_svm",),
}
_OPTION_OF = {
    "n_estimators": "trees",
    "n_neighbors": "neighbors",
    "learners": "learner",
    "feature_costs": "feature-cost",
    "growth__n_parallel_trees": "parallel-trees",
    "regularization__hierarchical_shrinkage": "hierarchical-shrinkage",
}  # where an option has another name than its parameter


@spinney.command(short_help="Fit one model, chosen by hand, and judge it.")
@click.argument("table", type=FILE)
@target_option
@click.option("--out", type=FILE, metavar="FILE", help="Keep the model here.")
@task_option
@click.option(
    "--model",
    "kind",
    type=click.Choice([*FITTED_BY_COMMAND, *FITTED_BY_COMMAND_ALONE]),
    default="tree",
    show_default=True,
    help="One tree, a random forest, a forest of trees that cut at random, gradient boosting (of lists: "
    "ranker, of times until an event: survival), AdaBoost, a sum of simple functions, a support vector machine, "
    "a linear one for many rows, a perceptron, the nearest rows, the rows of a regular cell, a linear model, or "
    "several of these: stacked, or averaged.",
)
@click.option(
    "--trees",
    "n_estimators",
    type=NumberOrWord("auto"),
    metavar="N|auto",
    help="Trees of a forest (auto: until its out-of-bag error has settled); most rounds of boosting, which stops when "
    "held-out rows no longer improve (auto: the mean of five boosters, each stopped by a fifth of the rows); most "
    "rounds of AdaBoost and of functional boosting.  [default: 100; boosting: auto; adaboost: 50]",
)
@click.option(
    "--learning-rate",
    type=Number(0.0, min_open=True),
    metavar="R",
    help="Boosting and AdaBoost: size of a step.",
)
@click.option(
    "--learner",
    "learners",
    multiple=True,
    type=click.Choice(_LEARNERS),
    callback=lambda _context, _option, chosen: list(chosen) or None,
    metavar="L",
    help=f"Functional boosting: what steps are made of; may be given several times, and each round takes the best. "
    f"{', '.join(_LEARNERS)}.  [default: stumps]",
)
@click.option(
    "--neighbors",
    "n_neighbors",
    type=NumberOrWord("cv"),
    metavar="N|cv",
    help="Nearest rows: how many answer; cv: as many as err least, left out one by one.  [default: cv]",
)
@click.option(
    "--loss",
    type=click.Choice((*_NUMBER_LOSSES, *_CLASS_LOSSES, *chain(*_LOSSES_ALONE.values()))),
    metavar="L",
    help=f"Boosting. Of numbers: {', '.join(_NUMBER_LOSSES)}; of classes: {', '.join(_CLASS_LOSSES)}; "
    f"{'; '.join(f'of {model}: {first}, {second}' for model, (first, second) in _LOSSES_ALONE.items())}.",
)
@click.option(
    "--quantile",
    callback=_quantiles,
    metavar="Q[,Q…]",
    help="Boosting with --loss quantile or expectile: the one to predict, or several quantiles in ascending order; "
    "these never cross, "
    "and the scores are those of the one nearest to 0.5.  [default: 0.5]",
)
@boosting_options
@click.option("--max-depth", type=Whole(1), metavar="N", help="Most questions from the root to a leaf.")
@click.option("--min-samples-leaf", type=Whole(1), metavar="N", help="Fewest rows in a leaf.")
@click.option("--max-leaf-nodes", type=Whole(2), metavar="N", help="Most leaves.")
@click.option("--ccp-alpha", type=Number(0.0), metavar="A", help="Penalty per leaf: prunes the tree.")
@click.option(
    "--criterion", type=click.Choice(_CRITERIA), metavar="C", help=f"Measure of a split: {', '.join(_CRITERIA)}."
)
@click.option(
    "--C",
    "C",
    type=NumberOrWord("cv", fractions=True),
    metavar="C|cv",
    help="Margins: what a row beyond the margin pays.",
)
@click.option("--kernel", type=click.Choice(_KERNELS), metavar="K", help=f"Margins: {', '.join(_KERNELS)}.")
@click.option(
    "--nu",
    type=Number(0.0, 1.0, min_open=True),
    metavar="SHARE",
    help="Margins (nu_svm): share of rows that may lie beyond the margin.",
)
@drop_option
@click.option(
    "--date-parts",
    metavar="PART,…",
    help="Parts of dates to learn from beside the dates, such as month,weekday,hour.",
)
@click.option("--weight", metavar="COL", help="Column with the weight of each row.")
@click.option("--offset", metavar="COL", help="Boosting: column with the score that each row starts from.")
@click.option("--group", metavar="COL", help="Ranker: column that says which list each row belongs to.")
@click.option(
    "--event", metavar="COL", help="Survival: column of 1 where the event happened at the target's time, else 0."
)
@click.option(
    "--folds",
    type=Whole(0, 100),
    default=5,
    show_default=True,
    metavar="N",
    help="Cross-validation folds; 0: fit only.",
)
@click.option(
    "--seed",
    type=Whole(0, LARGEST_SEED),
    default=0,
    show_default=True,
    help="Seed that shuffles the folds and grows the forest.",
)
@click.option(
    "--memory",
    metavar="SIZE",
    help="Memory that a Parquet table may take, such as 2GB; boosting, forests and trees read a larger one some rows "
    "at a time.  "
    "[default: half of what is free]",
)
@encoding_option
@delimiter_option
@json_option
def fit(
    table: Path,
    target: str | None,
    kind: str,
    folds: int,
    seed: int,
    out: Path | None,
    memory: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    r"""Fit a tree, a forest, boosted trees or another model to TABLE and judge it.

    Strings are categories, dates such as 2024-05-31 are dates, and empty cells (or NA, NaN, null) are missing values:
    nothing needs encoding or filling in. The score is that of rows the model has not seen, beside always naming the
    most frequent class or the mean.

    \b
    Example
      spinney fit loans.csv --target repaid --max-depth 4 --out loans.tree
      spinney fit loans.csv --target repaid --model forest --trees auto
      spinney fit loans.csv --target repaid --model boosting --out loans.model
    \b
    Lists, times until an event, tables larger than memory
      spinney fit clicks.csv --target grade --model ranker --group query
      spinney fit machines.csv --target hours --model survival --event failed
      spinney fit 'loans/*.parquet' --target repaid --model boosting --memory 2GB
    """
    _check_options(kind, options, folds)
    from spinney.cli.fit import FitOptions, run_fit
    from spinney.cli.fit_table import Source
    from spinney.cli.tables import require_target

    columns = {name: options.pop(name) for name in _OF_SOURCE}
    columns["task"] = {"ranker": "ranking", "survival": "survival"}.get(kind, columns["task"])
    columns["date_parts"] = tuple(part.strip() for part in (columns["date_parts"] or "").split(",") if part)
    source = Source(table, require_target(target, table, columns["delimiter"]), **columns)
    run_fit(source, FitOptions(kind, options, folds, seed, out, as_json, memory))


_OF_SOURCE = ("delimiter", "encoding", "task", "drop", "date_parts", "weight", "offset", "group", "event")
_WHY_NOT_AUTO = {
    "functional": "Functional boosting has no rows out of bag. Pass the number of rounds, or leave it out.",
    "adaboost": "AdaBoost has no rows out of bag. Pass the number of rounds, or leave it out.",
    "extra-trees": "Extra-trees see every row, so that none is out of bag. Pass a number, or --model forest.",
}


def _check_options(kind: str, options: dict[str, Any], folds: int) -> None:
    """Refuse options that do not go with a kind of model."""
    if kind == "tree" and options["n_estimators"] is not None:
        raise click.BadParameter("It is for ensembles. Pass --model forest or boosting too.", param_hint="'--trees'")
    if kind in _WHY_NOT_AUTO and options["n_estimators"] == "auto":
        raise click.BadParameter(_WHY_NOT_AUTO[kind], param_hint="'--trees'")
    for name, value in options.items():
        if value is not None and kind not in _ONLY_OF.get(name, (kind,)):
            option = f"'--{_OPTION_OF.get(name, name.replace('_', '-'))}'"
            raise click.BadParameter(f"This is not a parameter of --model {kind}. Leave it out.", param_hint=option)
    if folds == 1:
        raise click.BadParameter("1 fold leaves no rows to learn from. Use 0, or 2 and more.", param_hint="'--folds'")
    for model, names in _LOSSES_ALONE.items():
        if options["loss"] in names and kind != model:
            raise click.BadParameter(f"It is for --model {model}.", param_hint="'--loss'")
        if kind == model and options["loss"] not in (None, *names):
            raise click.BadParameter(f"--model {model} has {' and '.join(names)}.", param_hint="'--loss'")
    if kind == "ranker" and options["group"] is None:
        raise click.BadParameter(
            "--model ranker compares rows of the same list. Name the column that says which, such as the query's.",
            param_hint="'--group'",
        )


@spinney.command(short_help="Compare models of your choice on the same folds.")
@click.argument("table", type=FILE)
@target_option
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Choice(list(FITTED_BY_COMMAND)),
    help="Model to compare; give it several times.  [default: tree, forest, extra-trees, boosting, linear]",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="M",
    help="Scorer of scikit-learn, such as roc_auc; the first decides. May be given several times.",
)
@click.option("--reference", metavar="NAME", help="Model that differences are taken to.  [default: the best]")
@click.option("--group", metavar="COL", help="Column: rows with the same value are held out together.")
@click.option("--time", metavar="COL", help="Column: rows are held out that come after those learned from.")
@click.option("--weight", metavar="COL", help="Column with the weight of each row.")
@drop_option
@task_option
@click.option("--folds", type=Whole(2, 100), default=5, show_default=True, metavar="N", help="Folds.")
@click.option("--repeats", type=Whole(1, 100), default=2, show_default=True, metavar="N", help="Times folds are drawn.")
@click.option("--curves", is_flag=True, help="Also fit to 10, 25, 50 and 75% of the rows: learning curves.")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw the differences, or the curves, here (PNG, SVG, PDF).")
@click.option("--seconds", type=Number(0.0, min_open=True), metavar="S", help="Begin no fit after this time.")
@click.option("--seed", type=Whole(0, LARGEST_SEED), default=0, show_default=True, help="Seed of folds and models.")
@encoding_option
@delimiter_option
@json_option
def compare(
    table: Path,
    target: str | None,
    models: tuple[str, ...],
    metrics: tuple[str, ...],
    reference: str | None,
    folds: int,
    repeats: int,
    curves: bool,
    plot: Path | None,
    seconds: float | None,
    seed: int,
    as_json: bool,
    **columns: Any,
) -> None:
    r"""Compare models on the same folds of TABLE, beside always saying the same.

    Differences are paired by fold, with standard errors that allow for the rows that folds share, and p-values of the
    corrected resampled t-test, corrected for the number of models by Holm. Ctrl-C keeps the models that are done.

    \b
    Example
      spinney compare loans.csv --target repaid --model forest --model boosting
      spinney compare loans.csv --target repaid --metric roc_auc --plot loans.png
    """
    from spinney.cli.fit_table import Source
    from spinney.cli.study import run_compare
    from spinney.cli.tables import require_target

    source = Source(table, require_target(target, table, columns["delimiter"]), **columns)
    options = {
        "models": list(dict.fromkeys(models)) or ["tree", "forest", "extra-trees", "boosting", "linear"],
        "scoring": list(metrics) or None,
        "cv": folds,
        "repeats": repeats,
        "reference": reference,
        "learning_curves": curves,
        "max_seconds": seconds,
        "random_state": seed,
    }
    run_compare(source, options, plot=plot, as_json=as_json)


from spinney.cli import study_commands, use_commands  # noqa: E402, F401  (they add their commands)
