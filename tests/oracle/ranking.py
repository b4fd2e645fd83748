"""Losses and metrics of ranked lists, pair by pair."""

import numpy as np


def discount_up_to(place, truncation):
    """Sum of the discounts of all places before `place`, which may be a fraction."""
    total = sum(1 / np.log2(k + 2) for k in range(min(int(place), truncation)))
    if int(place) < truncation:
        total += (place - int(place)) / np.log2(int(place) + 2)
    return total


def mean_change(begin, end, truncation):
    """Mean distance between the discounts of two places between these, drawn one by one; half a place counts half."""
    half = np.arange(2 * begin, 2 * end).astype(int) // 2
    discount = np.where(half < truncation, 1 / np.log2(half + 2), 0)
    return np.abs(discount[:, None] - discount).mean()


def ndcg(gain, scores, weight, truncation):
    """Normalised discounted gain of one list; rows of equal scores share their places."""

    def dcg(by):
        found, at = 0.0, 0.0
        for value in sorted(set(by), reverse=True):
            tied = by == value
            w = weight[tied].sum()
            share = (gain[tied] * weight[tied]).sum() / w
            found += share * (discount_up_to(at + w, truncation) - discount_up_to(at, truncation))
            at += w
        return found

    ideal = dcg(gain)
    return dcg(scores) / ideal if ideal > 0 else np.nan, ideal


def lambdas(gain, scores, weight, truncation):
    """Gradients and hessians of one list by LambdaMART, before the rows' own weights."""
    n = len(gain)
    g, h = np.zeros(n), np.zeros(n)
    _, ideal = ndcg(gain, scores, weight, truncation)
    if ideal <= 0 or len(set(gain)) == 1:
        return g, h
    discount, within, at = np.zeros(n), np.zeros(n), 0.0
    for value in sorted(set(scores), reverse=True):
        tied = scores == value
        end = at + weight[tied].sum()
        discount[tied] = (discount_up_to(end, truncation) - discount_up_to(at, truncation)) / (end - at)
        within[tied] = mean_change(at, end, truncation)
        at = end
    is_apart = scores.max() > scores.min()
    total = 0.0
    for i in range(n):
        for j in range(n):
            if gain[i] > gain[j]:
                swapped = within[i] if scores[i] == scores[j] else abs(discount[i] - discount[j])
                change = (gain[i] - gain[j]) * swapped / ideal
                if is_apart:
                    change /= 0.01 + abs(scores[i] - scores[j])
                wrong = 1 / (1 + np.exp(scores[i] - scores[j]))
                g[i] -= weight[j] * wrong * change
                g[j] += weight[i] * wrong * change
                h[i] += weight[j] * wrong * (1 - wrong) * change
                h[j] += weight[i] * wrong * (1 - wrong) * change
                total += 2 * weight[i] * weight[j] * wrong * change
    factor = np.log2(1 + total) / total if total > 0 else 0.0
    return g * factor, h * factor


def pair_loss(gain, scores, weight):
    """Losses of the pairs of one list over its weight, and the weight of these pairs over it."""
    loss = pairs = 0.0
    for i in range(len(gain)):
        for j in range(len(gain)):
            if gain[i] > gain[j]:
                loss += weight[i] * weight[j] * np.log1p(np.exp(scores[j] - scores[i]))
                pairs += weight[i] * weight[j]
    return loss / weight.sum(), pairs / weight.sum()


def pair_pulls(gain, scores, weight):
    """Gradients and hessians of one list, every pair of which counts by the distance of its scores alone."""
    g, h = np.zeros(len(gain)), np.zeros(len(gain))
    is_apart = scores.max() > scores.min()
    for i in range(len(gain)):
        for j in range(len(gain)):
            if gain[i] > gain[j]:
                count = 1 / (0.1 + abs(scores[i] - scores[j])) if is_apart else 1.0
                wrong = 1 / (1 + np.exp(scores[i] - scores[j]))
                g[i] -= weight[j] * wrong * count
                g[j] += weight[i] * wrong * count
                h[i] += weight[j] * wrong * (1 - wrong) * count
                h[j] += weight[i] * wrong * (1 - wrong) * count
    return g / weight.sum(), h / weight.sum()


def average_precision(relevant, scores, places=None):
    """Mean over relevant rows of the share of relevant rows down to each."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    hits, total = 0, 0.0
    for place, i in enumerate(order[:places], 1):
        if relevant[i]:
            hits += 1
            total += hits / place
    return total / min(sum(relevant), places or len(scores))


def reciprocal_rank(relevant, scores, places=None):
    """One over the place of the first relevant row."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return next((1 / place for place, i in enumerate(order[:places], 1) if relevant[i]), 0.0)
