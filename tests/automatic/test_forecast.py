"""The forecast of a search: right where everything goes as usual, corrected by what turns out otherwise."""

import math

import numpy as np
import pytest

from untwist import UntwistClassifier
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


def make_forecast(**changes):
    """Return a forecast of two first folds of five, 4096 rows and three classes, and the hands of its clock."""
    now = [100.0]
    options = {"n_candidates": 4, "n_folds": 5, "n_first_folds": 2, "n_rows": 4096, "n_classes": 3}
    options |= {"most_rounds": 1000, "n_trees": 10, "leaf_sizes": [4, 12], **changes}
    return Forecast(**options, now=lambda: now[0]), now


#: Of the forecast above: randomised trees on two folds for two sizes of leaves and on three others, of 9 levels each.
TREES_OF_SEVEN = 7 * 10 * 0.42 * 9
NOISE_OF_THREE = 0.15 + 0.0005 * 4.096 * 3 + 0.001 * 9


def test_what_is_left_of_the_first_candidate_and_of_all_that_follows():
    forecast, now = make_forecast()
    now[0] += 30.0
    forecast.tell(20)  # A round of a fold takes 0.75 s.
    rest = 0.75 * (100 * 3 + TREES_OF_SEVEN) + 0.2 + NOISE_OF_THREE
    assert forecast.seconds_left == pytest.approx(1.5 * (80 + 3 * 100) + rest)
    forecast.tell(200)  # Beyond the usual number a quarter of the rounds so far is expected to follow.
    rest = 0.075 * (100 * 3 + TREES_OF_SEVEN) + 0.2 + NOISE_OF_THREE
    assert forecast.seconds_left == pytest.approx(0.15 * (50 + 3 * 100) + rest)
    forecast.tell(990)
    assert forecast.seconds_left < 30 / 990 * (10 + 3 * 100 + 0.5 * (300 + TREES_OF_SEVEN)) + 0.4 + 0.001


def test_candidates_that_have_ended_tell_how_many_rounds_are_usual():
    forecast, now = make_forecast(n_candidates=3, n_trees=0)
    for n_rounds, seconds in [(40, 10.0), (80, 50.0)]:
        forecast.begin("candidates")
        now[0] += seconds
        forecast.end_candidate(n_rounds)
    per_round = 60.0 / 120
    assert forecast.seconds_left == pytest.approx(per_round * (60 + 60 / 2 * 3) + NOISE_OF_THREE)
    now[0] += 30.0
    forecast.tell(60)  # The third one, which was to be the last, is where it usually ends.
    per_round = 90.0 / 180
    assert forecast.seconds_left == pytest.approx(per_round * (15 + 60 / 2 * 3) + NOISE_OF_THREE)
    now[0] += 1.0
    forecast.end_candidate(60)
    forecast.tell(0)
    assert forecast.seconds_left == pytest.approx(91 / 180 * 60 / 2 * 3 + NOISE_OF_THREE)


def test_a_part_that_has_begun_is_foretold_by_its_own_speed():
    forecast, now = make_forecast()
    now[0] += 60.0  # A round of a fold takes 1.5 s.
    forecast.end_candidate(20)
    forecast.begin("folds", 50)
    later = 1.5 * TREES_OF_SEVEN + 0.2 + NOISE_OF_THREE
    assert forecast.seconds_left == pytest.approx(75 * 3 + later)
    now[0] += 30.0
    assert forecast.seconds_left == pytest.approx(75 * 3 - 30 + later)
    now[0] += 170.0
    assert forecast.seconds_left == pytest.approx(0.25 * 200 + later)
    forecast.tell(0.8)
    assert forecast.seconds_left == pytest.approx(50 + later)
    forecast.begin("trees")
    assert forecast.best_rounds == 50
    assert forecast.seconds_left == pytest.approx(later)
    now[0] += 6.0
    forecast.tell(0.25)
    assert forecast.seconds_left == pytest.approx(18 + NOISE_OF_THREE)
    forecast.begin("noise")
    assert forecast.seconds_left == pytest.approx(NOISE_OF_THREE)


def test_a_second_fit_by_sources_is_foretold_by_its_chance():
    (alone, now), (of_sources, then) = make_forecast(), make_forecast(has_sources=True)
    for one, clock in ((alone, now), (of_sources, then)):
        clock[0] += 60.0  # A round of a fold takes 1.5 s.
        one.end_candidate(20)
        one.begin("trees", 50)
    judging = 0.2 + 0.02 * 4.096
    again = 1.5 * (50 * 5 + TREES_OF_SEVEN) + 0.2 + NOISE_OF_THREE + judging
    assert of_sources.seconds_left == pytest.approx(alone.seconds_left + judging + 0.6 * again)


def test_leaves_larger_than_the_table_make_trees_of_one_level():
    forecast, now = make_forecast(n_rows=6, leaf_sizes=[4, 12], n_candidates=1, most_rounds=20)
    now[0] += 10.0  # A round of a fold takes 0.5 s.
    forecast.end_candidate(10)
    noise = 0.15 + 0.0005 * 0.006 * 3 + 0.001 * 9
    assert forecast.seconds_left == pytest.approx(0.5 * (10 * 3 + 7 * 10 * 0.42) + 0.2 + noise)


def test_fewer_rounds_than_usual_are_expected_where_there_are_no_more():
    forecast, now = make_forecast(most_rounds=20, n_candidates=2, n_trees=0, n_folds=2)
    now[0] += 10.0
    forecast.tell(10)
    assert forecast.seconds_left == pytest.approx(10 + 20 + NOISE_OF_THREE)


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
        watched = UntwistClassifier(random_state=0).fit(X, y)
    words = " ".join(words for words, _ in recorder.told)
    for part in ("trying alpha 1, depth 4, round 10", "the other folds", "randomised trees", "how noisy the labels"):
        assert part in words
    assert all(left >= 0 for _, left in recorder.told)
    unwatched = UntwistClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(watched.predict_proba(X), unwatched.predict_proba(X))
