"""``spinney show``: a saved tree as text, with its columns, or as a picture; of an ensemble, its columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spinney.cli.failures import fail, failures_in_words
from spinney.cli.tables import check_writable


def run_show(model_path: Path, *, svg: Path | None, max_depth: int | None, number: int | None, as_json: bool) -> None:
    """Print a saved tree and draw it if a file is named."""
    from spinney import export_text, load, to_dict, tree_svg
    from spinney._file.disk import write_file

    if svg is not None:
        check_writable(svg)
    with failures_in_words():
        whole = load(model_path)
        model = one_tree(whole, number)
        if hasattr(model, "boosting_"):
            show_boosting(model, model_path, svg, max_depth, as_json)
            return
        if hasattr(model, "forest_"):
            show_forest(model, model_path, svg, max_depth, as_json)
            return
        columns = described_columns(model)
        if svg is not None:
            write_file(svg, tree_svg(model, max_depth=max_depth).encode())
        if as_json:
            about = {"columns": columns, "tree": to_dict(model)}
            click.echo(json.dumps(about, ensure_ascii=False, allow_nan=False, indent=2))
            return
        text = export_text(model, max_depth=max_depth)
    console = Console(highlight=False)
    console.print(Text(f"{title_of(model, whole, number)}\n"))
    console.print(text, markup=False, soft_wrap=True)
    console.print()
    console.print(columns_table(columns))


def one_tree(model: Any, number: int | None) -> Any:
    """Return the tree of an ensemble that is asked for, counted from 1, or the model."""
    from spinney import ProximityImputer

    if isinstance(model, ProximityImputer):
        raise fail("The file holds an imputer, which fills tables and has no tree to show. Use it in Python.")
    if hasattr(model, "estimators_features_"):
        raise fail(
            "The file holds a bagging ensemble, whose members may be any models. Look at its estimators_ in Python."
        )
    if number is None:
        return model
    if not hasattr(model, "forest_") and not hasattr(model, "boosting_"):
        raise fail("--tree: the model is one tree, not a forest. Leave it out.")
    if not hasattr(model, "estimators_"):
        raise fail(
            f"--tree: the trees of {type(model).__name__} are cut at random and not shown by themselves. Leave it out."
        )
    n_trees = len(model.estimators_)
    if number > n_trees:
        noun = "forest" if hasattr(model, "forest_") else "model"
        raise fail(f"--tree: the {noun} has {n_trees} trees, so there is no tree {number}.")
    return model.estimators_[number - 1]


def title_of(tree: Any, model: Any, number: int | None) -> str:
    """Say what is shown: the kind of the model, or which step of boosting it is."""
    size = f"{tree.get_n_leaves()} leaves, depth {tree.get_depth()}"
    if number is None or not hasattr(model, "boosting_"):
        return f"{type(tree).__name__}: {size}"
    n_scores = model.boosting_.n_scores
    of_class = f" for {model.classes_[(number - 1) % n_scores]}" if n_scores > 1 else ""
    return f"Round {(number - 1) // n_scores + 1} of {model.n_iter_}, what it adds to the score{of_class}: {size}"


def show_forest(model: Any, path: Path, svg: Path | None, max_depth: int | None, as_json: bool) -> None:
    """Print the size of a forest and its columns."""
    if not hasattr(model, "estimators_") and (svg is not None or max_depth is not None):
        raise fail(
            f"The trees of {type(model).__name__} are cut at random and not shown by themselves. Leave --svg and "
            "--max-depth out."
        )
    if svg is not None or max_depth is not None:
        raise fail(f"'{path}' is a forest of {len(model)} trees. Say which one to draw or print: --tree N.")
    columns, leaves = described_columns(model), model.forest_.n_leaves
    about: dict[str, Any] = {"model": type(model).__name__, "trees": len(model), "leaves": leaves}
    score = getattr(model, "oob_score_", None)
    about["out_of_bag_score"] = score if score is not None and np.isfinite(score) else None
    if as_json:
        click.echo(json.dumps(about | {"columns": columns}, ensure_ascii=False, allow_nan=False, indent=2))
        return
    console = Console(highlight=False)
    known = "" if about["out_of_bag_score"] is None else f", out-of-bag score {score:.3f}"
    console.print(Text(f"{about['model']}: {len(model)} trees, {leaves:,} leaves{known}\n"))
    console.print(columns_table(columns))


def show_boosting(model: Any, path: Path, svg: Path | None, max_depth: int | None, as_json: bool) -> None:
    """Print the size of a boosted model and its columns."""
    from spinney.cli.fit import boosting_size

    if svg is not None or max_depth is not None:
        raise fail(f"'{path}' is a sum of {model.boosting_.n_trees} trees. Say which one to draw or print: --tree N.")
    columns, size = described_columns(model), boosting_size(model)
    about = {"model": type(model).__name__, "loss": model.loss} | size
    if as_json:
        click.echo(json.dumps(about | {"columns": columns}, ensure_ascii=False, allow_nan=False, indent=2))
        return
    console = Console(highlight=False)
    held_out = "" if size["held_out_loss"] is None else f", {size['held_out_loss']:.4g} on held-out rows"
    console.print(
        Text(
            f"{about['model']}: {size['rounds']:,} rounds, {size['leaves']:,} leaves; loss {size['training_loss']:.4g}"
            f"{held_out}\n"
        )
    )
    console.print(columns_table(columns))


def described_columns(model: Any) -> list[dict[str, Any]]:
    """List the columns with their kind and importance, the most important first.

    Trees that are cut at random, without a target, have no importances: their columns are in the order of the table.
    """
    from spinney.reading.tables import importance_columns

    if not hasattr(model, "feature_importances_"):
        return [
            {"column": feature.name, "kind": feature.kind, "importance": None, "splits": None}
            for feature in model.schema_.features
        ]
    kinds = {feature.name: feature.kind for feature in model.schema_.features}
    ranked = importance_columns(model)
    return [
        {"column": name, "kind": kinds[name], "importance": importance, "splits": n_splits}
        for name, importance, n_splits in zip(*ranked.values(), strict=True)
    ]


def columns_table(columns: list[dict[str, Any]]) -> Table:
    """Lay out the columns."""
    table = Table()
    table.add_column("column")
    table.add_column("kind")
    if columns[0]["importance"] is None:
        for entry in columns:
            table.add_row(Text(entry["column"]), entry["kind"])
        return table
    table.add_column("importance", justify="right")
    table.add_column("splits", justify="right")
    for entry in columns:
        table.add_row(Text(entry["column"]), entry["kind"], f"{entry['importance']:.3f}", str(entry["splits"]))
    return table
