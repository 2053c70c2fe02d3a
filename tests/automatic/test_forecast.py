"""The forecast of a search: right where everything goes as usual, corrected by what turns out otherwise."""

import math

import numpy as np
import pytest

from untwist import PILBoostClassifier
from untwist.automatic import forecast
from untwist.automatic.forecast import Forecast
from untwist.progress import ProgressLine, use_display


class Search:
    """A search of known length by a clock of its own: the estimates beside what was left in truth."""

    def __init__(self, rounds, seconds_per_round=1.0, tree_seconds=50.0, noise_seconds=0.1, **settings):
        self.time = 0.0
        self.told = []
        options = {"n_candidates": len(rounds), "n_folds": 5, "n_first_folds": 1, "n_rows": 1024, "n_classes": 2}
        options |= {"most_rounds": 1000, "n_trees": 10, "leaf_sizes": [2], **settings}
        self.forecast = Forecast(**options, now=lambda: self.time)
        for n in rounds:
            self.forecast.begin("candidates")
            self.go(n, seconds_per_round, lambda done: done)
            self.forecast.end_candidate(n)
        best = rounds[-1]
        self.forecast.begin("folds", best)
        self.go(best, 4 * seconds_per_round, lambda done: done / best)
        self.forecast.begin("trees", best)
        self.go(10, tree_seconds / 10, lambda done: done / 10)
        self.forecast.begin("noise", best)
        self.go(1, noise_seconds, lambda done: done)

    def go(self, steps, seconds, find_done):
        for step in range(steps):
            self.time += seconds
            self.forecast.tell(find_done(step + 1))
            self.told.append((self.time, self.forecast.seconds_left))

    @property
    def ratios(self):
        """What was said to be left over what was left, at a quarter, half and three quarters of the time."""
        found = []
        for share in (0.25, 0.5, 0.75):
            when, left = next(one for one in self.told if one[0] >= share * self.time)
            found.append(left / (self.time - when))
        return found


def test_a_usual_search_is_foreseen():
    # 10 trees on 5 folds, each of 9 levels.
    trees = 50 * forecast.TREE_COST * 9
    search = Search([100] * 4, tree_seconds=trees)
    assert search.ratios == pytest.approx([1, 1, 1], rel=0.01)


@pytest.mark.parametrize("rounds", [[40] * 4, [300] * 4, [50, 150, 100, 100], [100] * 6, [100] * 3])
@pytest.mark.parametrize("tree_seconds", [60.0, 400.0])
def test_at_half_time_the_forecast_is_within_a_factor_of_two(rounds, tree_seconds):
    search = Search(rounds, tree_seconds=tree_seconds, n_candidates=4)
    assert 0.5 < search.ratios[1] < 2


def test_nothing_is_foretold_before_the_first_round_and_never_less_than_nothing():
    fresh = Forecast(n_candidates=1, n_folds=5, n_first_folds=5, n_rows=10, n_classes=2, most_rounds=10)
    assert math.isnan(fresh.seconds_left)
    search = Search([10, 500, 10, 700, 900], n_candidates=1, most_rounds=1000)
    assert all(left >= 0 for _, left in search.told)


def test_a_given_number_of_rounds_is_not_exceeded():
    now = [0.0]
    short = Forecast(
        n_candidates=1, n_folds=1, n_first_folds=1, n_rows=8, n_classes=2, most_rounds=20, now=lambda: now[0]
    )
    now[0] = 15.0
    short.tell(15)
    assert short.seconds_left == pytest.approx(5 + forecast.NOISE_SECONDS, abs=0.05)


def test_sources_may_ask_for_everything_once_more():
    alone, of_sources = (Search([100] * 4, has_sources=has).told[10][1] for has in (False, True))
    assert of_sources > alone + 200


class Recorder(ProgressLine):
    def __init__(self):
        super().__init__()
        self.told = []

    def show(self, words, seconds_left=math.nan):
        self.told.append((words, seconds_left))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_tells_of_all_its_parts_and_its_bits_stay(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4))
    y = np.digitize(X[:, 0] + rng.normal(size=4000), np.arange(1, n_classes) - n_classes / 2)
    recorder = Recorder()
    with use_display(recorder):
        watched = PILBoostClassifier(random_state=0).fit(X, y)
    words = " ".join(words for words, _ in recorder.told)
    for part in ("trying alpha 1, depth 4, round 10", "the other folds", "randomised trees", "how noisy the labels"):
        assert part in words
    assert all(left >= 0 for _, left in recorder.told)
    unwatched = PILBoostClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(watched.predict_proba(X), unwatched.predict_proba(X))
