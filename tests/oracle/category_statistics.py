"""Statistics of categories the slow way: one row and one category at a time."""

import numpy as np


def statistic(codes, pulls, weight, learned, code, mean, doubt):
    """Mean pull of the rows of a category among those learned from, drawn towards the mean of all."""
    mine = learned & ((codes == code) | (np.isnan(codes) & np.isnan(code)))
    return (weight[mine] @ pulls[mine] + doubt * mean) / (weight[mine].sum() + doubt)


def of_member(codes, n_categories, pulls, weight, fold, member, doubt):
    """Return what a booster reads in each row, and what it predicts by: for each category, missing ones and others."""
    learned = (fold != member) & (weight > 0)
    mean = weight[learned] @ pulls[learned] / weight[learned].sum()

    def among(rows, code):
        return statistic(codes, pulls, weight, rows, code, mean, doubt)

    by_row = [among(learned & (fold != k) if k != member else learned, c) for c, k in zip(codes, fold, strict=True)]
    return np.array(by_row), [among(learned, code) for code in range(n_categories)], among(learned, np.nan), mean
