"""What boosting does not do with tables that lie in files, or on the workers of a cluster."""

from __future__ import annotations

import spinney._engine as _engine
from spinney._boosting.category_statistics import columns_of_many
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.settings import BoostingSettings
from spinney._data.schema import Input


def check_stream(X: Input, settings: BoostingSettings, recipe: Recipe, rows: LearningRows) -> None:
    """Refuse what would take all rows of a stream into memory."""
    if not X.is_stream:
        return
    if recipe.n_folds and 0 < rows.n_used < len(rows.target):
        raise ValueError(
            "Some rows of the stream have the weight 0, which n_estimators='auto' leaves out by a copy of the others. "
            "Leave them out of the stream, or set n_estimators to a number."
        )
    if callable(settings.metrics[0]) and recipe.stops_early:
        raise ValueError(
            "scoring is a function of the held-out rows as they were given, and those of a stream are in files. Use a "
            "metric by its name, or the loss."
        )
    if settings.linear_leaves:
        raise ValueError(
            "linear_leaves reads the values of all rows of a leaf at a time, and those of a stream are in files. Use "
            "linear_leaves=False."
        )
    if settings.starts_at_model:
        raise ValueError(
            f"init={type(settings.init).__name__} would be fitted to all rows of the stream in memory. Use "
            "init='constant', or pass what it predicts as a column with offset."
        )


def check_partitioned(recipe: Recipe, rows: LearningRows) -> None:
    """Refuse what would need all rows of a table on workers in one place."""
    if isinstance(rows.columns, _engine.Table) or not recipe.n_folds:
        return
    if rows.n_used < len(rows.target):
        raise ValueError(
            "Some rows have the weight 0, which n_estimators='auto' leaves out by a copy of the others, and rows on "
            "several workers are not copied. Leave them out of the collection, or set n_estimators to a number."
        )
    if recipe.draws_bins or (recipe.has_statistics and columns_of_many(rows.columns)):
        raise ValueError(
            "n_estimators='auto' looks at all rows of a table of this size at once, and they lie on several workers. "
            "Use larger workers, one of which has room for all rows; or set n_estimators to a number, such as "
            "n_estimators=300, perhaps with early_stopping=True."
        )
