"""What sources are judged by: the rows that have a weight, with what models that have not seen them say."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from untwist.automatic import sources as by_source
from untwist.automatic.sources import differ_much, judge_sources, weigh_by_reliability
from untwist.data.sources import LabelSources
from untwist.noise.several_classes import SeveralClassesNoise
from untwist.noise.two_classes import TwoClassNoise

POSTERIOR = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.8, 0.2], [0.5, 0.5]])
LABELS = np.array([0, 1, 0, 1, 1], dtype=np.uint32)
WEIGHT = np.array([1.0, 0.0, 2.0, 0.5, 3.0])
SOURCES = LabelSources(np.array(["a", "b"]), np.array([1, 0, 1, -1, 0]), np.array([7, 3, 7, 9, 4]))


@dataclass(frozen=True)
class Unseen:
    """Rows set aside, as far as sources are judged by them."""

    fingerprint: int | None = 5
    groups: Any = None
    sources: Any = None

    def row_weights(self):
        return WEIGHT


@dataclass(frozen=True)
class Model:
    """A model whose posteriors are written down."""

    noise: Any
    out_of_fold: Unseen
    untwisting: Any = None
    sources: Any = None

    def out_of_fold_posterior_of_labels(self):
        assert self.out_of_fold.sources is SOURCES  # Posteriors of an item depend on who labelled it.
        return POSTERIOR


def judge(monkeypatch, *, reliability=None, kind=TwoClassNoise, **unseen):
    """Return the model before and after, and what the estimate was told: in order, and by name."""
    told = []

    def estimate(*arguments, **options):
        told.append((arguments, options))
        return SimpleNamespace(untwisting="as sources have it")

    monkeypatch.setattr(by_source, "estimate_by_source", estimate)
    monkeypatch.setattr(by_source, "find_rows_per_case", lambda *arguments: arguments)
    before = Model(object.__new__(kind), Unseen(**unseen))
    data = SimpleNamespace(sources=SOURCES, rows=SimpleNamespace(labels=LABELS))
    return before, judge_sources(before, data, reliability), told


@pytest.mark.parametrize("kind", [TwoClassNoise, SeveralClassesNoise])
def test_rows_of_weight_0_are_absent_and_items_are_numbered_without_them(monkeypatch, kind):
    before, after, [(in_order, by_name)] = judge(monkeypatch, kind=kind)
    present = [0, 2, 3, 4]
    for found, expected in zip(in_order, (POSTERIOR, LABELS, SOURCES.index), strict=True):
        np.testing.assert_array_equal(found, expected[present])
    assert by_name["names"] is SOURCES.names
    assert by_name["noise"] is before.noise
    assert by_name["weight"].tolist() == [1.0, 2.0, 0.5, 3.0]
    assert by_name["items"].tolist() == [1, 1, 2, 0]
    assert after.noise == after.untwisting == after.sources.untwisting == "as sources have it"
    assert after.out_of_fold == Unseen(sources=SOURCES)


def test_a_model_learned_from_labels_as_they_weighed_in_training(monkeypatch):
    for reliability, expected in (
        (None, [1.0, 2.0, 0.5, 3.0]),
        (np.array([0.5, 9.0, 0.25, 3.0, 1.0]), [0.5, 0.5, 1.5, 3.0]),
    ):
        _, _, [(_, by_name)] = judge(monkeypatch, reliability=reliability)
        assert by_name["pooled_weight"].tolist() == expected
        assert by_name["weight"].tolist() == [1.0, 2.0, 0.5, 3.0]  # Labels count for themselves all the same.


def test_rows_of_a_group_may_count_as_one_case(monkeypatch):
    numbers = np.array([0, 0, 1, 1, 1])
    for groups, expected in ((None, None), (SimpleNamespace(number_rows=lambda: numbers), numbers)):
        _, _, [(_, by_name)] = judge(monkeypatch, groups=groups)
        posterior, labels, weight, found = by_name["rows_per_case"]
        assert (posterior is POSTERIOR, labels is LABELS, weight is WEIGHT, found is expected) == (True,) * 4


def test_a_model_that_has_not_judged_every_row_stays_as_it_was(monkeypatch):
    before, after, told = judge(monkeypatch, fingerprint=None)
    assert after is before
    assert told == []


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
    assert weigh_by_reliability(noise, SOURCES).tolist() == [1.0, 0.5, 1.0, 0.625, 0.5]
