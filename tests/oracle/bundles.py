"""Exclusive feature bundling, row by row."""


def greedy_bundles(rows, n_allowed):
    """Return the bundles of a table of lists: lists of column positions, and the rows in conflict of each."""
    n_columns = len(rows[0])
    order = sorted(range(n_columns), key=lambda j: (-sum(row[j] != 0 for row in rows), j))
    bundles = []
    for j in order:
        for bundle in bundles:
            if conflicts_of(rows, [*bundle, j]) <= n_allowed:
                bundle.append(j)
                break
        else:
            bundles.append([j])
    return bundles, [conflicts_of(rows, bundle) for bundle in bundles]


def conflicts_of(rows, columns):
    """Return the number of rows in which several of some columns are not 0."""
    return sum(sum(row[j] != 0 for j in columns) > 1 for row in rows)
