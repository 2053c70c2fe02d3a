"""Slow twins of the functions that set rows aside: loops over classes, contents and copies, from their words."""

from collections import defaultdict
from math import floor, fsum

import numpy as np
from scipy.stats import binom

from untwist.data.folds import FREQUENT, MOST_DRAWN, ROUNDING, mix_bits


class Rows:
    """Rows by content and class, contents in the order that a seed draws."""

    def __init__(self, hashes, labels, weight, seed):
        keys = mix_bits(hashes ^ mix_bits(np.array([seed], dtype=np.uint64))).tolist()
        self.weight = weight.tolist()
        self.labels = labels.tolist()
        self.keys = keys
        self.classes = sorted(set(self.labels))
        self.contents = sorted(set(keys))
        self.rows = defaultdict(list)
        for row, place in enumerate(zip(keys, self.labels, strict=True)):
            self.rows[place].append(row)

        self.samples = {key for key in self.contents if self.is_sample(key)}

    def weigh(self, key, label):
        return fsum(self.weight[row] for row in self.rows[key, label])

    def is_sample(self, key):
        masses = [self.weigh(key, label) for label in self.classes]
        return fsum(masses) >= FREQUENT and sum(mass > 0 for mass in masses) > 1

    def weigh_others(self, label):
        """The masses of the contents that are no samples of their own."""
        return {key: self.weigh(key, label) for key in self.contents if key not in self.samples}

    def weigh_class(self, label):
        return fsum(self.weigh(key, label) for key in self.contents)


def draw_chance(key, salt):
    return float(mix_bits(np.array([key ^ salt], dtype=np.uint64))[0] >> np.uint64(11)) / 2**53


def draw_copies(chance, copies, share):
    return float(round(copies * share)) if copies > MOST_DRAWN else max(0.0, binom.ppf(chance, copies, share))


def hold_out_slowly(hashes, labels, weight, share, seed):
    """As `hold_out_share`."""
    rows = Rows(hashes, labels, weight, seed)
    held = {}
    for number, label in enumerate(rows.classes):
        others = rows.weigh_others(label)
        for key in rows.samples:
            copies = max(1, round(rows.weigh(key, label)))
            held[key, label] = min(draw_copies(draw_chance(key, number), copies, share), copies - 1) / copies
        total = rows.weigh_class(label)
        light = {key: mass for key, mass in others.items() if mass <= share * total * (1 + ROUNDING)}
        filled = 0.0
        for key, mass in others.items():
            if key not in light:
                held[key, label] = share
                continue
            fits = filled + mass / 2 <= share * fsum(light.values()) * (1 + ROUNDING)
            filled += mass
            held[key, label] = float(mass > 0 and fits and filled < total * (1 - ROUNDING))
    if not any(held[place] > 0 and rows.weigh(*place) > 0 for place in held):
        held = dict.fromkeys(held, share)
    return np.array([held[place] for place in zip(rows.keys, rows.labels, strict=True)])


def split_slowly(hashes, labels, weight, n_folds, seed):
    """As `split_into_folds`."""
    rows = Rows(hashes, labels, weight, seed)
    whole = all(one == floor(one) for one in rows.weight)
    folds = np.zeros((n_folds, len(weight)))
    for number, label in enumerate(rows.classes):
        others = rows.weigh_others(label)
        limit = rows.weigh_class(label) / n_folds * (1 + ROUNDING)
        total_light = fsum(mass for mass in others.values() if mass <= limit)
        filled = 0.0
        for key in rows.contents:
            mass = rows.weigh(key, label)
            copies = max(1, round(mass))
            first = floor(draw_chance(key, number) * n_folds)
            ends = [0.0]
            drawn = 0.0
            for fold in range(n_folds - 1):
                if key in rows.samples:
                    chance = draw_chance(key, 1 + number * n_folds + fold)
                    drawn += draw_copies(chance, copies - drawn, 1 / (n_folds - fold))
                    ends.append(drawn / copies)
                elif mass > limit:
                    ends.append(min(1.0, floor((copies * (fold + 1) + first) / n_folds) / copies))
                else:
                    middle = (filled + mass / 2) / total_light if total_light else 0.0
                    ends.append(float(min(int(middle * n_folds * (1 + ROUNDING)), n_folds - 1) <= fold))
            ends.append(1.0)
            if key in others and mass <= limit:
                filled += mass
            at = 0.0
            for row in sorted(rows.rows[key, label], key=lambda one: (rows.weight[one], one)):
                if rows.weight[row] == 0:
                    continue
                start, at = at, at + rows.weight[row]
                for fold in range(n_folds):
                    within = min(at, ends[fold + 1] * mass) - max(start, ends[fold] * mass)
                    part = min(max(within, 0.0), rows.weight[row])
                    folds[fold, row] = round(part) if whole else part
    return folds[folds.any(axis=1)]
