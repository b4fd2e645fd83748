"""Losses of times by the book, and concordance pair by pair."""

import numpy as np
from scipy import stats


def cox_loss(time, is_event, scores, weight):
    """Minus Cox's partial likelihood (Breslow's ties), as a logarithm, over the weight of all rows."""
    loss = 0.0
    for i in np.flatnonzero(is_event):
        at_risk = time >= time[i]
        loss += weight[i] * (np.log((weight * np.exp(scores))[at_risk].sum()) - scores[i])
    return loss / weight.sum()


def efron_steps(time, is_event, scores, weight, t):
    """Mean weight of the events of a time, and what is at risk at each of them, one after another."""
    raised = weight * np.exp(scores)
    tied = is_event & (time == t)
    d = int(tied.sum())
    return weight[tied].sum() / d, raised[time >= t].sum() - np.arange(d) / d * raised[tied].sum()


def efron_loss(time, is_event, scores, weight):
    """As cox_loss, with Efron's ties."""
    loss = -(weight * scores)[is_event].sum()
    for t in np.unique(time[is_event]):
        mean, at_risk = efron_steps(time, is_event, scores, weight, t)
        loss += mean * np.log(at_risk).sum()
    return loss / weight.sum()


def efron_hazard(time, is_event, scores, weight):
    """Times of events and Efron's hazard of a score of 0 up to each."""
    times = np.unique(time[is_event])
    steps = [efron_steps(time, is_event, scores, weight, t) for t in times]
    return times, np.cumsum([(mean / at_risk).sum() for mean, at_risk in steps])


def baseline_hazard(time, is_event, scores, weight):
    """Times of events and the hazard of a score of 0 up to each."""
    times, hazard, total = np.unique(time[is_event]), [], 0.0
    for t in times:
        total += weight[is_event & (time == t)].sum() / (weight * np.exp(scores))[time >= t].sum()
        hazard.append(total)
    return times, np.array(hazard)


_DISTRIBUTIONS = {"normal": stats.norm(), "logistic": stats.logistic(), "extreme": stats.gumbel_l(-np.log(np.log(2)))}


def timed_losses(name, low, high, scores, scale):
    """Minus the logarithm of what each row's interval of logarithms of time is worth."""
    of = _DISTRIBUTIONS[name]
    first, last = (low - scores) / scale, (high - scores) / scale
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.log(np.where(first > 0, of.sf(first) - of.sf(last), of.cdf(last) - of.cdf(first)))
        found = np.where(np.isinf(high), of.logsf(first), np.where(np.isinf(low), of.logcdf(last), between))
        return -np.where(low == high, of.logpdf(first) - np.log(scale), found)


def share_left(name, z):
    """Share without an event at z."""
    return _DISTRIBUTIONS[name].sf(z)


def concordance(low, high, expected, weight):
    """Share of pairs in order, of those of which one is known to have come first."""
    agreed = total = 0.0
    for i in range(len(low)):
        for j in range(len(low)):
            first = high[i] < low[j] or (high[i] == low[j] and high[j] > low[j])
            if first and i != j:
                total += weight[i] * weight[j]
                agreed += weight[i] * weight[j] * ((expected[i] < expected[j]) + (expected[i] == expected[j]) / 2)
    return agreed / total
