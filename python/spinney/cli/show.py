"""``spinney show``: a saved tree as text, with its columns, or as a picture; of an ensemble, its columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spinney._estimator.estimator import About, load
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.file.disk import write_file
from spinney.cli.failures import fail, failures_in_words
from spinney.cli.loaded import LoadedModel
from spinney.cli.tables import check_writable
from spinney.inspect.text.tables import importance_columns, write_json


def run_show(model_path: Path, *, svg: Path | None, max_depth: int | None, number: int | None, as_json: bool) -> None:
    """Print a saved tree and draw it if a file is named; of an ensemble, its size and columns."""
    from spinney import export_text, to_dict, tree_svg

    if svg is not None:
        check_writable(svg)
    with failures_in_words():
        model = load(model_path)
        about: About = model._about()
        if "weights" in about.size and number is None and svg is None and max_depth is None:
            show_members(model, about, as_json)
            return
        if not about.is_shown:
            raise fail(about.why_no_trees)
        if about.noun != "tree" and number is None:
            if svg is not None or max_depth is not None:
                raise fail(one_tree_only(model_path, about))
            show_ensemble(model, about, as_json)
            return
        tree, title = chosen_tree(model, about, number)
        columns = described_columns(tree)
        if svg is not None:
            write_file(svg, tree_svg(tree, max_depth=max_depth).encode())
        if as_json:
            found = {"columns": columns, "tree": to_dict(tree)}
            click.echo(write_json(found, indent=2))
            return
        text = export_text(tree, max_depth=max_depth)
    console = Console(highlight=False)
    console.print(Text(f"{title}\n"))
    console.print(text, markup=False, soft_wrap=True)
    console.print()
    console.print(columns_table(columns))


def one_tree_only(path: Path, about: About) -> str:
    """Say what to do instead of drawing or printing a whole ensemble."""
    if about.trees is None:
        return f"{about.why_no_trees[0].upper()}{about.why_no_trees[1:]}".replace(
            "Leave it out", "Leave --svg and --max-depth out"
        )
    return f"'{path}' holds {len(about.trees)} trees. Say which one to draw or print: --tree N."


def chosen_tree(model: TableEstimator, about: About, number: int | None) -> tuple[TableEstimator, str]:
    """Return the tree that is asked for, counted from 1, or the model if it is one; and what to call it."""
    if number is None:
        return model, f"{type(model).__name__}: {about.sentence}"
    if about.trees is None:
        raise fail(f"--tree: {about.why_no_trees}")
    if number > len(about.trees):
        raise fail(f"--tree: the model has {len(about.trees)} trees, so there is no tree {number}.")
    tree = about.trees[number - 1]
    name = type(tree).__name__ if about.title_of_tree is None else about.title_of_tree(number - 1)
    return tree, f"{name}: {tree._about().sentence}"


def show_ensemble(model: TableEstimator, about: About, as_json: bool) -> None:
    """Print the size of an ensemble and its columns."""
    columns = described_columns(model)
    if as_json:
        found = {"model": type(model).__name__, **about.size, "columns": columns}
        click.echo(json.dumps(found, ensure_ascii=False, allow_nan=False, indent=2))
        return
    console = Console(highlight=False)
    console.print(Text(f"{type(model).__name__}: {about.sentence}\n"))
    console.print(columns_table(columns))


def show_members(model: LoadedModel, about: About, as_json: bool) -> None:
    """Print the members of an ensemble of different models, and what each counts."""
    rows = [
        {"member": name, "model": type(member).__name__, "weight": weight}
        for name, weight, member in zip(about.size["members"], about.size["weights"], model.estimators_, strict=True)
    ]
    if as_json:
        click.echo(json.dumps({"model": type(model).__name__, "members": rows}, ensure_ascii=False, indent=2))
        return
    table = Table("member", "model", "weight")
    for row in rows:
        table.add_row(Text(row["member"]), row["model"], "" if row["weight"] is None else f"{row['weight']:.2f}")
    console = Console(highlight=False)
    console.print(Text(f"{type(model).__name__}: {about.sentence}\n"))
    console.print(table)


def described_columns(model: TableEstimator) -> list[dict[str, Any]]:
    """List the columns with their kind and importance, the most important first.

    Trees that are cut at random, without a target, have no importances: their columns are in the order of the table.
    """
    if not hasattr(model, "feature_importances_"):
        return [
            {"column": feature.name, "kind": feature.kind_in_words, "importance": None, "splits": None}
            for feature in model.schema_.features
        ]
    kinds = {feature.name: feature.kind_in_words for feature in model.schema_.features}
    ranked = importance_columns(model)
    splits = ranked.get("n_splits", [None] * len(kinds))
    return [
        {"column": name, "kind": kinds[name], "importance": importance, "splits": n_splits}
        for name, importance, n_splits in zip(ranked["column"], ranked["importance"], splits, strict=True)
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
    if columns[0]["splits"] is not None:
        table.add_column("splits", justify="right")
    for entry in columns:
        splits = [] if entry["splits"] is None else [str(entry["splits"])]
        table.add_row(Text(entry["column"]), entry["kind"], f"{entry['importance']:.3f}", *splits)
    return table
