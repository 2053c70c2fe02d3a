"""Slow twins of the transition matrices: one row after the other, as the formulas are written."""

import math

import numpy as np

from untwist.noise import families, plausibility, scaling


def untwist_row(q, matrix, slopes, offsets, least):
    """The clean posterior of one row under one component."""
    plain = np.linalg.solve(np.asarray(matrix, dtype=float).T, np.asarray(q, dtype=float))
    kept = [max(value, least) for value in plain]
    odds = [math.exp(b + a * math.log(value / sum(kept))) for value, a, b in zip(kept, slopes, offsets, strict=True)]
    return [value / sum(odds) for value in odds]


def find_wrong(q, label, matrix, slopes, offsets, least):
    """The probability that the label of one row is wrong under one component: by Bayes, class by class."""
    clean = untwist_row(q, matrix, slopes, offsets, least)
    joint = [clean[j] * matrix[j][label] for j in range(len(clean))]
    return sum(joint[j] for j in range(len(joint)) if j != label) / sum(joint)


def find_plausibility(rows, matrix, log_slopes, offsets, caps, least):
    """What `Plausibility.evaluate` maximises, row by row."""
    twisted, labels, weight = rows
    n_classes = len(matrix)
    slopes = [math.exp(each) for each in log_slopes]
    total = sum(weight)
    likelihood = 0.0
    clean = []
    for q, label, w in zip(twisted, labels, weight, strict=True):
        c = untwist_row(q, matrix, slopes, offsets, least)
        clean.append(c)
        likelihood += w * math.log(sum(c[j] * matrix[j][label] for j in range(n_classes)))
    unexplained = 0.0
    power = plausibility.RARE_CLASSES_COUNT
    powers = [
        (sum(w for w, label in zip(weight, labels, strict=True) if label == k) / total) ** power
        for k in range(n_classes)
    ]
    for k in range(n_classes):
        mean = sum(w * c[k] for w, c in zip(weight, clean, strict=True)) / total
        left = sum(w * c[k] * (1 - c[k]) for w, c in zip(weight, clean, strict=True)) / total
        unexplained += powers[k] / sum(powers) * left / (mean * (1 - mean))
    mean_slope = sum(log_slopes) / n_classes
    prior = (mean_slope / plausibility.MEAN_SLOPE_SPREAD) ** 2
    prior += sum(((each - mean_slope) / plausibility.SLOPE_SPREAD) ** 2 for each in log_slopes)
    prior += sum((each / plausibility.OFFSET_SPREAD) ** 2 for each in offsets)
    prior += sum(max(1 - matrix[j][j] - caps[j], 0.0) ** 2 for j in range(n_classes)) / plausibility.CAP_SPREAD**2
    worth = plausibility.WORTH_OF_EXPLAINING * math.log(unexplained + plausibility.FREELY_UNEXPLAINED)
    if total < plausibility.ROWS_TO_EXPLAIN * n_classes:
        worth *= total / (plausibility.ROWS_TO_EXPLAIN * n_classes)
    return likelihood - worth - prior / 2


def price_free_matrix(matrix, common, pairs=None):
    """What a free matrix costs, entry by entry: of those off the diagonal, or of some of them."""
    n_classes = len(matrix)
    free = [
        matrix[j][k] for j in range(n_classes) for k in range(n_classes) if j != k and (pairs is None or pairs[j][k])
    ]
    return sum(families.ENTRY_PRICE * math.log(1 + ((each - common) / families.ENTRY_SPREAD) ** 2) for each in free)


def find_likelihood(rows, clean, matrix):
    """The log-likelihood of the labels, row by row."""
    n_classes = len(matrix)
    return sum(
        w * math.log(sum(c[j] * matrix[j][label] for j in range(n_classes)))
        for label, w, c in zip(rows.labels, rows.weight, clean, strict=True)
    )


def find_overlap(rows, clean, least):
    """How far two classes are left open in the same rows, beside what they would be if features said nothing."""
    n_classes = len(clean[0])
    total = sum(rows.weight)
    kept = [[max(value - 2 * least, 0.0) for value in c] for c in clean]
    shares = [sum(w * c[j] for w, c in zip(rows.weight, kept, strict=True)) / total for j in range(n_classes)]
    overlap = np.zeros((n_classes, n_classes))
    for j in range(n_classes):
        for k in range(n_classes):
            together = sum(w * c[j] * c[k] for w, c in zip(rows.weight, kept, strict=True)) / total
            overlap[j, k] = together / (shares[j] * shares[k])
    return overlap


def weigh_scaling(rows, matrix, offsets):
    """The log-likelihood of the labels under one matrix scaling, less what its prior says, row by row."""
    n_classes = len(offsets)
    value = 0.0
    for q, label, w in zip(rows.twisted, rows.labels, rows.weight, strict=True):
        logs = [math.log(each) for each in q]
        mean = sum(logs) / n_classes
        scores = [sum(matrix[k][j] * (logs[j] - mean) for j in range(n_classes)) + offsets[k] for k in range(n_classes)]
        value += w * (scores[label] - math.log(sum(math.exp(each) for each in scores)))
    for j in range(n_classes):
        value -= (offsets[j] / plausibility.OFFSET_SPREAD) ** 2 / 2
        for k in range(n_classes):
            away = (matrix[j][k] - 1.0) / plausibility.SLOPE_SPREAD if j == k else matrix[j][k] / scaling.MIXING_SPREAD
            value -= away**2 / 2
    return value


def find_evidence(first, masked, rival, beyond):
    """The nats that speak for noise: those beyond the prior and a scaling, or beyond the prior and after a scaling."""
    against = 4.0 + max(0.0, rival)
    if masked is None:
        return min(0.0, max(first) - against)
    evidence = max(masked) - against
    return evidence if beyond is None else max(evidence, beyond - 4.0)


def mix(first, masked, rival, is_whole, beyond):
    """The weights of no noise, of undecided fits and of decided ones, by the nats that each of them gains.

    `first` are the gains between all pairs of classes, that of even noise first, and `masked` those between decided
    pairs, None where there are none; `is_whole` where all pairs are decided, and `beyond` what noise explains after a
    scaling, None where that is not asked.
    """
    against = 4.0 + max(0.0, rival)
    decided = []
    if masked is not None:
        whole = (1 - 0.024) / (1 + math.exp(-find_evidence(first, masked, rival, beyond)))
        likely = [math.exp(gain - max(masked)) for gain in masked]
        decided = [whole * each / sum(likely) for each in likely]
    left = 1.0 - sum(decided)
    undecided = []
    if not is_whole:
        of_even, of_best = (0.5 / (1 + math.exp(against - gain)) for gain in (first[0], max(first)))
        undecided = [of_even * left]
        if max(first) > first[0]:
            undecided.append(of_best * (left - undecided[0]))
    return 1.0 - sum(undecided) - sum(decided), undecided, decided


def find_highest_rate(posterior, labels, each, depths):
    """One minus the best of Wilson's lower bounds of the part of surest rows that bear a label, all weights 1."""
    order = sorted(range(len(labels)), key=lambda row: (-posterior[row], row))
    z = plausibility.CAP_ERRORS
    best = 0.0
    for n in depths:
        part = sum(labels[row] == each for row in order[:n]) / n
        centre = part + z * z / (2 * n)
        best = max(best, (centre - z * math.sqrt(part * (1 - part) / n + z * z / (4 * n * n))) / (1 + z * z / n))
    return 1 - best


def find_contradiction(rows, clean):
    """The greatest score statistic over all pairs of classes, row by row."""
    twisted, labels, weight = rows
    n_classes = len(clean[0])
    worst = 0.0
    for j in range(n_classes):
        for k in range(n_classes):
            chosen = [i for i in range(len(labels)) if clean[i][j] > plausibility.SURE and labels[i] in (j, k)]
            total = sum(weight[i] for i in chosen)
            if j == k or total < plausibility.FEWEST_CORNER_ROWS:
                continue
            z = {i: math.log(twisted[i][k] / twisted[i][j]) for i in chosen}
            mean = sum(weight[i] * z[i] for i in chosen) / total
            part = sum(weight[i] for i in chosen if labels[i] == k) / total
            score = sum(weight[i] * (z[i] - mean) for i in chosen if labels[i] == k)
            variance = part * (1 - part) * sum(weight[i] * (z[i] - mean) ** 2 for i in chosen)
            if score > 0 and variance > 0:
                worst = max(worst, score**2 / (2 * variance))
    return worst
