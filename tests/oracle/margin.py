"""Reference implementations of support vector machines: duals from the inside of their bounds, in NumPy."""

import numpy as np


def kernel_matrix(kind, rows, others, gamma=1.0, coef0=0.0, degree=3):
    """Kernel values of all pairs, as they are defined."""
    products = rows @ others.T
    if kind == "linear":
        return products
    if kind == "poly":
        return (gamma * products + coef0) ** degree
    if kind == "sigmoid":
        return np.tanh(gamma * products + coef0)
    return np.exp(-gamma * ((rows[:, np.newaxis, :] - others[np.newaxis]) ** 2).sum(axis=2))


def solve_dual(matrix, z, lowest, highest, epsilon=0.0):
    """Least ½ β'Kβ - z'β + ε|β| within the bounds, with sum 0.

    With ε, β is the difference of two positive parts, each with separate bounds.
    """
    if epsilon:
        both = np.block([[matrix, -matrix], [-matrix, matrix]])
        sign = np.repeat([1.0, -1.0], len(z))
        at = _interior(both, np.concatenate([z, -z]) - epsilon, np.tile(highest, 2), sign)
        return at[: len(z)] - at[len(z) :]
    sign = np.where(highest > 0, 1.0, -1.0)
    return sign * _interior(matrix * sign * sign[:, np.newaxis], z * sign, np.maximum(highest, -lowest), sign)


def _interior(matrix, linear, most, sign):
    """Least ½ a'Ma - l'a for 0 < a < most and Σ sign a = 0: Newton's method with walls that are lowered."""
    sides = [most[sign > 0].sum(), most[sign < 0].sum()]
    share = np.where(sign > 0, min(1.0, sides[1] / sides[0]), min(1.0, sides[0] / sides[1]))
    a, wall = most * share / 2, 1.0
    while wall > 1e-13:
        for _ in range(50):
            slope = matrix @ a - linear - wall / a + wall / (most - a)
            bend = matrix + np.diag(wall / a**2 + wall / (most - a) ** 2)
            system = np.block([[bend, sign[:, np.newaxis]], [sign[np.newaxis], np.zeros((1, 1))]])
            step = np.linalg.solve(system, np.append(-slope, 0.0))[:-1]
            room = np.where(step > 0, (most - a) / np.abs(step), a / np.abs(step)).min()
            a = a + min(1.0, 0.9 * room) * step
            if np.abs(step / np.minimum(a, most - a)).max() < 1e-6:
                break
        wall /= 8
    return np.where(a < 1e-9 * most, 0.0, np.where(a > (1 - 1e-9) * most, most, a))


def solve_one_class(matrix, most, total):
    """Least ½ a'Ka within 0 and `most`, with the sum `total`: steps of the two rows with the largest violation."""
    a = np.diff(np.minimum(np.append(0.0, np.cumsum(most)), total))
    sums, close = matrix @ a, 1e-9 * np.abs(matrix).max()
    for _ in range(200_000):
        up = np.where(a < most, sums, np.inf).argmin()
        down = np.where(a > 0, sums, -np.inf).argmax()
        gap = sums[down] - sums[up]
        if gap <= close:
            break
        curvature = max(matrix[up, up] + matrix[down, down] - 2 * matrix[up, down], 1e-12)
        step = min(gap / curvature, most[up] - a[up], a[down])
        a[up], a[down] = a[up] + step, a[down] - step
        sums += step * (matrix[up] - matrix[down])
    return a


def plane_objective(rows, z, weights, intercept, bound, epsilon=None, squared=False):
    """Half the squared weights, plus what the rows pay: hinges of sides z, or errors beyond epsilon."""
    scores = rows @ weights + intercept
    beyond = np.maximum(1 - z * scores if epsilon is None else np.abs(z - scores) - epsilon, 0)
    return weights @ weights / 2 + bound @ (beyond**2 if squared else beyond)


def perceptron(rows, z, n_epochs, rate=1.0):
    """Rosenblatt's rule, row by row; weights, intercept, number of updates, and the mean of all planes."""
    weights, intercept, n_updates = np.zeros(rows.shape[1]), 0.0, 0
    radius = (rows**2).sum(axis=1).max()
    seen = []
    for _ in range(n_epochs):
        before = n_updates
        for x, side in zip(rows, z, strict=True):
            if side * (weights @ x + intercept) <= 0:
                weights, intercept = weights + rate * side * x, intercept + rate * side * radius
                n_updates += 1
            seen.append(np.append(weights, intercept))
        if n_updates == before:
            break
    return weights, intercept, n_updates, np.mean(seen, axis=0)


def perceptron_pass(rows, z, steps, start, squared_radius):
    """One pass from a plane; R is the largest norm of a row so far. Weights and intercept, R², and the mean plane."""
    plane, seen = start.copy(), []
    for x, side, step in zip(rows, z, steps, strict=True):
        squared_radius = max(squared_radius, x @ x)
        if side * (plane[:-1] @ x + plane[-1]) <= 0:
            plane = plane + step * side * np.append(x, squared_radius)
        seen.append(plane)
    return plane, squared_radius, np.mean(seen, axis=0)


def objective(matrix, z, beta, epsilon=0.0):
    """What the dual minimises."""
    return beta @ matrix @ beta / 2 - z @ beta + epsilon * np.abs(beta).sum()


def violation(matrix, z, beta, lowest, highest, epsilon=0.0):
    """Largest gain per unit that two rows could still have: what may rise less what may fall."""
    pull = z - matrix @ beta
    up = np.where(beta < highest, pull - np.where(beta >= 0, epsilon, -epsilon), -np.inf)
    down = np.where(beta > lowest, pull - np.where(beta > 0, epsilon, -epsilon), np.inf)
    return up.max() - down.min()
