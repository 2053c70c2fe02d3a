"""Signs that posteriors have seen their labels, up to the limits from which on they are signs."""

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from untwist import UntwistClassifier
from untwist.audit import seen_labels
from untwist.audit.seen_labels import compare_with_quick_model, find_sign_of_seen_labels
from untwist.settings import resolve_recipe


def make_posterior(labels, doubt, n_wrong=0):
    """Posteriors that doubt every row alike and contradict the first labels."""
    posterior = np.where(np.eye(2)[labels] == 1, 1 - doubt, doubt)
    posterior[:n_wrong] = posterior[:n_wrong, ::-1]
    return posterior


@pytest.mark.parametrize(
    ("n", "doubt", "n_wrong", "is_sign"),
    [
        (1000, 0.1, 0, True),
        (1000, 0.1, 8, True),  # 8 % of the 100 that are expected.
        (1000, 0.1, 9, False),
        (1000, 0.01, 0, True),  # 1 % of the labels.
        (1000, 0.0099, 0, False),
        (400, 0.0126, 0, True),  # Five labels.
        (400, 0.0124, 0, False),
        (100, 0.0, 0, True),
        (99, 0.0, 0, False),
        (100, 1e-7, 0, True),
        (100, 1e-5, 0, False),
        (100, 0.0, 1, False),
    ],
)
def test_signs_begin_at_their_limits(n, doubt, n_wrong, is_sign):
    labels = np.arange(n) % 2
    posterior = make_posterior(labels, doubt, n_wrong)
    reason = find_sign_of_seen_labels(posterior, labels, np.ones(n))
    assert bool(reason) == is_sign
    if is_sign and doubt > 1e-6:
        told = f"they contradict {n_wrong} of {n:,} labels, and would be contradicted by {n * doubt:,.0f} if they"
        assert reason.startswith(told)
    elif is_sign:
        assert reason == f"they are certain of every one of the {n} labels"
    more = np.concatenate([labels, labels]), np.concatenate([np.ones(n), np.zeros(n)])
    assert find_sign_of_seen_labels(np.concatenate([posterior, posterior[:, ::-1]]), *more) == reason


class Quick:
    """Stands in for the quick model and its data: errs in so many of the rows that it is fitted to, the last ones."""

    share = 0.3
    interrupt = None
    told: ClassVar[list] = []

    @classmethod
    def collect(cls, settings, X, y, sample_weight):
        cls.settings = settings
        cls.told.append((np.asarray(X)[:, 0], y, sample_weight))
        return y

    def __init__(self, y):
        n_wrong = round(self.share * len(y))
        posterior = np.eye(2)[np.where(np.arange(len(y)) < len(y) - n_wrong, y, 1 - y)]
        self.model = SimpleNamespace(classes=np.unique(y), out_of_fold_posterior=lambda: posterior)

    def run(self):
        return self


@pytest.fixture
def compare(monkeypatch):
    """Whether posteriors that contradict so many of the first labels look too good beside so many errors of ours."""
    for name in ("TrainingData", "Search"):
        monkeypatch.setattr(seen_labels, name, Quick)
    Quick.told.clear()

    def ask(n, n_wrong, share, most_rows=20_000):
        monkeypatch.setattr(Quick, "share", share)
        monkeypatch.setattr(seen_labels, "MOST_ROWS", most_rows)
        labels = np.arange(n) % 2
        posterior = make_posterior(labels, 0.2, n_wrong)
        X = np.arange(float(n))[:, None]
        return compare_with_quick_model(posterior, X, labels, np.ones(n), n_jobs=2, random_state=7)

    return ask


@pytest.mark.parametrize(
    ("n", "n_wrong", "share", "is_sign"),
    [
        (1000, 0, 0.3, True),
        (1000, 180, 0.3, True),  # 0.6 times as many as ours.
        (1000, 181, 0.3, False),
        (1000, 0, 0.03, True),
        (1000, 0, 0.029, False),  # Less than three in a hundred.
        (200, 0, 0.07, True),  # 14 of 14 errors are ours alone: a chance of 2 ** -14.
        (200, 0, 0.065, False),
    ],
)
def test_posteriors_are_too_good_from_a_limit_on(compare, n, n_wrong, share, is_sign):
    reason = compare(n, n_wrong, share)
    assert bool(reason) == is_sign
    if is_sign:
        told = f"they contradict {n_wrong / n:.1%} of the labels, and a model of ours that has not seen these rows "
        assert reason.startswith(f"{told}{share:.1%}: ")
    else:
        assert reason == ""
    settings = Quick.settings
    assert (settings.alphas, settings.depths, settings.mixes, settings.estimates_noise) == ((2.0,), (4,), False, False)
    expected = resolve_recipe(UntwistClassifier(n_jobs=2, random_state=7).get_params())
    assert (settings.engine_options.n_jobs, settings.seed) == (2, expected.seed)


def test_ctrl_c_ends_the_comparison(compare, monkeypatch):
    monkeypatch.setattr(Quick, "interrupt", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        compare(100, 0, 0.3)


def test_who_learned_from_more_rows_may_err_less(compare):
    # A quarter of the rows is compared, so that half of 0.6 times as many errors raise no alarm.
    assert compare(1600, 0, 0.3, most_rows=400)
    rows, labels, weight = Quick.told[-1]
    assert len(rows) == len(labels) == len(weight) == 400
    assert (np.diff(rows) > 0).all()
    assert labels.tolist() == (rows % 2).tolist()
    errs = np.count_nonzero(rows < 160)
    assert 0.3 * 0.3 * 400 < errs < 0.6 * 0.3 * 400
    assert not compare(1600, 160, 0.3, most_rows=400)
    assert compare(1600, 160, 0.3)


def test_rows_of_weight_0_are_not_compared(compare, monkeypatch):
    monkeypatch.setattr(Quick, "share", 0.3)
    labels = np.arange(600) % 2
    weight = np.where(np.arange(600) < 300, 0.0, 2.0)
    posterior = make_posterior(labels, 0.2, 300)  # Only labels that do not count are contradicted.
    assert compare_with_quick_model(posterior, np.arange(600.0)[:, None], labels, weight)
    assert Quick.told[-1][0].tolist() == list(range(300, 600))
    assert Quick.told[-1][2].tolist() == [2.0] * 300
