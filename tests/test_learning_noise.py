"""What follows from an `OutOfFold`: noise, sources and second fits, with models that are written down."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers.unseen import make_unseen
from untwist import learning_noise
from untwist.data.reviews import ReviewedRows
from untwist.data.sources import LabelSources
from untwist.learning_noise import differ_much, judge_sources, learn_noise, weigh_by_reliability
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.two_classes import TwoClassNoise

POSTERIOR = np.column_stack([1 - np.linspace(0.1, 0.9, 6), np.linspace(0.1, 0.9, 6)])
WEIGHT = np.array([1.0, 2.0, 0.0, 1.0, 1.0, 3.0])
SOURCES = LabelSources(np.array(["a", "b"]), np.array([1, 0, 1, -1, 0, 0]), np.array([7, 3, 7, 9, 4, 5]))
WORTH = np.array([0.5, 1.0, 2.0, 1.0, 1.0, 3.0])


@dataclass(frozen=True)
class Model:
    """What is known of labels by some models."""

    name: str
    out_of_fold: Any
    noise: Any = None
    untwists: bool = False
    sources: Any = None


@dataclass(frozen=True)
class Scripted:
    """A `CrossFit` that is fitted anew to what is written down."""

    name: str
    out_of_fold: Any
    told: list
    again: str | None = "second"

    def refit(self, labels, weight):
        self.told.append((labels, weight))
        if self.again is None:
            return self
        if self.again == "Ctrl-C":
            raise KeyboardInterrupt
        unseen = replace(self.out_of_fold, posterior=POSTERIOR[::-1], labels=labels, weight=weight)
        return Scripted(self.again, unseen, self.told)


def make_model(fit, unseen):
    return Model(fit.name, unseen)


def make_review(knows_given=True):
    is_reviewed = np.isin(np.arange(6), (0, 2, 5))
    given = np.array([0, 1, 0, 1, 0, 1], dtype=np.uint32)
    return ReviewedRows(is_reviewed, given, np.where(is_reviewed, 1 - given, given).astype(np.uint32), knows_given)


def learn(again="second", **context):
    """Return the models that follow, and what was fitted anew."""
    told = []
    fit = Scripted("first", make_unseen(POSTERIOR, weight=WEIGHT, fingerprint=7, **context), told, again)
    return learn_noise(fit, make_model, "known", "workers"), fit, told


@pytest.fixture
def estimates(monkeypatch):
    """What noise was estimated from: (of reviewed rows, the rows, known rates, workers)."""
    noted = []

    def note(is_review):
        def estimate(unseen, known, workers):
            noted.append((is_review, unseen, known, workers))
            return replace(TwoClassNoise.from_rates((0.1, 0.3)), found=len(noted) == 1)

        return estimate

    monkeypatch.setattr(learning_noise, "estimate_noise_of", note(False))
    monkeypatch.setattr(learning_noise, "estimate_noise_of_reviewed", note(True))
    return noted


@pytest.fixture
def judged(monkeypatch):
    """What sources were judged by, where they differ much: (the rows, the noise of all labels, their reliability)."""
    noted = []

    def judge(*told):
        noted.append(told)
        return SimpleNamespace(noise="as sources have it")

    monkeypatch.setattr(learning_noise, "estimate_noise_of_sources", judge)
    monkeypatch.setattr(learning_noise, "differ_much", lambda noise: True)
    monkeypatch.setattr(learning_noise, "weigh_by_reliability", lambda noise, sources: WORTH)
    return noted


def test_of_rows_alone_the_noise_is_all_there_is_to_know(estimates):
    steps, fit, told = learn()
    (model,) = steps
    assert estimates == [(False, fit.out_of_fold, "known", "workers")]
    assert (model.name, model.untwists, told) == ("first", True, [])
    assert model.out_of_fold is fit.out_of_fold


def test_matrices_are_undone_where_noise_was_found_and_rates_always(monkeypatch):
    matrix, rates = SeveralClassesNoise.from_matrix(0.7 * np.eye(3) + 0.1), TwoClassNoise.from_rates((0.1, 0.2))
    for noise, is_undone in [
        (replace(matrix, found=True), True),
        (replace(matrix, found=False), False),
        (replace(rates, found=False), True),
    ]:
        monkeypatch.setattr(learning_noise, "estimate_noise_of", lambda *_, noise=noise: noise)
        (model,) = learn()[0]
        assert (model.noise, model.untwists) == (noise, is_undone)


@pytest.mark.parametrize("knows_given", [True, False])
def test_reviewed_labels_are_learned_by_the_noisy_ones_that_they_are_worth(estimates, knows_given):
    review = make_review(knows_given)
    steps, fit, told = learn(reviewed=review)
    first, second = steps
    assert [one.name for one in (first, second)] == ["first", "second"]
    ((labels, weight),) = told
    np.testing.assert_array_equal(labels, review.labels)
    known = np.array([0, 2, 5])
    worth = first.noise.worth(POSTERIOR[known], review.labels[known].astype(int))
    np.testing.assert_array_equal(weight[known], WEIGHT[known] * worth)
    np.testing.assert_array_equal(weight[[1, 3, 4]], WEIGHT[[1, 3, 4]])
    assert (worth > 1.0).all()
    # Rows set aside keep the labels and weights that they had before.
    assert [(one[0], *one[2:]) for one in estimates] == [(True, "known", "workers")] * 2
    assert estimates[1][1] is second.out_of_fold
    np.testing.assert_array_equal(second.out_of_fold.posterior, POSTERIOR[::-1])
    np.testing.assert_array_equal(second.out_of_fold.labels, fit.out_of_fold.labels)
    np.testing.assert_array_equal(second.out_of_fold.weight, WEIGHT)
    assert second.out_of_fold.context.reviewed is review


def test_labels_of_sources_that_differ_weigh_what_they_are_worth(estimates, judged):
    steps, fit, told = learn(sources=SOURCES)
    plain, first, second = steps
    assert [one.name for one in (plain, first, second)] == ["first", "first", "second"]
    assert (plain.sources, plain.untwists, first.untwists, second.untwists) == (None, True, True, True)
    ((labels, weight),) = told
    assert labels is fit.out_of_fold.labels
    np.testing.assert_array_equal(weight, WEIGHT * WORTH)
    # The noise is that of labels as they weighed in the training, and sources are judged by weights without that.
    assert [one[2:] for one in estimates] == [("known", "workers"), (None, "workers")]
    np.testing.assert_array_equal(estimates[1][1].weight, WEIGHT * WORTH)
    (unseen, noise, reliability), (unseen_again, noise_again, reliability_again) = judged
    assert unseen is first.out_of_fold is fit.out_of_fold
    assert (noise is plain.noise, reliability, reliability_again is WORTH) == (True, None, True)
    assert not noise_again.found
    assert unseen_again is second.out_of_fold
    np.testing.assert_array_equal(unseen_again.posterior, POSTERIOR[::-1])
    np.testing.assert_array_equal(unseen_again.weight, WEIGHT)
    assert first.noise == second.noise == second.sources.noise == "as sources have it"


def test_sources_that_are_alike_call_for_no_second_fit(monkeypatch, estimates, judged):
    monkeypatch.setattr(learning_noise, "differ_much", lambda noise: False)
    steps, _, told = learn(sources=SOURCES)
    assert [one.sources is None for one in steps] == [True, False]
    assert told == []


@pytest.mark.usefixtures("estimates", "judged")
@pytest.mark.parametrize("context", [{"reviewed": make_review()}, {"sources": SOURCES}], ids=["reviewed", "sources"])
def test_what_ends_the_second_fit_leaves_the_first(context):
    steps, _, told = learn(again=None, **context)
    *_, last = steps
    assert (last.name, len(told)) == ("first", 1)
    steps, _, told = learn(again="Ctrl-C", **context)
    found = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(steps)
    assert {one.name for one in found} == {"first"}


@pytest.mark.parametrize("kind", [TwoClassNoise, SeveralClassesNoise])
@pytest.mark.parametrize("reliability", [None, np.arange(6.0)])
def test_a_model_learns_of_its_sources_from_rows_that_it_has_not_seen(judged, kind, reliability):
    before = Model("first", make_unseen(POSTERIOR, sources=SOURCES), object.__new__(kind))
    after = judge_sources(before, reliability)
    ((unseen, noise, trusted),) = judged
    assert unseen is before.out_of_fold
    assert (noise is before.noise, trusted is reliability) == (True, True)
    assert after.noise == after.sources.noise == "as sources have it"
    assert (before.untwists, after.untwists) == (False, True)


@pytest.mark.parametrize("seed", range(30))
def test_sources_differ_much_where_labels_count_for_less_than_92_in_100(seed):
    rng = np.random.default_rng(seed)
    counts, reliability = rng.integers(0, 50, 6), rng.uniform(0.3, 1.0, 6)
    weight = np.repeat(reliability, counts)
    in_effect = weight.sum() ** 2 / (weight**2).sum()
    noise = SimpleNamespace(counts=counts.astype(float), reliability=reliability)
    assert differ_much(noise) is bool(in_effect < 0.92 * len(weight))


def test_a_label_is_worth_what_its_source_is_and_of_an_unknown_one_the_mean():
    noise = SimpleNamespace(counts=np.array([3.0, 1.0]), reliability=np.array([0.5, 1.0]))
    assert weigh_by_reliability(noise, SOURCES).tolist() == [1.0, 0.5, 1.0, 0.625, 0.5, 0.5]
