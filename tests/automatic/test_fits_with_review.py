"""Reviewed rows: what the noise is judged by and what labels are worth, with models that are written down."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from untwist.automatic import reviews
from untwist.automatic.reviews import _weigh, fit_with_review, judge_with_review
from untwist.data.reviews import ReviewedRows
from untwist.fitting import Fit
from untwist.model import Choice, OutOfFold
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.two_classes import TwoClassNoise

POSTERIOR = np.column_stack([1 - np.linspace(0.1, 0.9, 6), np.linspace(0.1, 0.9, 6)])


@dataclass(frozen=True)
class ScriptedModel:
    """A model whose posteriors are written down, and whose noise is the rows that it was estimated from."""

    out_of_fold: Any = None
    noise: Any = None
    untwisting: Any = None
    choice: Any = None
    answer: Any = None
    name: str = "first"

    def estimate_rates(self, known, workers):
        if self.answer is not None:
            return self.answer
        return SimpleNamespace(weight=self.out_of_fold.weight, known=known, workers=workers, found=False)

    def out_of_fold_posterior_of_labels(self):
        return POSTERIOR


def make_unseen(weight=(1.0, 2.0, 0.0, 1.0, 1.0, 3.0), **more):
    labels = np.array([0, 1, 0, 1, 0, 1], dtype=np.uint32)
    return OutOfFold(np.arange(6), np.array(weight), np.zeros((6, 1)), labels, **{"fingerprint": 7, **more})


def make_review(reviewed=(0, 2, 5), knows_given=True):
    is_reviewed = np.isin(np.arange(6), reviewed)
    given = np.array([0, 1, 0, 1, 0, 1], dtype=np.uint32)
    return ReviewedRows(is_reviewed, given, np.where(is_reviewed, 1 - given, given).astype(np.uint32), knows_given)


DATA = SimpleNamespace(settings=SimpleNamespace(known_noise="known"), workers="workers")


def test_a_review_that_knows_what_was_given_teaches_by_the_rows_with_a_weight(monkeypatch):
    told = []
    learned = SimpleNamespace(found=False)
    monkeypatch.setattr(reviews, "learn_from_review", lambda *arguments: told.append(arguments) or learned)
    review, unseen = make_review(), make_unseen()
    judged = judge_with_review(ScriptedModel(), DATA, unseen, review)
    ((noise, posterior, given, labels),) = told
    assert (noise.known, noise.workers) == ("known", "workers")
    np.testing.assert_array_equal(noise.weight, unseen.weight)  # All rows count, with the labels from before.
    np.testing.assert_array_equal(posterior, POSTERIOR[[0, 5]])
    assert (given.tolist(), labels.tolist(), given.dtype) == ([0, 1], [1, 0], np.intp)
    assert judged.noise is judged.untwisting is learned
    assert judged.out_of_fold.reviewed is review


def test_where_nobody_knows_what_was_given_the_other_rows_tell_the_noise(monkeypatch):
    monkeypatch.setattr(reviews, "learn_from_review", lambda *_: pytest.fail("there is nothing to learn from"))
    judged = judge_with_review(ScriptedModel(), DATA, make_unseen(), make_review(knows_given=False))
    assert judged.noise.weight.tolist() == [0.0, 2.0, 0.0, 1.0, 1.0, 0.0]
    assert judged.out_of_fold.weight.tolist() == [1.0, 2.0, 0.0, 1.0, 1.0, 3.0]
    everything = judge_with_review(ScriptedModel(), DATA, make_unseen(), make_review(range(6), knows_given=False))
    assert everything.noise.weight.tolist() == [1.0, 2.0, 0.0, 1.0, 1.0, 3.0]
    without = make_unseen(weight=(1.0, 0.0, 0.0, 0.0, 0.0, 3.0))  # The other rows are absent.
    assert judge_with_review(ScriptedModel(), DATA, without, make_review(knows_given=False)).noise.weight.tolist() == [
        1,
        0,
        0,
        0,
        0,
        3,
    ]


def test_matrices_are_undone_where_noise_was_found_and_rates_always():
    matrix = SeveralClassesNoise.from_matrix(0.7 * np.eye(3) + 0.1)
    rates = TwoClassNoise.from_rates((0.1, 0.2))
    review = make_review(knows_given=False)
    for noise, is_undone in [
        (replace(matrix, found=True), True),
        (replace(matrix, found=False), False),
        (replace(rates, found=False), True),
    ]:
        judged = judge_with_review(ScriptedModel(answer=noise), DATA, make_unseen(), review)
        assert judged.noise is noise
        assert judged.untwisting is (noise if is_undone else None)


def test_a_reviewed_label_is_worth_some_noisy_ones_and_others_are_worth_one():
    noise, review = TwoClassNoise.from_rates((0.1, 0.3)), make_review()
    worth = _weigh(ScriptedModel(noise=noise), review)
    known = np.array([0, 2, 5])
    np.testing.assert_array_equal(worth[known], noise.worth(POSTERIOR[known], review.labels[known].astype(int)))
    np.testing.assert_array_equal(worth[[1, 3, 4]], 1.0)
    assert (worth[known] > 1.0).all()


class Searches:
    """Takes the place of `Search`: each one gives the next of the fits that are written down."""

    def __init__(self, *fits):
        self.fits, self.made = list(fits), []

    def __call__(self, data):
        fit, stopped = self.fits.pop(0)
        search = SimpleNamespace(
            data=data, settings=data.settings, stopped=stopped, run=lambda: fit, started_at=len(self.made)
        )
        self.made.append(search)
        return search


@dataclass(frozen=True)
class Settings:
    """As much of the settings as a second fit changes."""

    n_rounds: Any = "rounds"
    rounds_are_limit: Any = "limit"
    callbacks: Any = "callbacks"
    verbose: int = 0
    known_noise: Any = None
    best: Any = None

    def narrow_to(self, best):
        return Settings(None, None, None, 0, None, best)


@dataclass(frozen=True)
class Rows:
    """As much of the training data as a second fit changes."""

    settings: Any
    workers: Any = None
    relabelled: Any = None

    def relabel(self, labels, worth):
        return Rows(self.settings, self.workers, (labels, worth))


def run(monkeypatch, *fits, verbose=0):
    searches = Searches(*fits)
    monkeypatch.setattr(reviews, "Search", searches)
    monkeypatch.setattr(reviews, "learn_from_review", lambda noise, *_: noise)
    return fit_with_review(Rows(Settings(verbose=verbose)), make_review()), searches.made


def make_model(name, **unseen):
    noise = TwoClassNoise.from_rates((0.1, 0.3))
    choice = Choice(f"best of {name}", (f"tried by {name}",), f"mixture of {name}")
    return ScriptedModel(make_unseen(**unseen), noise, noise, choice, noise, name)


def test_what_was_chosen_is_boosted_again_with_reviewed_labels(monkeypatch, capsys):
    second = make_model("second")
    second = replace(second, out_of_fold=replace(second.out_of_fold, scores=np.ones((6, 1)), weight=np.full(6, 9.0)))
    fit, (first_search, again) = run(monkeypatch, (Fit(make_model("first")), False), (Fit(second), False))
    assert (fit.model.name, fit.interrupt) == ("second", None)
    labels, worth = again.data.relabelled
    np.testing.assert_array_equal(labels, make_review().labels)
    assert (worth >= 1.0).all()
    assert again.settings == Settings("rounds", "limit", "callbacks", 0, None, "best of first")
    assert again.started_at == first_search.started_at == 0
    assert fit.model.choice == Choice("best of second", ("tried by first",), "mixture of second")
    # Rows set aside keep the labels and weights that they had before.
    np.testing.assert_array_equal(fit.model.out_of_fold.scores, 1.0)
    np.testing.assert_array_equal(fit.model.out_of_fold.weight, make_unseen().weight)
    assert fit.model.out_of_fold.reviewed is not None
    assert capsys.readouterr().err == ""


def test_a_search_that_ended_early_is_all_there_is(monkeypatch):
    heard = KeyboardInterrupt()
    for first in [
        (Fit(make_model("first"), heard), True),
        (Fit(make_model("first")), True),
        (Fit(make_model("first", fingerprint=None)), False),
    ]:
        fit, made = run(monkeypatch, first)
        assert fit is first[0]
        assert len(made) == 1


def test_what_ends_the_second_fit_leaves_the_first(monkeypatch, capsys):
    heard = KeyboardInterrupt()
    first, second = (Fit(make_model("first")), False), make_model("second")
    fit, _ = run(monkeypatch, first, (Fit(second, heard), True), verbose=1)
    assert (fit.model.name, fit.interrupt) == ("first", heard)
    assert "once more" in capsys.readouterr().err
    fit, _ = run(monkeypatch, first, (Fit(second), True))
    assert (fit.model.name, fit.interrupt) == ("first", None)
    assert fit.model.out_of_fold.reviewed is not None
