"""Statistics of categories the slow way: one row and one category at a time."""

import numpy as np


def statistic(codes, pulls, weight, learned, code, mean, doubt):
    """Mean pull of the rows of a category among those learned from, drawn towards the mean of all."""
    mine = learned & ((codes == code) | (np.isnan(codes) & np.isnan(code)))
    return (weight[mine] @ pulls[mine] + doubt * mean) / (weight[mine].sum() + doubt)


def of_member(codes, n_categories, pulls, weight, holders, member, doubt):
    """Return what a booster reads in each row, and what it predicts by: for each category, missing ones and others.

    `holders` are the boosters that hold each row out; rows that the same ones hold out are a fold.
    """
    learned = np.array([member not in mine for mine in holders]) & (weight > 0)
    mean = weight[learned] @ pulls[learned] / weight[learned].sum()

    def among(rows, code):
        return statistic(codes, pulls, weight, rows, code, mean, doubt)

    by_row = []
    for code, mine in zip(codes, holders, strict=True):
        others = np.array([theirs != mine for theirs in holders])
        by_row.append(among(learned if member in mine else learned & others, code))
    return np.array(by_row), [among(learned, code) for code in range(n_categories)], among(learned, np.nan), mean
