"""Reviewed rows: what the noise is judged by and what labels are worth, with models that are written down."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from helpers.unseen import make_unseen
from untwist.automatic import reviews
from untwist.automatic.reviews import _weigh, fit_with_review, judge_with_review
from untwist.data.reviews import ReviewedRows
from untwist.fitting import Fit
from untwist.model import Choice
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.two_classes import TwoClassNoise

POSTERIOR = np.column_stack([1 - np.linspace(0.1, 0.9, 6), np.linspace(0.1, 0.9, 6)])


@dataclass(frozen=True)
class ScriptedModel:
    """A model whose posteriors are written down, and whose noise is the rows that it was estimated from."""

    out_of_fold: Any = None
    noise: Any = None
    untwists: bool = False
    choice: Any = None
    name: str = "first"


def make_own(weight=(1.0, 2.0, 0.0, 1.0, 1.0, 3.0), fingerprint=7):
    return make_unseen(POSTERIOR, weight=weight, fingerprint=fingerprint)


def make_review(reviewed=(0, 2, 5), knows_given=True):
    is_reviewed = np.isin(np.arange(6), reviewed)
    given = np.array([0, 1, 0, 1, 0, 1], dtype=np.uint32)
    return ReviewedRows(is_reviewed, given, np.where(is_reviewed, 1 - given, given).astype(np.uint32), knows_given)


DATA = SimpleNamespace(settings=SimpleNamespace(known_noise="known"), workers="workers")


def test_a_review_tells_the_noise_and_the_model_remembers_it(monkeypatch):
    told = []
    learned = SimpleNamespace(is_undone="as it says")
    monkeypatch.setattr(reviews, "estimate_noise_of_reviewed", lambda *given: told.append(given) or learned)
    review, unseen = make_review(), make_own()
    judged = judge_with_review(ScriptedModel(), DATA, unseen, review)
    ((counted, known, workers),) = told
    assert (known, workers) == ("known", "workers")
    assert counted is judged.out_of_fold
    assert (judged.noise, judged.untwists) == (learned, "as it says")
    assert judged.out_of_fold.context.reviewed is review
    assert judged.out_of_fold.posterior is unseen.posterior


def test_matrices_are_undone_where_noise_was_found_and_rates_always(monkeypatch):
    matrix = SeveralClassesNoise.from_matrix(0.7 * np.eye(3) + 0.1)
    rates = TwoClassNoise.from_rates((0.1, 0.2))
    review = make_review(knows_given=False)
    for noise, is_undone in [
        (replace(matrix, found=True), True),
        (replace(matrix, found=False), False),
        (replace(rates, found=False), True),
    ]:
        monkeypatch.setattr(reviews, "estimate_noise_of_reviewed", lambda *_, noise=noise: noise)
        judged = judge_with_review(ScriptedModel(), DATA, make_own(), review)
        assert judged.noise is noise
        assert judged.untwists is is_undone


def test_a_reviewed_label_is_worth_some_noisy_ones_and_others_are_worth_one():
    noise, review = TwoClassNoise.from_rates((0.1, 0.3)), make_review()
    worth = _weigh(ScriptedModel(make_own(), noise), review)
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
    callbacks: Any = "callbacks"
    verbose: int = 0
    known_noise: Any = None
    best: Any = None

    def narrow_to(self, best):
        return Settings(None, None, 0, None, best)


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
    monkeypatch.setattr(reviews, "estimate_noise_of_reviewed", lambda *_: TwoClassNoise.from_rates((0.1, 0.3)))
    return fit_with_review(Rows(Settings(verbose=verbose)), make_review()), searches.made


def make_model(name, **unseen):
    noise = TwoClassNoise.from_rates((0.1, 0.3))
    choice = Choice(f"best of {name}", (f"tried by {name}",), f"mixture of {name}")
    return ScriptedModel(make_own(**unseen), noise, True, choice, name)


def test_what_was_chosen_is_boosted_again_with_reviewed_labels(monkeypatch, capsys):
    second = make_model("second")
    second = replace(second, out_of_fold=replace(second.out_of_fold, posterior=POSTERIOR[::-1], weight=np.full(6, 9.0)))
    fit, (first_search, again) = run(monkeypatch, (Fit(make_model("first")), False), (Fit(second), False))
    assert (fit.model.name, fit.interrupt) == ("second", None)
    labels, worth = again.data.relabelled
    np.testing.assert_array_equal(labels, make_review().labels)
    assert (worth >= 1.0).all()
    assert again.settings == Settings("rounds", "callbacks", 0, None, "best of first")
    assert again.started_at == first_search.started_at == 0
    assert fit.model.choice == Choice("best of second", ("tried by first",), "mixture of second")
    # Rows set aside keep the labels and weights that they had before.
    np.testing.assert_array_equal(fit.model.out_of_fold.posterior, POSTERIOR[::-1])
    np.testing.assert_array_equal(fit.model.out_of_fold.weight, make_own().weight)
    assert fit.model.out_of_fold.context.reviewed is not None
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
    assert fit.model.out_of_fold.context.reviewed is not None
